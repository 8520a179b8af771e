"""A logged run, done again without its model: where what its cells show differs from what the log says.

The loop is the one that ran it. The model's replies come from the log, and so do the answers of tools, which are not
called: what is the same then is what the cells, the walls and the loop made of them.
"""

from __future__ import annotations

import contextlib
import inspect
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from cellblock import __version__
from cellblock.agent.code import CodeAgent
from cellblock.agent.loop import Loop
from cellblock.agent.memory import AgentMemory
from cellblock.agent.past import Past, PastRun, PastStep, call_key, past_run, read_as_log, reading_log
from cellblock.agent.prompts import contents
from cellblock.agent.recording import (
    TOO_LARGE,
    accepting,
    content_of,
    digest,
    exception_of,
    from_plain,
    is_whole,
    python_version,
)
from cellblock.agent.signals import Setting, current
from cellblock.agent.workplace import Workplace
from cellblock.container import Container, default_image
from cellblock.errors import LogError, ModelError, TaskFailed
from cellblock.limits import ExecutionLimits
from cellblock.models import Message, OnText, Reply, ScriptedModel, ToolSchema
from cellblock.models.protocol import Unopened
from cellblock.network import destinations
from cellblock.observe.log import Event, EventLog
from cellblock.observe.redaction import MASK
from cellblock.policy import Policy
from cellblock.session.hostloop import call
from cellblock.session.session import AsyncSession
from cellblock.session.settings import narrowed
from cellblock.state import Live
from cellblock.text import line, represent, write_json
from cellblock.tools.stubs import Written
from cellblock.tools.tool import tool as declared
from cellblock.values.portable import MalformedValue
from cellblock.walls import TrustLevel, Walls

_COMPARED = ("state", "text", "error", "value", "signals", "answer", "lost", "rolled_back", "decision")
_REGULAR = ("answered", "steps used up", "failed")
_MOST = 2_000

