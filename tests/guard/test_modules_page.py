"""The page of what is granted of each module is what the audits say. Run as a program, this file writes it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from cellblock.guard.audits import _HOME_OF, audit_of

PAGE = Path(__file__).parents[2] / "docs" / "nearly-python-modules.md"
HEAD = """# Modules at `trust_level="local"`

What code behind the guard can import, and what it finds there. All that is not named here is refused. Of classes, the
attributes that `cellblock/guard/members.txt` names can be read, or those that the audit names itself
(`…/guard/stdlib`). What a later Python adds is refused until it is named there.
*Replaced* members have the name and the manners of the original, but go through the guard's checks, or work on the
session's own state in place of the process's. *Written* modules are the running Python's own source, checked and run
as cells are, once for each session: they reach what cells reach. Members that came with a later version of Python are
there where it is.

A policy can grant fewer: `Policy(modules=["math", "json"])`. Packages beside the standard library are
[trusted](nearly-python.md#trusted-packages), `Policy(trusted=["pandas"])`, and have no audit.
This page is written by a test from the audits, and compared with them by it.
"""


def _listed(names: set[str] | frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names, key=lambda one: (one.lower(), one)))


def _section(name: str) -> str:
    audit = audit_of(name)
    assert audit is not None
    replaced = frozenset(one for one in (*audit.instead, *audit.replaced) if not one.startswith("__"))
    lines = [f"### {name}", ""]
    if len(audit.members) > 150:
        lines.append(f"Granted: {len(audit.members)} members, listed in the audit.")
    elif audit.members:
        lines.append(f"{'Written' if audit.written else 'Granted'}: {_listed(audit.members)}.")
    if replaced:
        lines.append(f"{'' if not audit.members else chr(10)}Replaced: {_listed(replaced)}.")
    if audit.submodules:
        lines.append(f"\nModules in it: {_listed(audit.submodules)}.")
    if audit.note:
        lines.append(f"\nNote: {audit.note}.")
    return "\n".join(lines) + "\n"


def page(names: list[str]) -> str:
    return "\n".join([HEAD, "## The standard library\n", *map(_section, names)])


def test_the_page_is_what_the_audits_say() -> None:
    if sys.version_info[:2] != (3, 11):
        pytest.skip("members differ by version; the page is of 3.11")
    assert PAGE.read_text() == page(sorted(_HOME_OF))


def test_each_module_that_is_named_exists() -> None:
    for name in _HOME_OF:
        importlib.import_module(name)


if __name__ == "__main__":
    PAGE.write_text(page(sorted(_HOME_OF)))
