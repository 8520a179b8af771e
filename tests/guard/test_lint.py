"""The lint of what a policy grants."""

from __future__ import annotations

import os
import pickle
import types
from pathlib import Path
from typing import Any

import pytest

from cellblock.guard.lint import KINDS, lint
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
