"""The actions of `cellblock sessions` on a store: each prints a table, text or JSON."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from typing import Any

from cellblock.cli import options
from cellblock.cli.exits import DONE, FAILED, Unusable
from cellblock.cli.export import write_document
from cellblock.cli.terminal import Printer, agreed, say, table, write_data
from cellblock.declarations import declared
from cellblock.errors import MergeConflict, StoreError
from cellblock.session.commits import cells_of, get_cell, names_of
from cellblock.session.earlier import Earlier, Source
from cellblock.session.merging import merge
from cellblock.session.notebook import Notebook
from cellblock.session.timeline import before, difference, find, first_parents, why_private
from cellblock.store import Commit, SessionRow, Store, StoredSession
from cellblock.text import inert, whole_number
from cellblock.text import name as named

_MOST_LISTED = 1000
_OF_COMMITS = ("id", "parents", "created", "kind", "number", "message", "snapshot")
_ID = 12


def do_list(store: Store, arguments: argparse.Namespace) -> int:
    """A line for each session."""
    user = None if arguments.all_users else arguments.user
    rows: list[SessionRow] = []
    while page := store.sessions(user, after=rows[-1] if rows else None, limit=_MOST_LISTED):
        rows += page
    if arguments.json:
        return _json([{**asdict(row), "holder": row.holder and str(row.holder)} for row in rows])
    if not rows:
        others = user is not None and store.sessions(None, limit=1)
        more = "; other users have some: --user NAME, or --all-users" if others else ""
        say(f"no sessions of {arguments.user!r} in {store.url}{more}")
        return DONE
    table(
        ("USER", "SESSION", "COMMITS", "LAST USED", "OPEN IN", "PRIVATE", "DAMAGED"),
        [
            (
                named(row.user) if user is None else "",
                named(row.name),
                str(row.depth),
                _ago(row.used),
                str(row.holder or "-"),
                row.private,
                row.damaged,
            )
            for row in rows
        ],
    )
    return DONE


def do_log(store: Store, arguments: argparse.Namespace) -> int:
    """A line for each commit."""
    session = _read(store, arguments)
    start: str = arguments.revision or "HEAD"
    commits = list(islice(session.log(start), min(max(arguments.limit, 0), sys.maxsize)))
    revisions = {one.id: f"{start}~{up}" if up else start for up, one in enumerate(first_parents(commits))}
    marks = _marks(session)
    if arguments.json:
        return _json(
            [{**_plain(commit), "error": _error(commit), "refs": marks.get(commit.id, [])} for commit in commits]
        )
    table(
        ("COMMIT", "REVISION", "CELL", "KIND", "WHEN", "REFS", "WHAT"),
        [
            (
                _short(commit.id),
                revisions.get(commit.id, ""),
                str(commit.number) if commit.number else "-",
                f"{commit.kind}, failed" if _error(commit) else commit.kind,
                _ago(commit.created),
                ", ".join(map(named, marks.get(commit.id, []))),
                inert(commit.message) or "-",
            )
            for commit in commits
        ],
    )
    return DONE


def do_show(store: Store, arguments: argparse.Namespace) -> int:
    """A commit: its cell with what that showed, and the names after it."""
    session = _read(store, arguments)
    commit = session.resolve(arguments.revision or "HEAD")
    if arguments.declarations:
        return _show_declarations(session, commit, arguments)
    detail: Any = commit.detail
    cell = get_cell(session, detail["cell"]["@"])[0] if "cell" in detail else None
    names = names_of(session, commit)
    if arguments.json:
        shown = None if cell is None else {"source": cell.source, "state": cell.state.value, "text": cell.text}
        content = {"cell": shown, "names": {name: asdict(one) for name, one in names.items()}}
        return _json({**_plain(commit), "private": str(session.settings.get("private") or ""), **content})
    out = Printer(sys.stdout)
    out.line(f"{_short(commit.id)}  {commit.kind} {commit.number or ''}  {_ago(commit.created)}")
    if why := session.settings.get("private"):
        since = session.settings.get("private_since")
        out.line(f"private since {f'cell {since}' if since else 'the start'}: {why}")
    if cell is not None:
        out.code(cell.source, indent="    ")
        for line in cell.text.splitlines():
            out.line(f"  | {line}")
    if not commit.snapshot:
        deletes = cell is None and "deleted" in detail
        state = "is that of the commit before" if deletes else "was not saved: it is made again by running the cell"
        out.line(f"(the state {state})")
    rows = [(named(name), one.type, str(one.size), one.preview) for name, one in names.items()]
    table(("NAME", "TYPE", "SIZE", "VALUE"), rows)
    return DONE


def _show_declarations(session: StoredSession, commit: Commit, arguments: argparse.Namespace) -> int:
    cells = (cell for cell, _ in cells_of(session, commit))
    found = declared(one.source for one in cells if one.kind == "python" and not (one.undone or one.rolled_back))
    if arguments.json:
        return _json([text for text, _ in found])
    out = Printer(sys.stdout)
    for text, _ in found:
        out.code(text)
    return DONE


def do_diff(store: Store, arguments: argparse.Namespace) -> int:
    """Show the difference between two commits."""
    session = _read(store, arguments)
    older, newer = session.resolve(arguments.before or "HEAD~1"), session.resolve(arguments.after or "HEAD")
    found = difference(session, older, newer)
    if arguments.json:
        return _json(asdict(found))
    Printer(sys.stdout).line(str(found))
    return DONE


def do_undo(store: Store, arguments: argparse.Namespace) -> int:
    """Go back by some steps."""
    if not (steps := whole_number(arguments.steps or "1", options.MOST_STEPS)):
        raise Unusable(f"{arguments.steps!r} is not a number of steps above 0")
    return _go_to(store, arguments, lambda session: before(session, steps))


def do_checkout(store: Store, arguments: argparse.Namespace) -> int:
    """Go to a commit."""
    return _go_to(store, arguments, lambda session: session.resolve(arguments.revision))


def do_branch(store: Store, arguments: argparse.Namespace) -> int:
    """Make another session."""
    _read(store, arguments)
    store.fork(arguments.user, arguments.name, arguments.new, at=arguments.revision or "HEAD")
    return _report(arguments, store.read(arguments.user, arguments.new).resolve("HEAD"), arguments.new)


def do_tag(store: Store, arguments: argparse.Namespace) -> int:
    """Name a commit."""
    with store.hold(arguments.user, arguments.name, create=False) as session:
        session.tag(arguments.tag, at=arguments.revision or "HEAD")
        return _report(arguments, session.resolve(arguments.tag), arguments.name)


def do_merge(store: Store, arguments: argparse.Namespace) -> int:
    """Take over what another version changed."""
    with store.hold(arguments.user, arguments.name, create=False) as session:
        theirs = find(store, session, arguments.other)
        if (why := why_private(store, arguments.user, arguments.other)) and not session.settings.get("private"):
            since = session.resolve("HEAD").number
            session.configure({"private": f"merged {arguments.other}: {why}", "private_since": since})
        try:
            step = f"s{session.epoch}-merge"
            merged = merge(session, session.resolve("HEAD"), theirs, arguments.other, arguments.prefer, step)
        except MergeConflict as conflict:
            conflict.hint = "make one of them as the other is, or give --prefer ours or --prefer theirs"
            raise
        return _report(arguments, merged, arguments.name)


def do_export(store: Store, arguments: argparse.Namespace) -> int:
    """Write the notebook of a session's head."""
    target = options.target(arguments.out, option="", script=True)
    session = _read(store, arguments)
    notebook = Notebook(Earlier(Source(store, session), session.resolve("HEAD").trees))
    notebook.private = str(session.settings.get("private") or "")
    if os.path.lexists(target) and not agreed(f"overwrite {target}?", yes=arguments.yes):
        return FAILED
    write_document(target, notebook)
    done = {"out": str(target), "cells": notebook.count()}
    return _result(arguments, done, f"wrote {notebook.count()} cells to {target}")


