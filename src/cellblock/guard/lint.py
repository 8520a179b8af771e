"""Looks over what a policy grants, for members that lead further than a host may have meant.

    from cellblock import Policy, lint

    for finding in lint(Policy().cls(Account)):
        print(finding)

It looks at names, parameters, annotations and bytecode, and calls nothing of what it looks at. What it does not find
may still be there: a finding is a reason to look, and none is no proof.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cellblock.guard.anatomy import lineage, namespace
from cellblock.guard.names import names
from cellblock.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One member that leads further. `kind` is one of `KINDS`."""

    member: str
    kind: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.member}: {self.reason} [{self.kind}]; {self.remedy}"


KINDS = {
    "path": "takes a path: grant a function that takes content, or that opens what you name",
    "name": "takes the name of an attribute or module, which no gate sees: take the value, or check against a list",
    "source": "takes source or a query that it evaluates: grant a function for each thing to be done",
    "evaluates": "evaluates, imports or starts something: leave it out with exclude=, or grant a narrower function",
    "pickles": "pickles: reading one runs what it names; use JSON",
    "files": "reads or writes files: leave it out with exclude=, or grant a function that does it for one place",
    "module": "is a module, which leads to every other: grant it by itself with policy.module()",
    "type": "is a metaclass, or gives one: leave it out with exclude=",
    "trusted": "runs unguarded: this guards against mistakes only, so for code you do not trust use the level isolated",
    "foreign": "comes from another module: leave it out with exclude=, or register it where it belongs",
}
"""Kinds of findings, with what to do about each."""

_PARAMETERS = {
    "path": names(
        "path paths file filename filenames filepath filepath_or_buffer path_or_buf fname dirname directory "
        "folder url uri"
    ),
    "name": names("attr attribute attrs attributes attr_name method_name func_name module_name modname"),
    "source": names("source code expr expression script command cmd sql query template statement stmt"),
}
_MEMBERS = {
    "pickles": ("pickle", "unpickle", "dumps", "to_pickle", "read_pickle", "dump", "__reduce__"),
    "files": ("tofile", "fromfile", "memmap", "save", "savez", "savetxt", "load", "loadtxt", "genfromtxt", "to_file"),
    "evaluates": ("eval", "exec", "execute", "query", "system", "popen", "run_code", "compile"),
}
_PREFIXES = {"files": ("read_", "save_", "write_", "open_", "to_csv", "to_excel", "to_parquet", "to_sql", "to_hdf")}
_CALLS = {
    "evaluates": names(
        "eval exec compile __import__ import_module system popen Popen check_output run_module spawnv execv"
    ),
    "name": names("getattr setattr delattr attrgetter methodcaller"),
    "pickles": names("pickle cPickle marshal dill cloudpickle joblib shelve Unpickler"),
    "files": names("open fdopen unlink rmtree write_text write_bytes read_text read_bytes copyfile NamedTemporaryFile"),
}
_ANNOTATIONS = {"path": ("Path", "PathLike", "StrPath"), "module": ("ModuleType",), "source": ("CodeType",)}


def lint(policy: Policy) -> tuple[Finding, ...]:
    """Points to look at in a policy, in the order in which it was granted."""
    found = [_finding(package, "trusted", "runs unguarded, with what it needs") for package in policy.trusted]
    for function in policy.functions:
        found += _of_callable(function.name, function.function)
    for grant in policy.classes:
        found += _of_class(grant.name, grant.cls, grant.members.allow)
    for module in policy.granted:
        found += _of_module(module.name, module.module, module.members.allow, module.replaced)
    return tuple(dict.fromkeys(found))


def _finding(member: str, kind: str, reason: str) -> Finding:
    remedy = KINDS[kind].partition(": ")[2]
    return Finding(member=member, kind=kind, reason=reason, remedy=remedy)


def _of_module(
    name: str, module: types.ModuleType, allow: Callable[[str], bool], replaced: Iterable[str]
) -> Iterator[Finding]:
    known = set(replaced)
    for member, value in sorted(vars(module).items()):
        if not allow(member) or member in known:
            continue
        path = f"{name}.{member}"
        if isinstance(value, types.ModuleType):
            continue  # is never handed out
        home = getattr(value, "__module__", None)
        if callable(value) and isinstance(home, str) and not _is_part(home, module.__name__):
            yield _finding(path, "foreign", f"comes from {home}")
        if isinstance(value, type):
            yield from _of_class(path, value, lambda each: not each.startswith("_"))
        else:
            yield from _of_value(path, member, value)


def _is_part(home: str, module: str) -> bool:
    return home.lstrip("_").split(".")[0] == module.lstrip("_").split(".")[0]


def _of_class(name: str, kind: type, allow: Callable[[str], bool]) -> Iterator[Finding]:
    if issubclass(kind, type):
        yield _finding(name, "type", "is a metaclass")
    seen: set[str] = set()
    for one in lineage(kind)[:-1]:
        for member, value in sorted(namespace(one).items()):
            if member in seen or not allow(member):
                continue
            seen.add(member)
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            yield from _of_value(f"{name}.{member}", member, function)
    if (make := namespace(kind).get("__init__")) is not None:
        yield from _of_parameters(name, make)


def _of_value(path: str, member: str, value: Any) -> Iterator[Finding]:
    if isinstance(value, types.ModuleType):
        yield _finding(path, "module", "is a module")
    elif isinstance(value, type):
        if issubclass(value, type):
            yield _finding(path, "type", "is a metaclass")
    elif callable(value):
        for kind, listed in _MEMBERS.items():
            if member in listed:
                yield _finding(path, kind, f"is called {member}")
        for kind, prefixes in _PREFIXES.items():
            if member.startswith(prefixes):
                yield _finding(path, kind, f"is called {member}")
        yield from _of_callable(path, value)


def _of_callable(path: str, function: Any) -> Iterator[Finding]:
    yield from _of_parameters(path, function)
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    if isinstance(code, types.CodeType):
        yield from _of_code(path, code)


def _of_parameters(path: str, function: Any) -> Iterator[Finding]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return  # C code that does not say what it takes
    for one in parameters:
        for kind, listed in _PARAMETERS.items():
            if one.name in listed:
                yield _finding(path, kind, f"has a parameter {one.name!r}")
        said = one.annotation if isinstance(one.annotation, str) else getattr(one.annotation, "__name__", "")
        for kind, words in _ANNOTATIONS.items():
            if any(word in str(said).replace("|", " ").replace(".", " ").split() for word in words):
                yield _finding(path, kind, f"takes a {said}")


def _of_code(path: str, code: types.CodeType) -> Iterator[Finding]:
    for kind, listed in _CALLS.items():
        for name in code.co_names:
            if name in listed:
                yield _finding(path, kind, f"uses {name}")
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _of_code(path, constant)
