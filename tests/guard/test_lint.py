"""The lint of what a policy grants."""

from __future__ import annotations

import importlib
import os
import pickle
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cellblock
from cellblock.guard.audits import _HOME_OF, audit_of
from cellblock.guard.lint import KINDS, Finding, lint
from cellblock.policy import Policy


def add(a: int, b: int) -> int:
    return a + b


def show(path: str) -> str:
    return path


def keep(where: Path) -> None: ...


def reach(value: Any, what: str) -> Any:
    return getattr(value, what)


def compute(formula: str) -> Any:
    return eval(formula)


def search(query: str) -> None: ...


def restore(data: bytes) -> Any:
    return pickle.loads(data)


def stored(data: str) -> None:
    def inner() -> None:
        with open("x", "w") as file:
            file.write(data)

    inner()


class Account:
    helper = os
    meta = type

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def balance(self) -> int:
        return 1

    def to_csv(self, filename: str) -> None: ...

    def _private(self, path: str) -> None: ...

    @property
    def loaded(self) -> Any:
        return __import__("os")

    @staticmethod
    def run(command: str) -> None:
        os.system(command)


WANT = {add: set(), show: {"path"}, keep: {"path"}, reach: {"name"}, compute: {"evaluates"}, search: {"source"}}
WANT |= {restore: {"pickles"}, stored: {"files"}}


@pytest.mark.parametrize("function", WANT, ids=lambda one: one.__name__)
def test_functions_that_lead_further_are_found(function: Any) -> None:
    found = lint(Policy().fn(function))
    assert {one.kind for one in found} == WANT[function]
    assert all(one.member == function.__name__ and one.reason and one.remedy for one in found)


def test_members_of_a_class_are_looked_at() -> None:
    found = {(one.member, one.kind) for one in lint(Policy().cls(Account))}
    assert found == {
        ("Account.helper", "module"),
        ("Account.meta", "type"),
        ("Account.to_csv", "files"),
        ("Account.to_csv", "path"),
        ("Account.loaded", "evaluates"),
        ("Account.run", "evaluates"),
        ("Account.run", "source"),
    }
    left = lint(Policy().cls(Account, exclude=["helper", "meta", "to_*", "loaded", "run"]))
    assert left == ()


def test_members_of_a_module_are_looked_at() -> None:
    toolbox = types.ModuleType("toolbox")
    own = types.FunctionType(add.__code__, {}, "own")
    own.__module__ = "toolbox"
    for name, value in {"own": own, "os": os, "join": os.path.join, "Meta": type, "_hidden": show}.items():
        setattr(toolbox, name, value)
    found = {(one.member, one.kind) for one in lint(Policy().module(toolbox))}
    assert ("toolbox.join", "foreign") in found
    assert ("toolbox.Meta", "type") in found
    assert not [one for one in found if one[0] in ("toolbox.own", "toolbox.os", "toolbox._hidden")]
    assert lint(Policy().module(toolbox, include=["own"])) == ()


def test_nothing_that_is_looked_at_runs() -> None:
    class Loud:
        @property
        def value(self) -> int:
            raise AssertionError("ran")

    assert lint(Policy().cls(Loud)) == ()


def test_each_kind_says_what_to_do() -> None:
    assert all(": " in said for said in KINDS.values())
    finding = lint(Policy().fn(show))[0]
    assert str(finding) == (
        "show: has a parameter 'path' [path]; grant a function that takes content, or that opens what you name"
    )


EXPLAINED = {
    r"uses [gs]etattr$": {
        r"(asyncio|inspect|hmac|typing)\..*": "a name of the interpreter's own",
        r"reprlib[._].*": "repr_ and the name of a class: its own methods, or those of the code's own subclass",
    },
    r"is a metaclass$": {r".*": "classes are made by the guard alone, whatever their metaclass"},
    r"uses compile$": {r"html_parser_.*|pathlib_.*": "a pattern of its own"},
    r"has a parameter": {
        r"pathlib_.*": "paths that touch nothing",
        r"html_parser_.*": "attributes of a tag",
        r"string_Template": "a text with $names, looked up in a mapping",
    },
    r"is called (open|read_|write_)": {r"pathlib_PosixPath\..*": "a refusal: there are no files here"},
    r"uses open$": {r"zoneinfo\.available_timezones": "lists the names of the system's own zones"},
    r"comes from": {r".*": "handed out by the audit under the name of the module that shows it"},
}
"""Findings in the audits themselves: by what was found, the members where it is so, and why that is harmless."""


def test_each_finding_in_the_audits_is_explained() -> None:
    unexplained = []
    for finding in _in_audits():
        why = [
            one
            for what, members in EXPLAINED.items()
            if re.search(what, finding.reason)
            for member, one in members.items()
            if re.fullmatch(member, finding.member)
        ]
        if not why:
            unexplained.append(str(finding))
    assert unexplained == []


def _in_audits() -> Iterator[Finding]:
    for name in _HOME_OF:
        audit = audit_of(name)
        if audit is None:
            continue
        if audit.members and not audit.written:
            real = importlib.import_module(name)
            classes = {one for one in audit.members if isinstance(getattr(real, one, None), type)}
            granted = audit.members - classes
            stand_ins = [*audit.instead, *audit.replaced]
            yield from lint(Policy().module(real, include=granted, exclude=stand_ins))
        for kind in audit.types:
            seen = kind.reads - set(kind.replaced)
            if not issubclass(kind.type, type) and kind.type.__qualname__.isidentifier():
                name = f"{kind.type.__module__}_{kind.type.__qualname__}".replace(".", "_")
                yield from lint(Policy().cls(kind.type, name=name, include=seen))


def test_each_trusted_package_is_a_finding() -> None:
    assert [str(one) for one in lint(Policy(trusted=["pandas", "numpy"]))] == [
        f"{package}: runs unguarded, with what it needs [trusted]; this guards against mistakes only, "
        "so for code you do not trust use the level isolated"
        for package in ("pandas", "numpy")
    ]


def test_the_lint_is_public() -> None:
    assert cellblock.lint is lint