def do_rename(store: Store, arguments: argparse.Namespace) -> int:
    """Give a session another name."""
    store.rename(arguments.user, arguments.name, arguments.new)
    done = f"{arguments.name!r} is {arguments.new!r} now"
    return _result(arguments, {"session": arguments.new}, done)


def do_delete(store: Store, arguments: argparse.Namespace) -> int:
    """Delete a session."""
    store.read(arguments.user, arguments.name)  # nobody is asked of one that there is not
    question = f"delete session {arguments.name!r} of {arguments.user!r}, with all its commits?"
    if not agreed(question, yes=arguments.yes):
        return FAILED
    store.delete(arguments.user, arguments.name)
    return _result(arguments, {"deleted": arguments.name}, f"deleted session {arguments.name!r}")


def do_verify(store: Store, arguments: argparse.Namespace) -> int:
    """Read everything; the exit status is 1 where anything is damaged."""
    report = store.verify(arguments.user if arguments.user != "default" else None)
    if arguments.json:
        _json({**asdict(report), "ok": report.ok})
    else:
        sound = f"{report.objects} objects, {report.bytes} bytes, {report.sessions} sessions, {report.commits} commits"
        say(f"{sound}: {'all sound' if report.ok else f'{len(report.damage)} damaged'}")
        table(
            ("USER", "SESSION", "COMMIT", "WHAT", "PROBLEM"),
            [
                (named(one.user), named(one.session), _short(one.commit), named(one.path), one.problem)
                for one in report.damage
            ],
        )
    return DONE if report.ok else FAILED


