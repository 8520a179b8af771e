"""What the reviewed rows grant, against the classes and modules of this Python.

Run as a program, this file adds to the rows what they lack: whoever commits that has looked at each name. It is to be
run on each Python, since a name may be of one alone.
"""

from __future__ import annotations

import importlib
import textwrap
import types

import pytest

from cellblock.guard.audits import _HOME_OF, audit_of
from cellblock.guard.tables import MEMBERS, row_name, rows
from cellblock.guard.world import World


def _world() -> World:
    """A world that has met every class that an audit is about."""
    world = World(write=lambda stream, text: None)
    for name in _HOME_OF:
        if audit_of(name) is not None:
            world.importer.module(name)
    return world


def _public(owner: object) -> set[str]:
    found = getattr(owner, "__all__", None) if isinstance(owner, types.ModuleType) else None
    return {one for one in (dir(owner) if found is None else found) if not one.startswith("_")}


def unreviewed() -> dict[str, set[str]]:
    """Public names that nobody has looked at, by the row they would stand in."""
    found: dict[str, set[str]] = {}
    for audit in _world().types.values():
        if audit.refused is not None:
            known = audit.reads | audit.refused | set(audit.replaced) | set(audit.static_replaced)
            found.setdefault(row_name(audit.type), set()).update(_public(audit.type) - known)
    for name in _HOME_OF:
        module = audit_of(name)
        if module is not None and module.refused is not None:
            known = module.members | module.refused | module.instead.keys() | module.replaced.keys() | module.submodules
            found[name] = _public(importlib.import_module(name)) - known
    return {name: names for name, names in found.items() if names}


def test_each_public_name_was_looked_at() -> None:
    """What this Python adds is refused; here somebody is told to look at it."""
    assert unreviewed() == {}


def test_rows_are_in_order_and_name_nothing_private() -> None:
    found = rows()
    assert MEMBERS.read_text() == written({name: set(names) for name, names in found.items()})
    assert not [one for names in found.values() for one in names if one.startswith("_") or not one.isidentifier()]


def test_a_name_without_a_row_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """L1: as a later Python's would be."""
    from cellblock.guard import tables

    later = type("Later", (), {"known": 1, "added": 2})
    monkeypatch.setattr(tables, "listed", lambda name: frozenset(["known"]) if name.endswith("Later") else frozenset())
    world = World(write=lambda stream, text: None)
    world.grant_types({later: tables.audit(later)})
    get = world.builtins["getattr"]
    assert get(later(), "known") == 1
    for one in (later, later()):
        with pytest.raises(AttributeError, match=r"'added'.* is not granted"):
            get(one, "added")


def written(found: dict[str, set[str]]) -> str:
    """The text of a file of rows."""
    head = [line for line in MEMBERS.read_text().splitlines() if line.startswith("#")]
    owners: dict[str, list[str]] = {}
    for name, names in sorted(found.items()):
        owners.setdefault(" ".join(sorted(names)), []).append(name)
    body = [
        textwrap.fill(
            f"{' '.join(alike)}: {names}",
            width=118,
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for names, alike in owners.items()
    ]
    return "\n".join([*head, *body]) + "\n"


def _add() -> None:
    found = {name: set(names) for name, names in rows().items()}
    for name, names in unreviewed().items():
        found[name] = found.get(name, set()) | names
        print(name, *sorted(names))
    MEMBERS.write_text(written(found))


if __name__ == "__main__":
    _add()
