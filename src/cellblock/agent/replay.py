"""A logged run, done again without its model: where what its cells show differs from what the log says.

The loop is the one that ran it. The model's replies come from the log, and so do the answers of tools, which are not
called: what is the same then is what the cells, the walls and the loop made of them.
"""

from __future__ import annotations

import base64
import contextlib
import inspect
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Self

from cellblock import __version__
from cellblock.agent import describing
from cellblock.agent.briefing import contents
from cellblock.agent.code import CodeAgent
from cellblock.agent.comparing import Replay, compare
from cellblock.agent.context import Context
from cellblock.agent.loop import Loop
from cellblock.agent.memory import AgentMemory
from cellblock.agent.past import Past, PastRun, call_key, past_run, read_as_log, reading_log
from cellblock.agent.recording import from_plain, is_whole, raised
from cellblock.agent.setting import Setting
from cellblock.agent.signals import said
from cellblock.agent.workplace import Workplace
from cellblock.container import Container, default_image
from cellblock.errors import LogError, ModelError, TaskFailed
from cellblock.limits import ExecutionLimits
from cellblock.models import Message, OnText, Reply, ScriptedModel, ToolSchema
from cellblock.models.protocol import Unopened
from cellblock.network import destinations
from cellblock.observe.log import EventLog
from cellblock.observe.redaction import BYTES, MASK
from cellblock.policy import Policy
from cellblock.session.hostloop import call
from cellblock.session.session import AsyncSession
from cellblock.session.settings import narrowed
from cellblock.state import Live
from cellblock.text import line, text_of, write_json
from cellblock.tools.stubs import Written
from cellblock.tools.tool import tool as declared
from cellblock.values.portable import MalformedValue
from cellblock.walls import TrustLevel, Walls

_LEFT_OUT = "This cell had not ended when its program did, and is not run again."

PathLike = str | os.PathLike[str]


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
    said = {name: value for name, value in options.items() if value}
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
            await read_as_log(path, _note_versions, past, done)
            asked = await read_as_log(path, _inputs, past, path, inputs or {})
            written = await read_as_log(path, _files, past, path, given, done)
            scripts = await read_as_log(path, _scripts, past, done)
            with reading_log(f"the run in {line(path)} cannot be done again, its log is"):
                await replaying.again(past, asked, written, scripts)
            await read_as_log(path, compare, number, past, await past_run(path, replaying.log), done)
    return done


# ------------------------------------------------------------------------------- doing it again


class _Replaying(CodeAgent):
    """An agent that answers its model and its tools from a log."""

    log: EventLog
    _scripts: Callable[[int], _Script]

    @classmethod
    def like(cls, agent: CodeAgent, workplace: Workplace) -> Self:
        """The same agent, elsewhere."""
        made = object.__new__(cls)
        made.__dict__.update(agent.__dict__)
        made.model, made.memory = ScriptedModel([]), AgentMemory()
        made._workplace, made._verbose, made._telemetry = workplace, False, (False, False)
        return made

    async def again(
        self,
        past: PastRun,
        inputs: Mapping[str, object],
        files: Mapping[str, bytes],
        scripts: Callable[[int], _Script],
    ) -> None:
        """Do a run again; how it ends is in its log."""
        self._scripts = scripts
        scores = dict(enumerate(past.scores, 1))
        with contextlib.suppress(TaskFailed, ModelError):  # as the log may have it, too: the two are compared
            await self.arun(
                past.run["task"],
                inputs=inputs,
                files=files,
                attempts=past.run["attempts"],
                verifier=lambda result: scores.get(result.attempt) or 0.0,
                accept=(lambda value: value) if past.run["accepts"] else None,
            )

    def _new_log(self, path: PathLike | None) -> EventLog:
        self.log = super()._new_log(path)
        return self.log

    def _loop(self, setting: Setting, *, asked: str, task: str, accept: Callable[[object], object] | None) -> Loop:
        script = self._scripts(setting.attempt)
        setting.model, setting.answers = script, script.call
        if accept is not None:
            accept = script.accept
        loop = super()._loop(setting, asked=asked, task=task, accept=accept)
        return _ReplayedLoop(setting, task, loop.context, interrupted=script.interrupted)


class _ReplayedLoop(Loop):
    """The loop, but that cells which had not ended with their host are not run."""

    def __init__(self, setting: Setting, task: str, context: Context, *, interrupted: frozenset[int]) -> None:
        super().__init__(setting, task, context)
        self._interrupted = interrupted

    async def _act(self, number: int, reply: Reply) -> Any:
        if number not in self._interrupted:
            return await super()._act(number, reply)
        self.context.reply(reply.text)
        await self._note_no_cell(number, reply, "interrupted", _LEFT_OUT)
        return None


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
        step = said.get().step
        if not (left := self._accepts.get(step)):
            raise RuntimeError(f"the log has no answer in step {step} that was checked")
        found = left.popleft()
        given = value if "error" not in found and not is_whole(found["answer"]) else None
        return given if given is not None else self._answer(found, f"step {step}: what the host made of the answer")

    def _answer(self, found: Mapping[str, Any], what: str) -> object:
        if "error" in found:
            raise raised(*found["error"])
        answer = found["answer"]
        try:
            value = from_plain(answer)
        except MalformedValue:
            value, answer = None, {"opaque": ["", "", "redacted"]}
        if isinstance(answer, dict) and "opaque" in answer:
            _, _, reason = answer["opaque"]
            if reason in (describing.TOO_LARGE, "redacted"):
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
    workplace = agent._workplace.afresh(ExecutionLimits(**options.pop("limits")), **options)
    replaying = _Replaying.like(agent, workplace)
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
        content = given.get(name, _content(told))
        if content is None:
            hint = f"give it: files= (--file LOCAL:{line(name)})"
            raise LogError(f"the file {line(name)!r} is not in {path}", hint=hint)
        if describing.digest(content) != told["sha256"]:
            done.notes.append(f"the file {line(name)!r} is not the one that the run had")
        found[name] = content
    return found


def _content(told: Mapping[str, Any]) -> bytes | None:
    if "text" in told:
        return text_of(told["text"], max_chars=sys.maxsize).encode()
    if "base64" in told and told["base64"] != MASK:
        return base64.b64decode(told["base64"].removeprefix(BYTES))
    return None


def _scripts(past: PastRun, done: Replay) -> Callable[[int], _Script]:
    """The scripts of a run's attempts, by their numbers."""
    made = {number: _Script(attempt, done) for number, attempt in past.attempts.items()}
    return lambda number: made.get(number) or _Script(Past(), done)


def _note_versions(past: PastRun, done: Replay) -> None:
    run, here = past.run, describing.python_told()
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