_Row = tuple[str, object, object]
"""A difference: its name, the logged value and the replayed one."""

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that came out otherwise. `step` is None for the run as a whole; `run` is the place of its log."""

    run: int
    attempt: int
    step: int | None
    what: str
    logged: str
    replayed: str


@dataclass(slots=True, kw_only=True)
class Replay:
    """Outcome of doing runs again. `notes` say what the logs did not hold, and what was not as it was then."""

    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cells: int = 0
    calls: int = 0

    @property
    def same(self) -> bool:
        """True if all came out as the logs say."""
        return not self.differences


def replay(*logs: PathLike, agent: CodeAgent | None = None, **options: Any) -> Replay:
    """The blocking twin of `areplay`, with its options."""
    return call(areplay, *logs, agent=agent, **options)


async def areplay(
    *logs: PathLike,
    agent: CodeAgent | None = None,
    inputs: Mapping[str, object] | None = None,
    files: Mapping[str, bytes | str | os.PathLike[str]] | None = None,
    mounts: Mapping[str, str | os.PathLike[str]] | None = None,
    walls: Walls | None = None,
    network: Iterable[str] | None = None,
    trust_level: TrustLevel | None = None,
    limits: ExecutionLimits | None = None,
    policy: Policy | None = None,
    container: Container | str | None = None,
    attempts: int = 16,
) -> Replay:
    """Do the runs of logs again, one after the other in one session, and compare.

    `agent` is the one that made them, where they used classes or modules of its program; else tools are stand-ins
    made of their signatures. `inputs` and `files` are those that were too large for the log; files are known by their
    digests.

    A log decides nothing that widens what its code reaches. `mounts`, `network`, a `container` and weaker `walls` or a
    weaker `trust_level` than "isolated" are given by whoever replays, or are those of `agent`; so are packages that
    a `policy` trusts at "local", limits above the usual `limits`, and more than `attempts` at a task. The seed, a
    stronger level and lower limits are the log's.

    LogError for what is no log, and for a run that cannot be done again; it says why.
    """
    if not logs:
        raise ValueError("give at least one log to replay")
    options: dict[str, Any] = {
        "mounts": mounts,
        "walls": walls,
        "network": None if network is None else list(network),
        "trust_level": trust_level,
        "container": container,
    }
    said = {name: value for name, value in options.items() if value is not None}
    given_alone = {**options, "container": None}  # that may be for the level of the log
    AsyncSession(state=Live(), limits=limits, policy=policy, **given_alone)  # or raise: the caller is wrong, and no log
    pasts = [await past_run(path) for path in logs]
    given = await contents(files or {})
    done = Replay()
    first = pasts[0]
    if first.begin is not None and first.begin["again"]:
        raise LogError(
            f"the run in {logs[0]} continued the session of earlier runs",
            hint="give the logs of those runs before it, in order",
        )
    replaying: _Replaying = await read_as_log(logs[0], _agent_for, logs[0], first, agent, said, limits, policy, done)
    async with replaying:
        for number, (path, past) in enumerate(zip(logs, pasts, strict=True), 1):
            if not 1 <= (made := past.run.get("attempts", 0)) <= attempts:
                hint = f"if you trust it, give attempts={made}"
                raise LogError(f"the run in {path} was of {made} attempts", hint=hint)
            await replaying.again(path, past, inputs or {}, given)
            await read_as_log(path, _compare, number, past, await past_run(path, replaying.log), done)
    return done


# ------------------------------------------------------------------------------- doing it again


class _Replaying(CodeAgent):
    """An agent that answers its model and its tools from a log."""

    log: EventLog
    _done: Replay
    _scripts: Mapping[int, _Script]

    @classmethod
    def like(cls, agent: CodeAgent, workplace: Workplace, done: Replay) -> Self:
        """A copy of an agent that works in `workplace`."""
        made = object.__new__(cls)
        made.__dict__.update(agent.__dict__)
        made.model, made.memory = ScriptedModel([]), AgentMemory()
        made._workplace, made._verbose, made._telemetry = workplace, False, (False, False)
        made._done = done
        return made

    async def again(
        self, path: PathLike, past: PastRun, inputs: Mapping[str, object], files: Mapping[str, bytes]
    ) -> None:
        """Do a run again, with those of these inputs and files that the log lacks; how it ends is in its log."""
        asked, written = await read_as_log(path, self._prepare, path, past, inputs, files)
        scores = dict(enumerate(past.scores, 1))
        with (
            reading_log(f"the run in {line(path)} cannot be done again, its log is"),
            contextlib.suppress(TaskFailed, ModelError),  # as the log may have it, too: the two are compared
        ):
            await self.arun(
                past.run["task"],
                inputs=asked,
                files=written,
                attempts=past.run["attempts"],
                verifier=lambda result: scores.get(result.attempt) or 0.0,
                accept=(lambda value: value) if past.run["accepts"] else None,
            )

    def _prepare(
        self, path: PathLike, past: PastRun, inputs: Mapping[str, object], files: Mapping[str, bytes]
    ) -> tuple[dict[str, object], dict[str, bytes]]:
        """The inputs and the files of a run; its scripts are made ready."""
        _note_versions(past, self._done)
        found = _inputs(past, path, inputs), _files(past, path, files, self._done)
        self._scripts = {number: _Script(attempt, self._done) for number, attempt in past.attempts.items()}
        return found

    def _new_log(self, path: PathLike | None) -> EventLog:
        self.log = super()._new_log(path)
        return self.log

    def _loop(self, setting: Setting, *, task: str, asked: str) -> Loop:
        script = self._scripts.get(setting.attempt) or _Script(Past(), self._done)
        setting.model, setting.answers, setting.interrupted = script, script.call, script.interrupted
        if setting.accept is not None:
            setting.accept = accepting(script.accept)
        return super()._loop(setting, task=task, asked=asked)


class _Script(Unopened):
    """An attempt of a log, as a model and as tools. Each reply and each answer is given once, in its step.

    After the last reply the model has the error that it had.
    """

    name = "log"

    def __init__(self, past: Past, done: Replay) -> None:
        self.interrupted = past.interrupted()
        self._replies = deque(one.reply() for one in past.ended_steps())
        steps = past.steps.values()
        self._calls = {(step.number, key): deque(calls) for step in steps for key, calls in step.calls.items()}
        self._accepts = {step.number: deque(step.accepts) for step in steps}
        self._done = done

    async def reply(self, messages: list[Message], tools: list[ToolSchema], on_text: OnText | None = None) -> Reply:
        if not self._replies:
            raise ModelError("the log has no more replies", kind="script")
        return self._replies.popleft()

    def call(self, step: int, name: str, arguments: list[object]) -> object:
        """The answer that the log has to such a call: the first that is left of this step."""
        self._done.calls += 1
        if not (left := self._calls.get((step, call_key(name, arguments)))):
            raise RuntimeError(f"the log has no such call of {name}() in step {step}, and nothing is called")
        return self._answer(left.popleft(), f"step {step}: the answer of {name}()")

    def accept(self, value: object) -> object:
        """The value that the host made of an answer."""
        step = current.get().step
        if not (left := self._accepts.get(step)):
            raise RuntimeError(f"the log has no answer in step {step} that was checked")
        found = left.popleft()
        if value is not None and "error" not in found and not is_whole(found["answer"]):
            return value
        return self._answer(found, f"step {step}: what the host made of the answer")

    def _answer(self, found: Mapping[str, Any], what: str) -> object:
        if "error" in found:
            raise exception_of(*found["error"])
        answer = found["answer"]
        try:
            value = from_plain(answer)
        except MalformedValue:
            value, answer = None, {"opaque": ["", "", "redacted"]}
        if isinstance(answer, dict) and "opaque" in answer:
            _, _, reason = answer["opaque"]
            if reason in (TOO_LARGE, "redacted"):
                self._done.notes.append(f"{what} is not in the log: {line(reason)}")
                raise RuntimeError(self._done.notes[-1])
            return object()  # it could not cross then, and cannot now
        return value


# ------------------------------------------------------------------------------- what it takes


def _agent_for(
    path: PathLike,
    past: PastRun,
    agent: CodeAgent | None,
    said: Mapping[str, Any],
    limits: ExecutionLimits | None,
    policy: Policy | None,
    done: Replay,
) -> _Replaying:
    run = past.run
    if "trust_level" not in run:
        raise LogError(f"the run in {path} ran no cells", hint="replay is for runs of a CodeAgent")
    if agent is None:
        told = run["policy"]
        hosts = [*run["classes"], *(told["classes"] + told["granted"] + told["functions"] if told else ())]
        if hosts:
            raise LogError(
                f"the run in {path} used what only its program has: {', '.join(hosts)}",
                hint="replay it there: replay(log, agent=agent)",
            )
        options = _options(path, run, said, limits or ExecutionLimits(), done)
        level = options["trust_level"]
        tools, policy = map(_stand_in, run["tools"]), policy or _policy_of(path, run, level)
        agent = CodeAgent(ScriptedModel([]), tools=[*tools], trust_level=level, policy=policy)
    else:
        own = agent._workplace.options
        names = ("trust_level", "walls", "mounts", "network", "container", "preload")
        said = {**{name: own[name] for name in names if own[name]}, **said}
        options = _options(path, run, said, limits or agent._workplace.limits, done)
    workplace = agent._workplace.afresh(ExecutionLimits(**options.pop("limits")), policy, **options)
    own_policy = workplace.registry.policy
    if options["trust_level"] != "local" and own_policy is not None and own_policy.functions:
        granted = ", ".join(grant.name for grant in own_policy.functions)
        raise LogError(
            f"the policy grants {line(granted)}, which a replay would call",
            hint="make them tools of the agent, which the log answers for; or give policy= without them",
        )
    replaying = _Replaying.like(agent, workplace, done)
    replaying.verify_completion, replaying.on_limit = run["verify"], "return"
    return replaying


def _options(
    path: PathLike, run: Mapping[str, Any], said: Mapping[str, Any], limits: ExecutionLimits, done: Replay
) -> dict[str, Any]:
    """Options of a replay's session: those of the caller, and those of the log that are no wider."""
    missing = sorted(set(run["mounts"]) - set(said.get("mounts", ())))
    if missing:
        raise LogError(f"the run in {path} saw the mount {line(missing[0])!r}", hint="give mounts= (--mount NAME=PATH)")
    if not set(run.get("network", ())) <= set(map(str, destinations(said.get("network", ())))):
        raise LogError(
            f"the run in {path} could connect to {', '.join(map(line, run['network']))}",
            hint="give network= (--network HOST:PORT)",
        )
    usual: dict[str, Any] = {"trust_level": "isolated", "walls": "full", "preload": [], "seed": None}
    settings, left_out = narrowed(run, {**usual, "limits": asdict(limits), **said}, frozenset(said))
    for name, option in (("trust_level", "--trust-level"), ("walls", "--walls")):
        if name not in said and (level := run[name]) != settings[name]:
            hint = f"if you trust it, give {name}={line(level)!r} ({option} {line(level)})"
            raise LogError(f"the run in {path} had {name}={line(level)!r}", hint=hint)
    image = run.get("image")
    if settings["trust_level"] == "sandboxed" and "container" not in said and image not in (None, default_image()):
        raise LogError(f"the run in {path} was in the image {line(image)!r}", hint="give container= (--image NAME)")
    if left_out:
        done.notes.append(f"not taken from the log: {', '.join(left_out)}")
    return settings


