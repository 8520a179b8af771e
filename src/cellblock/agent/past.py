"""A run as its log tells of it, step by step: what is replayed, and what is gone on with."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cellblock.documents import fits, reading
from cellblock.errors import LogError
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.models import Reply, Tokens, ToolRequest
from cellblock.observe.log import Event, EventLog
from cellblock.observe.redaction import MASK
from cellblock.text import line, write_json
from cellblock.values.portable import MalformedValue

Made = TypeVar("Made")

_MOST_STEPS = 10_000
"""Most steps of an attempt: each is another step of the loop, which looks at all before it."""
WITHOUT_CELL = frozenset(("no code", "not run again"))
_TOKENS = {"input": int, "output": int, "cached": int, "cost": (int, float, None)}
_NAMES = ("modules", "trusted", "without", "also", "classes", "granted", "functions")
_POLICY = {**{name: [str] for name in _NAMES}, "modules": ([str], None), "format_index": bool}
_SHAPES: dict[str, object] = {
    "run": {"task": str, "version": str, "python": str, "attempts": int, "inputs": {...: object}, "verify": bool,
            "files": {...: {"sha256": str}}, "name": (str, None), "user": str, "trust_level": str, "walls": str,
            "limits": {...: (int, float, None)}, "seed": (int, None), "policy": (_POLICY, None), "tools": [dict],
            "accepts": bool, "preload": [str], "mounts": [str], "classes": [str]},
    "begin": {"asked": str, "again": bool, "cells": int},
    "reply": {"step": int, "text": str, "requests": [{"name": str, "arguments": (dict, None)}], "finish": str,
              "tokens": _TOKENS},
    "tool": {"step": int, "name": str, "arguments": [object]},
    "accept": {"step": int},
    "cell": {"step": int, "number": int, "code": str, "state": str, "text": str, "signals": [[str]],
             "error": ({"type": str, "message": str}, None),
             "answer": ({"value": object, "verified_by": (str, None)}, None),
             "rolled_back": bool, "decision": str, "shown": str, "undoes": (int, None), "failure": (str, None)},
    "memory": {"observations": [str], "failed_approaches": [str], "variables": object},
    "decision": {"kind": str},
    "attempt kept": {"scores": [(float, None)]},
    "end": {"reason": str},
}  # fmt: skip
"""The shape of each event, and of a decision of that kind, for `fits`."""
_ABSENT = {"undoes": None, "failure": None}
"""Entries that logs of older versions lack."""


@dataclass(slots=True)
class PastStep:
    """One step: the model's reply, and what is known of what came of it."""

    number: int
    told: Event
    cell: Event | None = None
    calls: dict[str, list[Event]] = field(default_factory=dict)
    """Calls of tools by what `call_key` makes of them: each kind of call in its order."""
    accepts: list[Event] = field(default_factory=list)
    decisions: list[Event] = field(default_factory=list)
    memory: Event | None = None

    @property
    def went_back(self) -> Event | None:
        """The decision on how an exploration was undone."""
        return next((one for one in self.decisions if one["kind"] in ("rolled back", "not rolled back")), None)

    @property
    def has_begun(self) -> bool:
        """True if something of the log came after its reply: its cell has run."""
        return bool(self.calls or self.accepts) or any(one["kind"] != "context cut" for one in self.decisions)

    @property
    def ended(self) -> bool:
        """True if the loop was done with it."""
        return self.cell is not None or any(one["kind"] in WITHOUT_CELL for one in self.decisions)

    @property
    def redacted(self) -> bool:
        """True if its code is not in the log as it was."""
        return MASK in write_json([self.told["text"], self.told["requests"]])

    def reply(self) -> Reply:
        """The model's reply."""
        requests = tuple(ToolRequest("", one["name"], one["arguments"], "") for one in self.told["requests"])
        return Reply(
            text=self.told["text"],
            requests=requests,
            finish=self.told["finish"],
            tokens=Tokens(**self.told["tokens"]),
        )


@dataclass(slots=True)
class Past:
    """One attempt at a task. `end` is None where the program that ran it ended first."""

    steps: dict[int, PastStep] = field(default_factory=dict)
    memory: Event | None = None
    end: Event | None = None
    resumed: int = 0

    def interrupted(self) -> frozenset[int]:
        """The steps whose cells had not ended when their program did."""
        return frozenset(
            step.number
            for step in self.steps.values()
            if step.cell is not None and step.cell["decision"] == "interrupted"
        )

    def ended_steps(self) -> list[PastStep]:
        return [one for one in self.steps.values() if one.ended]