def do_gc(store: Store, arguments: argparse.Namespace) -> int:
    """Delete what nothing refers to any more."""
    swept = store.gc()
    deleted = f"kept {swept.kept} objects, deleted {swept.deleted} ({swept.bytes} bytes)"
    return _result(arguments, asdict(swept), f"{deleted}; {swept.condemned} go next time")


# --------------------------------------------------------------------------------------- inside


_OPEN_ONCE = "open the session once, unless a program has it open: they are run again, and become commits"


def _read(store: Store, arguments: argparse.Namespace) -> StoredSession:
    """The session, with a note on stderr where it has steps that no commit holds."""
    session = store.read(arguments.user, arguments.name)
    if waiting := _waiting(session):
        say(f"{waiting} ({_OPEN_ONCE})")
    return session


def _waiting(session: StoredSession) -> str:
    """A sentence about steps that no commit holds yet; "" where there are none."""
    entries, damaged = session.readable()
    if damaged:
        return f"entries of the journal are damaged: {', '.join(map(str, damaged))}"
    steps = sum(entry.value["do"] in ("end", "host") for entry in entries)
    last = "the last step is" if steps == 1 else f"the last {steps} steps are"
    return f"{last} kept, and not in the log yet" if steps else ""


def _go_to(store: Store, arguments: argparse.Namespace, found: Callable[[StoredSession], Commit]) -> int:
    with store.hold(arguments.user, arguments.name, create=False) as session:
        if waiting := _waiting(session):
            raise StoreError(waiting, hint=_OPEN_ONCE)
        commit = found(session)
        session.move(commit.id, entries=[entry.number for entry in session.journal()])
    return _report(arguments, commit, arguments.name)


def _report(arguments: argparse.Namespace, commit: Commit, name: str) -> int:
    """Print the commit that a session is at."""
    at = f"{name} is at {_short(commit.id)}: {commit.kind} {commit.number or ''} {commit.message}"
    return _result(arguments, {"session": name, **_plain(commit)}, at.rstrip())


def _marks(session: StoredSession) -> dict[str, list[str]]:
    marks: dict[str, list[str]] = {}
    head = session.head()
    for name, commit in [("HEAD", head.commit), *session.branches().items(), *session.tags().items()]:
        if commit is not None:
            marks.setdefault(commit, []).append(name)
    return marks


def _error(commit: Commit) -> str:
    """The type of the error that ended a commit's cell; "" where none did, or an older version has written it."""
    return str(commit.detail.get("error") or "")


def _plain(commit: Commit) -> dict[str, object]:
    return {name: getattr(commit, name) for name in _OF_COMMITS}


def _short(address: str) -> str:
    return address.removeprefix("sha256-")[:_ID]


def _ago(milliseconds: int) -> str:
    seconds = max(0.0, time.time() - milliseconds / 1000)
    for many, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= many:
            return f"{seconds / many:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def _result(arguments: argparse.Namespace, result: object, line: str) -> int:
    """Print the result of a change as JSON or as a line."""
    if arguments.json:
        return _json(result)
    say(line)
    return DONE


def _json(value: object) -> int:
    write_data(value, indent=1)
    return DONE