def _policy_of(path: PathLike, run: Mapping[str, Any], level: str) -> Policy | None:
    """The policy of a log: behind walls it takes away, and at local whoever replays names what it adds."""
    told = run["policy"]
    if told is None:
        return None
    if level == "local" and (added := [*told["trusted"], *told["also"]]):
        raise LogError(f"the run in {path} trusted {line(', '.join(added))}", hint="give policy= or agent=")
    try:
        return Policy(**{name: told[name] for name in ("modules", "trusted", "without", "also", "format_index")})
    except ValueError as error:
        raise LogError(f"the policy in {path} cannot be: {line(str(error))}", hint="give policy=") from error


def _stand_in(spec: Mapping[str, Any]) -> Callable[..., Any]:
    """A function with the signature of a logged one. It is never called: the log answers in its place."""

    def tool(*_: object, **__: object) -> object:
        raise AssertionError("the log answers")

    async def async_tool(*_: object, **__: object) -> object:
        raise AssertionError("the log answers")

    made: Any = declared(outward=spec.get("outward") is True)(async_tool if spec["is_async"] else tool)
    made.__name__ = made.__qualname__ = spec["name"]
    made.__doc__ = spec["doc"]
    empty = inspect.Parameter.empty
    made.__signature__ = inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect._ParameterKind(kind),
                default=empty if default is None else Written(default),
                annotation=empty if annotation is None else annotation,
            )
            for name, kind, default, annotation in spec["parameters"]
        ],
        return_annotation=empty if spec["returns"] is None else spec["returns"],
    )
    return made  # type: ignore[no-any-return]