@dataclass(slots=True)
class PastRun:
    """A whole run, and its log. `scores` are those of its attempts, where there was more than one."""

    log: EventLog
    run: Event
    begin: Event | None = None
    attempts: dict[int, Past] = field(default_factory=dict)
    scores: list[float | None] = field(default_factory=list)

    @property
    def asked(self) -> str:
        """The prompt of the model."""
        return "" if self.begin is None else str(self.begin["asked"])

    @property
    def last_number(self) -> int:
        """The number of the newest cell that the log knows of its session, but for those that were undone.

        Once the session is opened again, the numbers of these are given anew.
        """
        number = 0 if self.begin is None else int(self.begin["cells"])
        steps = self.attempt(1).steps
        for step in steps.values():
            if step.cell is None:
                continue
            number = int(step.cell["number"])
            undoes: Any = step.cell.get("undoes")
            first = steps.get(undoes)
            if first is not None and first.cell is not None and (step.went_back or {}).get("kind") == "rolled back":
                number = int(first.cell["number"]) - 1
        return number

    def attempt(self, number: int) -> Past:
        """An attempt; of one that the log does not have, nothing."""
        return self.attempts.get(number) or Past()


async def past_run(path: str | os.PathLike[str], log: EventLog | None = None) -> PastRun:
    """The run that a file tells of, or the `log` that was read from it; LogError where it is none, or is damaged."""
    return await read_as_log(path, _read, path, log)


async def read_as_log(path: str | os.PathLike[str] | None, read: Callable[..., Made], *args: Any) -> Made:
    """Have `read` make something of a log, which may be long, in a thread. LogError where that is not as it expects."""
    with reading_log(f"{line(os.fspath(path or ''))} is"):
        return await off_loop(LARGE, read, *args)


def reading_log(what: str) -> AbstractContextManager[None]:
    """Around code that goes by what a log says: LogError where it fails, which says that `what` damaged."""
    return reading(what, LogError, hint="give a log as a run has written it", also=(MalformedValue,))


def call_key(name: str, arguments: object) -> str:
    """A key for calls of one tool with the same arguments, which are as a log has them."""
    return write_json([name, arguments])


def _read(path: str | os.PathLike[str], log: EventLog | None) -> PastRun:
    log = EventLog.read(path) if log is None else log
    past = PastRun(log, log.events[0])
    if past.run.get("state") or "trust_level" in past.run:
        _check(past.run, "run")
    for event in log.events[1:]:
        kind = event["event"]
        _check(event, kind)
        if kind == "begin":
            past.begin = event
        elif kind == "decision" and event["kind"] == "attempt kept":
            _check(event, "attempt kept")
            past.scores = event["scores"]
        else:
            _add(past.attempts.setdefault(event.get("attempt", 1), Past()), kind, event)
    return past


def _check(event: Event, kind: str) -> None:
    if type(event.get("attempt", 1)) is not int or not fits({**_ABSENT, **event}, _SHAPES.get(kind, object)):
        raise TypeError(f"the event {kind!r:.40} does not hold what one of its kind does")


def _add(past: Past, kind: str, event: Event) -> None:
    newest = next(reversed(past.steps.values()), None)
    match kind:
        case "reply":
            step = PastStep(int(event["step"]), event)
            step.reply()  # or raise
            if past.steps.setdefault(step.number, step) is not step or len(past.steps) > _MOST_STEPS:
                raise ValueError(f"another reply in step {step.number}, or more than {_MOST_STEPS:,} steps")
        case "resume":
            past.end, past.resumed = None, past.resumed + 1
        case "end":
            past.end = event
            _remember(past, event.get("memory"))
        case "memory":  # of older logs; now the events of a step and of the end have it
            _remember(past, event)
        case "cell":
            _of(past, event).cell = event
            _remember(past, event.get("memory"))
        case "tool":
            key = call_key(event["name"], event["arguments"])
            _of(past, event).calls.setdefault(key, []).append(event)
        case "accept":
            _of(past, event).accepts.append(event)
        case "decision" if newest is not None and event["step"] == newest.number:
            newest.decisions.append(event)


def _remember(past: Past, noted: Event | None) -> None:
    if noted is None:
        return
    _check(noted, "memory")
    past.memory = noted
    if (newest := next(reversed(past.steps.values()), None)) is not None:
        newest.memory = noted


def _of(past: Past, event: Event) -> PastStep:
    step = past.steps.get(int(event["step"]))
    if step is None:
        raise ValueError(f"{event['event']} of step {event['step']}, which has no reply")
    return step
