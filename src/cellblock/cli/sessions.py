"""`cellblock sessions`: the sessions of a store, listed, read, compared, moved and checked; and runs done again."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from cellblock.cli import options, stored
from cellblock.cli.exits import DONE, EPILOG, FAILED, Unusable
from cellblock.cli.terminal import say, table, write_data
from cellblock.errors import StoreError
from cellblock.store import Store, open_store
from cellblock.store.naming import checked_name, checked_ref
from cellblock.store.places import directory_of
from cellblock.store.urls import parse_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.agent.replay import Difference, Replay

Action = Callable[[Store, argparse.Namespace], int]
_NAMES = {"user": "user", "name": "session", "new": "session", "tag": "tag"}
"""Arguments that are names, and their kinds."""
_REVISION = "HEAD, HEAD~3, a tag, a branch, or the beginning of a commit's id"
_WIDE = 60
"""Characters of a text that differs, in a row."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "sessions",
        description="Sessions that last: what a store keeps of them. No code runs, but for replay.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    def action(run: Action, about: str, *words: tuple[str, str, str], session: bool = True) -> argparse.ArgumentParser:
        name = run.__name__.removeprefix("do_")
        one = actions.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.", epilog=EPILOG)
        one.add_argument(
            "--store", type=options.store_url, metavar="URL",
            help="sqlite:///FILE or postgresql://… ($CELLBLOCK_STORE, else yours)",
        )  # fmt: skip
        one.add_argument("--user", default="default", help="whose sessions (default)")
        one.add_argument("--json", action="store_true", help="print JSON and nothing else")
        if session:
            one.add_argument("name", metavar="NAME", help="the session")
        for word, nargs, meaning in words:
            one.add_argument(word.lower(), metavar=word, nargs=nargs or None, help=meaning)
        one.set_defaults(command=partial(_run, run))
        return one

    listing = action(stored.do_list, "list the sessions of a user", session=False)
    listing.add_argument("--all-users", action="store_true", help="those of everybody")
    start = ("REVISION", "?", f"start there: {_REVISION}")
    log = action(stored.do_log, "list a session's commits, newest first", start)
    log.add_argument("--limit", type=int, default=20, metavar="N", help="so many at most (20)")
    revision = ("REVISION", "?", _REVISION)
    show = action(stored.do_show, "show a commit: its cell, what that showed, and all names", revision)
    show.add_argument("--declarations", action="store_true", help="the imports and definitions up to it, as source")
    before, after = ("BEFORE", "?", "a revision (HEAD~1)"), ("AFTER", "?", "another (HEAD)")
    action(stored.do_diff, "show what differs between two commits", before, after)
    action(stored.do_undo, "go back by some steps", ("STEPS", "?", "how many (1)"))
    action(stored.do_checkout, "go to a commit", ("REVISION", "", _REVISION))
    action(stored.do_branch, "make another session that goes on from a commit", ("NEW", "", "its name"), revision)
    action(stored.do_rename, "give a session another name", ("NEW", "", "its new name"))
    action(stored.do_tag, "name a commit", ("TAG", "", "the name"), revision)
    other = ("OTHER", "", "another session, or a revision")
    merging = action(stored.do_merge, "take over what another version changed", other)
    merging.add_argument(
        "--prefer", choices=("ours", "theirs"), help="where both changed the same (else nothing is merged)"
    )
    out = ("OUT", "", "FILE.ipynb, FILE.html or FILE.py")
    export = action(stored.do_export, "write the session's notebook to a file", out)
    delete = action(stored.do_delete, "delete a session; gc gives its space back")
    for one in (export, delete):
        one.add_argument("--yes", action="store_true", help="ask no question at a terminal")
    action(stored.do_verify, "read everything that is stored, and tell what is damaged", session=False)
    action(stored.do_gc, "delete what nothing refers to any more", session=False)
    _add_replay(actions)


def _add_replay(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "replay",
        help="run an agent's log again, without its model, and show what differs",
        description="Runs what an agent ran, from its log: the replies of its model and the answers of its tools come "
        "from there. Several logs are those of runs that followed one another in one session.",
        epilog="exit status: 0 all as the log says, 1 something differs, 2 usage, or no log that can be replayed, "
        "3 this machine cannot give a wall",
    )
    add = parser.add_argument
    add("logs", metavar="LOG", nargs="+", help="what agent.run(log=…) or cellblock agent --log has written")
    add("--json", action="store_true", help="print JSON and nothing else")
    options.add_inputs(parser)
    options.add_network(parser, private=False)
    options.add_place(parser, ("local", "isolated", "sandboxed"))
    parser.set_defaults(command=_replay, trust_level=None, walls=None)


def _run(run: Action, arguments: argparse.Namespace) -> int:
    """Check the names that are given, open the store and run an action."""
    try:
        for option, what in _NAMES.items():
            if option in arguments:
                (checked_ref if what == "tag" else checked_name)(getattr(arguments, option), what)
        store = _opened(arguments.store)
    except StoreError as error:
        raise Unusable(str(error)) from None
    with store:
        return run(store, arguments)


def _opened(url: str | None) -> Store:
    """The store that is named, which must be there: a misspelled URL makes none."""
    parts = parse_url(url)
    named = url is not None or "CELLBLOCK_STORE" in os.environ
    places = (parts.location if parts.kind == "sqlite" else "", directory_of(parts.objects))
    if named and not all(map(os.path.exists, filter(None, places))):
        raise StoreError(f"there is no store at {parts.shown}", hint="the first session with a name makes it")
    return open_store(url)


def _replay(arguments: argparse.Namespace) -> int:
    """Replay logs; the exit status is 0 where all is as they say."""
    from cellblock.agent.replay import replay

    files, mounts = options.inputs(arguments), options.mounts(arguments)
    network, place = options.network(arguments), options.place(arguments)
    done = replay(*arguments.logs, files=files, mounts=mounts, network=network, **place)
    if arguments.json:
        write_data({"same": done.same, **asdict(done)}, indent=1)
    else:
        _tell(done, several=len(arguments.logs) > 1)
    return DONE if done.same else FAILED


def _tell(done: Replay, *, several: bool) -> None:
    attempts = any(one.attempt > 1 for one in done.differences)
    rows = [
        (
            str(one.run) if several else "",
            str(one.attempt) if attempts else "",
            "-" if one.step is None else str(one.step),
            one.what,
            *_parting(one),
        )
        for one in done.differences
    ]
    table(("RUN", "ATTEMPT", "STEP", "WHAT", "LOGGED", "REPLAYED"), rows)
    for note in done.notes:
        say(note)
    differing = "all as the log says" if done.same else _many(len(done.differences), "difference")
    say(f"{_many(done.cells, 'cell')}, {_many(done.calls, 'tool call')}: {differing}")


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _parting(one: Difference) -> tuple[str, str]:
    """The first line in which two texts differ, within a width that leaves room for both."""
    ours, theirs = one.logged.splitlines() or [""], one.replayed.splitlines() or [""]
    for here, there in zip(ours, theirs, strict=False):
        if here != there:
            return here[:_WIDE], there[:_WIDE]
    at = min(len(ours), len(theirs))
    return " ".join(ours[at:])[:_WIDE] or "(nothing)", " ".join(theirs[at:])[:_WIDE] or "(nothing)"
