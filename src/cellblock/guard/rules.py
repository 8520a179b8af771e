"""The rules by which source is refused: what each refuses, why, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass

from cellblock.policy import UNTRUSTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. `threat` names the class of escape it answers, "" where it is a matter of dialect or of limits."""

    id: str
    refuses: str
    why: str
    instead: str
    threat: str = ""


def _rule(id: str, refuses: str, why: str, instead: str, threat: str = "") -> Rule:
    return Rule(id=id, refuses=refuses, why=why, instead=instead, threat=threat)


RULES: tuple[Rule, ...] = (
    _rule("node", "syntax that no rule knows", "what is not understood is not run", "write it another way", "L6"),
    _rule(
        "attribute",
        "an attribute that is granted on no object, or not on this one",
        "it would lead from a value to the interpreter or to the host",
        "use the value's public methods, or register the class: policy.cls(C, include=[…])",
        "L1",
    ),
    _rule(
        "frame",
        "attributes of frames, code, tracebacks, generators and coroutines",
        "frames hold the variables of everyone who called",
        "pass what is needed as an argument",
        "L2",
    ),
    _rule(
        "type",
        "attributes that lead from a class to other classes",
        "all classes of the process can be reached from `object`",
        "use isinstance(), issubclass() or type(x).__name__",
        "L3",
    ),
    _rule(
        "import",
        "a module that was not granted",
        "modules are capabilities of the host",
        "register it: policy.module(m), or use what is granted",
        "L4",
    ),
    _rule(
        "name",
        "a name that belongs to the interpreter",
        "it stands for the interpreter's own objects",
        "use a name without two underscores",
        "L6",
    ),
    _rule(
        "builtin",
        "a built-in function that runs source or opens files",
        "it reaches past the code's own values",
        "register a function that does what is needed: policy.fn(f)",
        "L5",
    ),
    _rule(
        "format",
        "attribute access in a format string",
        "format strings read attributes that no check sees",
        "write an f-string: its expressions are checked as code",
        "L1",
    ),
    _rule(
        "store",
        "setting or deleting an attribute of what the code did not make",
        "objects of the host stay as they are",
        "keep it in a variable or an object of your own",
        "L8",
    ),
    _rule(
        "class",
        "a class that cannot be made or inherited from here",
        "its methods would run where nothing bounds them, or change what the host relies on",
        "leave the method out, or use composition",
        "L3",
    ),
    _rule("pattern", "a class pattern that reads what may not be read", "patterns read attributes", "use if", "L1"),
    _rule(
        "size",
        "a single operation too large to be interrupted",
        "nothing can stop it once it has begun",
        "use smaller numbers, or do it in steps",
        "L10",
    ),
    _rule("nesting", "source that is nested too deeply", "the compiler would fail on it", "nest less", "L10"),
    _rule(
        "metaclasses",
        "a class of classes",
        "it decides what classes are, which the checks go by; few programs have one",
        "use __init_subclass__ or a decorator, or name it: Policy(also=['metaclasses'])",
        "L3",
    ),
    _rule(
        "hooks",
        "a method that answers for isinstance(), or that makes up bases and namespaces of classes",
        "Python asks it about classes of the host as well; few programs have one",
        "leave it out, or name it: Policy(also=['hooks'])",
        "L11",
    ),
    _rule("inheritance", "classes with bases", "this dialect is without inheritance", "keep an object as an attribute"),
    _rule("decorators", "@decorators", "this dialect is without them", "write f = decorator(f) after the definition"),
    _rule("generators", "yield and generator expressions", "this dialect is without generators", "return a list"),
    _rule("async", "async and await", "this dialect is without them", "call the blocking function"),
    _rule("global", "global and nonlocal", "this dialect is without them", "return the value, or change a list"),
    _rule("exceptions", "try and raise", "this dialect is without exceptions", "test for the condition with if"),
)

BY_ID = {rule.id: rule for rule in RULES}

_ISOLATED = 'use trust_level="isolated" without a policy, where code has a process of its own'

_INSTEAD = {
    "os shutil glob tempfile fileinput stat": f"there are no files here: bind the content, or {_ISOLATED}",
    "subprocess signal multiprocessing pty resource": f"nothing can be started here: {_ISOLATED}",
    "threading concurrent _thread": "threads would outlive what ends a cell: use asyncio.gather, or a loop",
    "socket ssl http requests httpx aiohttp ftplib smtplib socketserver": "register a function: policy.fn(fetch)",
    "pickle shelve marshal dbm copyreg": "reading a pickle runs what it names: use json",
    "sqlite3": "databases open files and run queries that nothing ends: register a function: policy.fn(query)",
    "importlib imp runpy pkgutil builtins code codeop zipimport": "use import, of what is granted",
    "ctypes mmap gc site sysconfig platform": f"it reaches into the process: {_ISOLATED}",
    "getopt optparse": "there is no command line: bind the values as names, or give them to argparse",
    "unittest pytest": "use assert",
    "gzip bz2 lzma tarfile zipfile": "zlib takes bytes in memory",
}
_BY_NAME = {name: instead for listed, instead in _INSTEAD.items() for name in listed.split()}


def instead_of(module: str) -> str:
    """Alternative to a module; "" where there is none but a grant."""
    package = module.partition(".")[0]
    trusted = f"Policy(trusted=[{package!r}]) grants it, which guards against mistakes only: else {_ISOLATED}"
    return _BY_NAME.get(package, "" if package in UNTRUSTED else trusted)