def _inputs(past: PastRun, path: PathLike, given: Mapping[str, object]) -> dict[str, object]:
    found = {}
    for name, tree in past.run["inputs"].items():
        if name in given:
            found[name] = given[name]
        elif is_whole(tree):
            found[name] = from_plain(tree)
        else:
            said = f"the log {path} does not hold the input {line(name)!r}"
            raise LogError(said, hint="give it: replay(log, inputs=…)")
    return found


def _files(past: PastRun, path: PathLike, given: Mapping[str, bytes], done: Replay) -> dict[str, bytes]:
    found = {}
    for name, told in past.run["files"].items():
        content = given.get(name, content_of(told))
        if content is None:
            hint = f"give it: files= (--file LOCAL:{line(name)})"
            raise LogError(f"the file {line(name)!r} is not in {path}", hint=hint)
        if digest(content) != told["sha256"]:
            done.notes.append(f"the file {line(name)!r} is not the one that the run had")
        found[name] = content
    return found


def _note_versions(past: PastRun, done: Replay) -> None:
    run, here = past.run, python_version()
    if run["python"] != here:
        done.notes.append(f"the run was on {line(run['python'])}, and this is {here}")
    if run["version"] != __version__:
        done.notes.append(f"the run was of cellblock {line(run['version'])}, and this is {__version__}")
    if MASK in write_json([run["inputs"], run["files"]]) or any(
        step.redacted for attempt in past.attempts.values() for step in attempt.steps.values()
    ):
        done.notes.append("secrets were taken out of the log: what had them was replayed without")
    for attempt in past.attempts.values():
        steps = attempt.steps.values()
        done.notes += [f"step {step.number} had not ended: not replayed" for step in steps if not step.ended]
        done.notes += [
            f"step {number} ended with its program: not replayed" for number in sorted(attempt.interrupted())
        ]


