"""`cellblock sessions replay`: a run done again from its log, and a row for each thing that came out otherwise."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from cellblock.agent.comparing import Difference, Replay
from cellblock.agent.replay import replay
from cellblock.cli import options
from cellblock.cli.exits import DONE, FAILED
from cellblock.cli.terminal import say, table, write_data


def execute(arguments: argparse.Namespace) -> int:
    """Replay logs; the exit status says whether all is as they say."""
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


_WIDE = 60
