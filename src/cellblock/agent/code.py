"""`CodeAgent`: a model that thinks in code, behind walls."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from types import ModuleType
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack

from cellblock import __version__
from cellblock.agent.attempts import Verifier, best_of, branch_of, drop
from cellblock.agent.context import Context
from cellblock.agent.loop import Loop, answered
from cellblock.agent.memory import AgentMemory
from cellblock.agent.prompts import Prompts, contents, handed_over, system
from cellblock.agent.recording import accepting, describe_files, describe_inputs, python_version
from cellblock.agent.result import RunResult, Step, how_ended
from cellblock.agent.signals import NAMES, Setting, Tell, current
from cellblock.agent.task import Task, frozen_after
from cellblock.agent.trace import Trace, blocking_stream, stream
from cellblock.agent.workplace import Workplace
from cellblock.container import Container
from cellblock.errors import CellblockError
from cellblock.events import Event
from cellblock.hosting import to_thread
from cellblock.limits import ExecutionLimits, limits_of
from cellblock.models import Connected, connect
from cellblock.network import destinations
from cellblock.observe.log import FORMAT, EventLog
from cellblock.observe.redaction import Redactor
from cellblock.observe.spans import Span, Spans, spans_for
from cellblock.policy import Policy
from cellblock.session.arguments import modules_of
from cellblock.session.blocking import Session
from cellblock.session.hostloop import call
from cellblock.session.session import AsyncSession
from cellblock.state import State, no_state, state_or_type
from cellblock.text import half_made
from cellblock.tools.registry import Registry
from cellblock.tools.tool import Visibility
from cellblock.walls import TrustLevel, Walls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.agent.replay import Replay

One = TypeVar("One")

_DEEPEST = 3


class RunOptions(TypedDict, total=False):
    """The options of a run, which `CodeAgent.arun` describes."""

    inputs: Mapping[str, object] | None
    files: Mapping[str, bytes | str | os.PathLike[str]] | None
    attempts: int
    verifier: Verifier | None
    accept: Callable[[object], object] | None
    log: str | os.PathLike[str] | None
    tell: Tell | None
    session: AsyncSession | Session | None
    freezes: bool


class CodeAgent:
    """Solves tasks by writing Python that a session runs, cell by cell.

    `model` is the name of an endpoint's model, an object with `complete(messages, tools)`, a LangChain chat model or a
    `ScriptedModel`. `tools` are functions that the code calls by name; `fn`, `cls` and `module` register more.

    `state` says what outlives a run: None, nothing; `Live()`, the session with its names, and the agent's memory, as
    long as the agent is open; `Versioned(url)`, the same in a store, under `name` and `user`.

    With `verify_completion` each answer is checked by a cell of its own before it counts. `on_limit` says what follows
    when a run's steps are used up: a result that is `partial`, or `StepLimitReached`. `context_characters` bounds what
    a model is shown, at about four characters to a token. `redact` are patterns of what to keep out of logs.
    `telemetry` is an OpenTelemetry tracer provider: by default the one that the program has set, if any; False for
    none. `telemetry_content`: whether its spans have the texts. The other arguments are those of a session.
    """

    def __init__(
        self,
        model: str | object,
        *,
        tools: Iterable[Callable[..., Any]] = (),
        trust_level: TrustLevel = "isolated",
        limits: ExecutionLimits | None = None,
        state: State | None = None,
        name: str | None = None,
        user: str = "default",
        policy: Policy | None = None,
        verify_completion: bool = False,
        on_limit: Literal["return", "raise"] = "return",
        prompts: Prompts | None = None,
        context_characters: int = 200_000,
        redact: Iterable[str] = (),
        verbose: bool = False,
        telemetry: object = None,
        telemetry_content: bool = False,
        seed: int = 0,
        walls: Walls | None = None,
        preload: Iterable[str] = (),
        python: str | None = None,
        mounts: Mapping[str, str | os.PathLike[str]] | None = None,
        container: Container | str | None = None,
        network: Iterable[str] | None = None,
        private: bool | Iterable[str] = False,
    ) -> None:
        state = state_or_type(state)  # type: ignore[assignment]
        if isinstance(state, type):
            raise no_state(state)
        if on_limit not in ("return", "raise"):
            raise ValueError(f'on_limit must be "return" or "raise", not {on_limit!r}')
        if not isinstance(prompts, Prompts | None):
            raise TypeError(f"prompts must be Prompts, not {type(prompts).__name__}")
        self.model: Connected = connect(model)
        self.verify_completion = verify_completion
        self.on_limit = on_limit
        self.prompts = prompts or Prompts()
        self.memory = AgentMemory()
        """Notes, over all runs of an agent that has a state."""
        self._context_characters = context_characters
        self._redactor = Redactor(redact)
        self._verbose = verbose
        self._telemetry = telemetry, telemetry_content
        self._spans()
        guarded = trust_level == "local" or policy is not None
        options: dict[str, Any] = {
            "trust_level": trust_level,
            "user": user,
            "seed": seed,
            "walls": walls,
            "preload": modules_of(preload),
            "python": python,
            "mounts": mounts,
            "container": container,
            "network": _listed(network),
            "private": _listed(private),
        }
        destinations(options["network"] or ())
        self._registry = Registry(tools, guarded=guarded, policy=policy, reserved=NAMES)
        self._workplace = Workplace(self._registry, limits_of(limits), state=state, name=name, options=options)
        self._workplace.require_openable()

    @half_made
    def __repr__(self) -> str:
        level: str = self._workplace.options["trust_level"]
        return f"<{type(self).__name__} {self.model.name}, {level}>"

    @property
    def limits(self) -> ExecutionLimits:
        """Limits of its sessions and its runs."""
        return self._workplace.limits

    @property
    def state(self) -> State | None:
        """The state that outlives a run, if there is one."""
        return self._workplace.state

    @property
    def tools(self) -> tuple[Callable[..., Any], ...]:
        """Tools for a session of the caller's own, so that runs work in it: `Session(tools=agent.tools)`."""
        return self._workplace.tools

    # ------------------------------------------------------------------------ capabilities

    def fn(
        self, function: Callable[..., Any] | None = None, *, name: str | None = None, visibility: Visibility = "full"
    ) -> Any:
        """Register a function, as `@agent.fn`, `@agent.fn(visibility="signature")` or `agent.fn(f)`.

        At `local` it gets the cells' own objects; elsewhere it is called across the wall, with copies.
        """
        register = partial(self._register, partial(self._registry.fn, name=name, visibility=visibility))
        return register if function is None else register(function)

    def cls(
        self, cls: type | None = None, *, name: str | None = None, visibility: Visibility = "full", **grant: Any
    ) -> Any:
        """Register a class; `include`, `exclude` and the rest are as in `Policy.cls`, and need the guard.

        Without a guard the class must be one that the session can import.
        """
        register = partial(self._register, partial(self._registry.cls, name=name, visibility=visibility, **grant))
        return register if cls is None else register(cls)

    def module(
        self, module: ModuleType, *, name: str | None = None, visibility: Visibility = "full", **grant: Any
    ) -> ModuleType:
        """Register a module that code may import; `include` and `exclude` are as in `Policy.module`."""
        register = partial(self._registry.module, name=name, visibility=visibility, **grant)
        return self._register(register, module)

    def require_free(self, name: str) -> None:
        """ValueError for a name that an input cannot have, since the agent or something registered has it."""
        if name in NAMES or name in self._registry.names:
            raise ValueError(f"{name!r} is a name of the agent's own: give the input another one")

    @property
    def task(self) -> Task:
        """`@agent.task` makes a typed function whose body this agent fulfils; see `cellblock.agent.task`."""
        return Task(self.arun, self.require_free)

    def as_tool(self, *, name: str = "ask_agent", description: str = "", on_branch: bool = False) -> Callable[..., Any]:
        """This agent as a function that another agent's code can call with a task, and that returns the answer.

        `on_branch`: it works on a branch of the caller's live session, as that was before the calling cell. So it sees
        the same names and files, and what it changes there is its own.
        """

        async def ask(task: str) -> object:
            step = current.get(None)
            caller = None if step is None else step.setting
            if caller is not None and caller.depth >= _DEEPEST:
                raise RecursionError(f"agents already ask one another {_DEEPEST} levels deep")
            session = await branch_of(caller.session, name) if on_branch and caller is not None else None
            try:
                result = await self.arun(task, session=session)
            finally:
                if session is not None:
                    await drop(session)
            return answered(result).value

        ask.__name__ = ask.__qualname__ = name
        ask.__doc__ = description or "Ask another agent to do a task; gives its answer."
        return ask

    # ------------------------------------------------------------------------------- runs

    def run(self, task: str, **options: Unpack[RunOptions]) -> RunResult:
        """Work on a task until there is an answer; the blocking twin of `arun`, with its options.

        Ctrl-C ends the cell that runs and the run, leaves no process, and is raised here.
        """
        return call(self.arun, task, **options)

    async def arun(
        self,
        task: str,
        *,
        inputs: Mapping[str, object] | None = None,
        files: Mapping[str, bytes | str | os.PathLike[str]] | None = None,
        attempts: int = 1,
        verifier: Verifier | None = None,
        accept: Callable[[object], object] | None = None,
        log: str | os.PathLike[str] | None = None,
        tell: Tell | None = None,
        session: AsyncSession | Session | None = None,
        freezes: bool = False,
    ) -> RunResult:
        """Work on a task until there is an answer, or the steps are used up.

        `inputs` are bound to names first, and `files` written: bytes, or the path of a file of the host's. `attempts`
        are made at once, each on a branch of the session; `verifier` gives each result a number, and the highest is
        kept. `accept` is called with each answer, and returns it or raises what is wrong with it. `log` is the path of
        a file for the events, a line of JSON each. `tell` is called with what happens, as it does. `session` is one of
        the caller's to work in, opened with `tools=agent.tools`, for `run` a `Session`; it is not closed here.
        `freezes`: in a stored session, functions keep from the end of this run on the values of the names that they
        read; see `cellblock.agent.task.frozen_after`.

        Raises `TaskFailed` if the model says that the task cannot be done, `ModelError` if the model gives no answer.
        """
        if not isinstance(task, str):
            raise TypeError(f"a task must be a str, not {type(task).__name__}")
        if type(attempts) is not int or attempts < 1:
            raise ValueError(f"attempts must be a whole number of at least 1, not {attempts!r}")
        tell = Trace(self.limits.max_steps, tell) if self._verbose else tell
        if not isinstance(inputs, Mapping | None):
            raise TypeError(f"inputs must map names to values, not be a {type(inputs).__name__}")
        for what, function in (("verifier", verifier), ("accept", accept)):
            if function is not None and not callable(function):
                raise TypeError(f"{what} must be a function, not {function!r:.100}")
        inputs, written = inputs or {}, await contents(files or {})
        for name in inputs:
            self.require_free(name)
        async with self._logged(self._new_log(log)) as events:
            await events.add("run", partial(self._description, task, attempts, inputs, written, accept is not None))
            async with self.model, self._workplace.session(session) as (working, again):
                with self._span() as span:
                    setting = self._setting(working, events, tell, accept)
                    asked = await handed_over(self.prompts, working, task, inputs, written)
                    cells = await to_thread.run_sync(  # of a session that was resumed they are read from the store
                        lambda: max((cell.number for cell in working.notebook), default=0)
                    )
                    await events.add("begin", asked=asked, again=again, cells=cells)
                    loop = partial(self._loop, task=task, asked=asked)
                    async with frozen_after(working, events) if freezes else nullcontext():
                        if attempts == 1:
                            result = await loop(setting).run(again=again)
                        else:
                            result, kept = await best_of(attempts, setting, loop, verifier, again=again)
                            await self._workplace.keep(working, kept)
                            self.memory = result.memory if self.state is not None else self.memory
                    span.result(len(result.steps), result.tokens, partial=result.partial)
        return answered(result, self.on_limit)

    def resume(self, log: str | os.PathLike[str], **options: Any) -> RunResult:
        """Go on with a run whose program ended in the middle; the blocking twin of `aresume`, with its options."""
        return call(self.aresume, log, **options)

    async def aresume(
        self,
        log: str | os.PathLike[str],
        *,
        accept: Callable[[object], object] | None = None,
        tell: Tell | None = None,
    ) -> RunResult:
        """Go on with a run of this agent, whose state is `Versioned`, by the log that it wrote, and add to that.

        A cell that ran when the program ended is shown to the model as one that ended with it, and is not run again. A
        run that ended in an error of its model, or was cancelled, can be resumed too. LogError for a run that came to
        its end, or is another agent's; it says which.
        """
        from cellblock.agent.past import past_run
        from cellblock.agent.resuming import Resumed, require_resumable

        agent = {**self._workplace.description(), "accepts": accept is not None}
        require_resumable(await past_run(log), agent, log)
        async with self._workplace.session(None) as (working, _), self.model:
            past = await past_run(log)  # again: only the program that holds the session writes the log
            with self._span() as span:
                async with self._logged(past.log.reopened(self._redactor)) as events:
                    require_resumable(past, agent, log)
                    await events.add("resume", size=0, version=__version__)
                    before = past.attempt(1)
                    if self._verbose:
                        tell = Trace(self.limits.max_steps, tell, before=len(before.ended_steps()))
                    setting = self._setting(working, events, tell, accept)
                    context = self._context(past.asked)
                    loop = Resumed(setting, past.run["task"], context, past=before, last=past.last_number)
                    result = await loop.resume()
                span.result(len(result.steps), result.tokens, partial=result.partial)
        return answered(result, self.on_limit)

    def replay(self, *logs: str | os.PathLike[str], **options: Any) -> Replay:
        """Do logged runs of this agent again, without its model and without calling tools; see `areplay`."""
        from cellblock.agent.replay import replay

        return replay(*logs, agent=self, **options)

    async def areplay(self, *logs: str | os.PathLike[str], **options: Any) -> Replay:
        """The async twin of `replay`; `cellblock.agent.replay.areplay` has the options."""
        from cellblock.agent.replay import areplay

        return await areplay(*logs, agent=self, **options)

    def stream(self, task: str, **options: Unpack[RunOptions]) -> Iterator[str | Event | Step | RunResult]:
        """Work on a task and yield what happens: pieces of the model's text, what cells show, steps, the result last.

        A caller that stops iterating before the end ends the run.
        """
        return blocking_stream(partial(self.arun, task, **options))

    def astream(self, task: str, **options: Unpack[RunOptions]) -> AsyncGenerator[str | Event | Step | RunResult, None]:
        """The async twin of `stream`."""
        return stream(partial(self.arun, task, **options))

    def close(self) -> None:
        """End the session of an agent that has a state. It opens again with the next run."""
        call(self.aclose)

    async def aclose(self) -> None:
        """The async twin of `close`."""
        await self._workplace.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # ------------------------------------------------------------------------- what it does

    def _spans(self) -> Spans:
        provider, content = self._telemetry
        return spans_for(provider, self._redactor, content=content, version=__version__)

    def _span(self) -> AbstractContextManager[Span]:
        level, name = self._workplace.options["trust_level"], self._workplace.name
        return self._spans().run(type(self).__name__, self.model, level=level, session=name)

    def _new_log(self, path: str | os.PathLike[str] | None) -> EventLog:
        return EventLog(path, redactor=self._redactor)

    @staticmethod
    @asynccontextmanager
    async def _logged(events: EventLog) -> AsyncIterator[EventLog]:
        """A run's log, which ends with how the run ended."""
        try:
            yield events
        except BaseException as error:
            if events.failure is None and (not events.events or events.events[-1]["event"] != "end"):
                end = {"value": None, "verified_by": None, "steps": None, "tokens": None, "memory": None}
                await events.add("end", size=0, reason=how_ended(error), **end)
            raise
        finally:
            events.close()

    def _setting(
        self,
        session: AsyncSession,
        events: EventLog,
        tell: Tell | None,
        accept: Callable[[object], object] | None,
    ) -> Setting:
        caller, events.held = current.get(None), session._account.share()
        return Setting(
            model=self.model,
            session=session,
            log=events,
            memory=self.memory if self.state is not None else AgentMemory(),
            prompts=self.prompts,
            limits=self.limits,
            verify=self.verify_completion,
            accept=None if accept is None else accepting(accept),
            tell=tell,
            spans=self._spans(),
            depth=0 if caller is None else caller.setting.depth + 1,
        )

    def _loop(self, setting: Setting, *, task: str, asked: str) -> Loop:
        return Loop(setting, task, self._context(asked))

    def _context(self, asked: str) -> Context:
        place = self._workplace
        text = system(self.prompts, place.registry, place.limits, place.options)
        return Context(text, asked, budget=self._context_characters)

    def _description(
        self, task: str, attempts: int, inputs: Mapping[str, object], files: Mapping[str, bytes], accepts: bool
    ) -> dict[str, object]:
        """A run's description for its log: all that it takes to do it again, as far as a log can hold it."""
        return {
            "format": FORMAT,
            "version": __version__,
            "python": python_version(),
            "task": task,
            "model": self.model.name,
            **self._workplace.description(),
            "verify": self.verify_completion,
            "accepts": accepts,
            "attempts": attempts,
            "inputs": describe_inputs(inputs),
            "files": describe_files(files),
        }

    def _register(self, register: Callable[[One], None], one: One) -> One:
        """Register what is given, and give it back."""
        if self._workplace.is_open:
            raise CellblockError(
                "nothing more can be registered while the agent's session is open",
                hint="register before the first run, or close() the agent first",
            )
        register(one)
        return one


def _listed(given: Any) -> Any:
    """An argument of several texts, which each session of the agent reads anew; what is no such is its to refuse."""
    return given if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