# ------------------------------------------------------------------------------- what differs


def _compare(run: int, past: PastRun, again: PastRun, done: Replay) -> None:
    """Add the differences between a logged run and the same one done again."""
    left_out = {"lost"} if past.run["state"] == "Versioned" else set()  # a live session says nothing of stores
    compared = [what for what in _COMPARED if what not in left_out]

    def note(attempt: int, step: int | None, rows: Iterable[_Row]) -> None:
        for what, logged, replayed in rows:
            found = {"what": what, "logged": _shown(logged), "replayed": _shown(replayed)}
            done.differences.append(Difference(run=run, attempt=attempt, step=step, **found))

    for number, attempt in sorted(past.attempts.items()):
        other, interrupted = again.attempt(number), attempt.interrupted()
        for step in attempt.ended_steps():
            if step.number not in interrupted:
                done.cells += step.cell is not None
                note(number, step.number, _of_step(step, other.steps.get(step.number), compared))
        note(number, None, _of_end(attempt, other))


def _of_step(step: PastStep, other: PastStep | None, compared: Iterable[str]) -> Iterator[_Row]:
    """Differences in a step."""
    if other is None or (step.cell is not None and other.cell is None):
        yield "cell", "ran", "was not run"
        return
    if step.cell is not None and other.cell is not None:
        yield from _differing("", compared, step.cell, other.cell)
    for added in _beyond(other, step):
        yield "call", "", added
    for missing in _beyond(step, other):
        yield "call", missing, ""
    given, given_again = ([one["given"] for one in each.accepts] for each in (step, other))
    if given != given_again:
        yield "given", given, given_again
    if step.memory is not None and other.memory is not None:
        parts = ("observations", "failed_approaches", "variables")
        yield from _differing("memory.", parts, step.memory, other.memory)


def _of_end(past: Past, other: Past) -> Iterator[_Row]:
    """Differences in the end of an attempt that ended by itself."""
    if past.end is None or past.end["reason"] not in _REGULAR:
        return
    for what in ("reason", "value", "verified_by"):
        found = None if other.end is None else other.end[what]
        if past.end[what] != found:
            yield "ended" if what == "reason" else what, past.end[what], found


def _differing(prefix: str, names: Iterable[str], event: Event, other: Event) -> Iterator[_Row]:
    for name in names:
        if event[name] != other[name]:
            yield f"{prefix}{name}", event[name], other[name]


def _shown(found: object) -> str:
    """A part of an event, for people."""
    if isinstance(found, str):
        return found[:_MOST]
    if isinstance(found, dict) and {"type", "message"} == set(found):
        return f"{found['type']}: {found['message']}"[:_MOST]
    return write_json(found, escaped=False)[:_MOST]


def _beyond(step: PastStep, other: PastStep) -> Iterator[str]:
    """The calls of tools that the other does not have as often."""
    for key, calls in step.calls.items():
        yield from (_call(one["name"], one["arguments"]) for one in calls[len(other.calls.get(key, ())) :])


def _call(name: str, arguments: Iterable[object]) -> str:
    args, kwargs = (_valued(one) for one in arguments)
    given = [represent(one, max_chars=_MOST) for one in (args if isinstance(args, list) else ())]
    named = kwargs.items() if isinstance(kwargs, dict) else ()
    given += [f"{key}={represent(value, max_chars=_MOST)}" for key, value in named]
    return f"{name}({', '.join(given)})"[:_MOST]


def _valued(tree: object) -> object:
    try:
        return from_plain(tree)
    except MalformedValue:
        return tree
