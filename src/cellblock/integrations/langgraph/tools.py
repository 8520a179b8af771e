"""The tools: what a model is told of each, and how a call becomes an operation on the session of its thread."""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import BaseModel, Field, ValidationError

from cellblock.errors import CellblockError
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.integrations.langgraph import operations
from cellblock.integrations.langgraph.operations import Call, Told, key_of
from cellblock.integrations.langgraph.prepared import CONTENT_TOOLS, RUN, WRITE, id_of, ids_of, last_answer, why_none
from cellblock.integrations.langgraph.state import PENDING, content_for, field_of, misfit, taken
from cellblock.integrations.langgraph.threads import Threads
from cellblock.session.session import AsyncSession
from cellblock.text import message_of, misfits, row, type_name

_MOST_SAID = 10_000
_LOG = logging.getLogger(__name__)
_PATH = "A file's name: relative to the working directory, or below /tmp or /data. Code opens it under the same name."


class _Described(BaseModel):
    file_path: str = Field(description=_PATH)
    description: str = Field(default="", description="What it is, in a few words.")


class _Code(BaseModel):
    code: str = Field(description="Python source.")


class _File(BaseModel):
    file_path: str = Field(description=_PATH)


class _Read(_File):
    offset: int = Field(default=0, ge=0, le=2**53, description="The first line that is shown, counted from 0.")
    limit: int = Field(default=500, ge=1, description="How many lines are shown.")


class _Edit(_File):
    old_string: str = Field(description="What is replaced, to the letter. It must be in the file exactly once.")
    new_string: str = Field(description="What stands there instead.")
    replace_all: bool = Field(default=False, description="Replace it wherever it is.")


class _Below(BaseModel):
    directory: str = Field(default="", description="Only what is below this directory.")


class _Glob(_Below):
    pattern: str = Field(description="Such as *.csv, for files in any directory, or src/**/*.py.")


class _Grep(_Below):
    pattern: str = Field(description="A regular expression of Python, looked for in each line.")
    glob: str = Field(default="", description="Only in files whose names match, such as *.py.")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A tool. Its text is what the model reads of it."""

    text: str
    arguments: type[BaseModel]
    operation: Callable[[AsyncSession, Call], Awaitable[Told]]


_KEPT = "Names, imports and files are kept from one call to the next."
_BLOCK = (
    "It takes no content: write the {what} in your message, in one fenced block between ```{tag} and ```, and call "
    "this in the same message. With several calls, write one block for each, in their order."
)
_KINDS = {
    RUN: _Kind(
        f"Save Python code to a file and run it. {_BLOCK.format(what='code', tag='python')} {_KEPT}",
        _Described,
        operations.run_prepared,
    ),
    WRITE: _Kind(
        f"Create a file, or replace it. {_BLOCK.format(what='content', tag='csv (or another tag)')}",
        _Described,
        operations.write,
    ),
    "python_run": _Kind(f"Run a few lines of Python. {_KEPT}", _Code, operations.run),
    "python_run_file": _Kind(f"Run a Python file. {_KEPT}", _File, operations.run_file),
    "file_read": _Kind("Show lines of a text file.", _Read, operations.read),
    "file_list": _Kind("List all files with their sizes.", _Below, operations.list_files),
    "file_edit": _Kind("Replace a piece of a text file by another.", _Edit, operations.edit),
    "file_delete": _Kind("Remove a file.", _File, operations.delete),
    "file_glob": _Kind("Find files by their names.", _Glob, operations.glob),
    "file_grep": _Kind("Find lines in files.", _Grep, operations.grep),
}
TOOL_NAMES = tuple(_KINDS)
"""The names of all tools."""


def create_sandbox_tools(
    store_or_url: object = None,
    thread_id: str | None = None,
    include_tools: Iterable[str] | None = None,
    *,
    images: bool = True,
) -> list[BaseTool]:
    """Tools that run code and keep files in a session of the thread, behind walls, and from one program to the next.

    `store_or_url` is a store's URL, such as "sqlite:///cells.db" or "postgresql://…"; a pool of psycopg's connections,
    for its URL; `Threads`, which has more to set; or None for `$CELLBLOCK_STORE`, or else the user's own store. Without
    `thread_id` a call is of the thread that its graph runs in. `include_tools` are the names of those that are wanted;
    None is all. With `images` the figures of a cell go with its message as image blocks: PNG, at most 4, of at most
    200 KB each. A message without any is text alone.
    """
    threads = store_or_url = threads_of(store_or_url)  # no frame of an error holds the URL
    names = TOOL_NAMES if include_tools is None else tuple(include_tools)
    if unknown := [name for name in names if name not in _KINDS]:
        raise ValueError(f"no tool {unknown[0]!r}: there are {', '.join(TOOL_NAMES)}")
    return [_tool(name, threads, thread_id, images) for name in names]


def threads_of(store_or_url: object) -> Threads:
    """The sessions of a store, however that is said."""
    if isinstance(store_or_url, Threads):
        return store_or_url
    if store_or_url is None or isinstance(store_or_url, str):
        return Threads(store_or_url)
    url = getattr(store_or_url, "conninfo", None)
    if isinstance(url, str) and url.startswith(("postgresql://", "postgres://")):
        return Threads("postgresql" + url[url.index("://") :])
    del url
    raise TypeError(f"a store is a URL, such as 'sqlite:///cells.db', or Threads, not {type(store_or_url).__name__}")


def _tool(name: str, threads: Threads, thread_id: str | None, images: bool) -> BaseTool:
    kind = _KINDS[name]
    calls = _Calls(name, kind, threads, thread_id, images)
    functions = (calls.prepared, calls.aprepared) if name in CONTENT_TOOLS else (calls.plain, calls.aplain)
    return _Tool.from_function(
        functions[0],
        functions[1],
        name=name,
        description=kind.text,
        args_schema=kind.arguments,
        infer_schema=False,
        handle_validation_error=_misused,
    )


_INJECTED = ("runtime", "_state", "tool_call_id")


class _Tool(StructuredTool):  # type: ignore[misc]
    """A tool whose call, as a model makes it, gives none of what its graph gives: it is not looked at there.

    A node of LangGraph puts its `ToolRuntime` among a call's arguments. One of the user's own that gives a state gives
    arguments, and no call.
    """

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return super().invoke(_own(input), config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return await super().ainvoke(_own(input), config, **kwargs)


def _own(given: Any) -> Any:
    """A call without what is not a model's to give; anything else as it is."""
    if not isinstance(given, dict) or given.get("type") != "tool_call":
        return given
    args = {key: one for key, one in given["args"].items() if key not in _INJECTED or isinstance(one, ToolRuntime)}
    return {**given, "args": args}


def _misused(error: Any) -> str:
    """Message on a call's wrong arguments."""
    told = misfits(error) if isinstance(error, ValidationError) else row(message_of(error, _MOST_SAID))
    return f"Error: the arguments are wrong: {told}. Call the tool again with the arguments that it has."


class _Calls:
    """One tool of a thread, or of whatever thread it is called in. No call raises: a model is told what went wrong."""

    def __init__(self, name: str, kind: _Kind, threads: Threads, thread_id: str | None, images: bool) -> None:
        self._name = name
        self._kind = kind
        self._threads = threads
        self._thread_id = thread_id
        self._images = images

    # what a graph gives is None where there is no graph; `config` is LangChain's own, and always there

    def plain(self, config: RunnableConfig, runtime: ToolRuntime = None, **arguments: Any) -> Any:  # type: ignore[assignment]
        return _answer(self._carry_out(config, _Given.of(config, runtime), arguments), runtime)

    async def aplain(self, config: RunnableConfig, runtime: ToolRuntime = None, **arguments: Any) -> Any:  # type: ignore[assignment]
        return _answer(await self._acarry_out(config, _Given.of(config, runtime), arguments), runtime)

    def prepared(
        self,
        config: RunnableConfig,
        runtime: ToolRuntime = None,  # type: ignore[assignment]
        _state: Annotated[Any, InjectedToolArg] = None,
        tool_call_id: Annotated[str, InjectedToolArg] = "",
        **arguments: Any,
    ) -> Any:
        given = _Given.of(config, runtime, _state, tool_call_id)
        return given.answer(self._carry_out(config, given, arguments))

    async def aprepared(
        self,
        config: RunnableConfig,
        runtime: ToolRuntime = None,  # type: ignore[assignment]
        _state: Annotated[Any, InjectedToolArg] = None,
        tool_call_id: Annotated[str, InjectedToolArg] = "",
        **arguments: Any,
    ) -> Any:
        given = _Given.of(config, runtime, _state, tool_call_id)
        return given.answer(await self._acarry_out(config, given, arguments))

    def _carry_out(self, config: RunnableConfig, given: _Given, arguments: dict[str, Any]) -> Told:
        try:
            call = given.call(self._name, arguments)
            return self._threads.call(self._thread(config), partial(self._work, call))
        except Exception as error:
            return _failed(self._name, error)

    async def _acarry_out(self, config: RunnableConfig, given: _Given, arguments: dict[str, Any]) -> Told:
        try:
            call = await off_loop(LARGE, given.call, self._name, arguments)
            return await self._threads.acall(self._thread(config), partial(self._work, call))
        except Exception as error:
            return _failed(self._name, error)

    async def _work(self, call: Call, session: AsyncSession) -> Told:
        told = await self._kind.operation(session, call)
        return told if self._images else replace(told, images=())

    def _thread(self, config: RunnableConfig) -> str:
        thread_id: str | int | UUID | None = self._thread_id or (config.get("configurable") or {}).get("thread_id")
        if not thread_id:
            raise CellblockError(
                "no thread is known", hint='run the graph with config={"configurable": {"thread_id": …}}'
            )
        return str(thread_id)


@dataclass(frozen=True, slots=True)
class _Given:
    """Context of a call: as given by a graph's runtime, or as `_state` by another node."""

    pending: object
    call_id: str
    task: str
    message: object
    has_field: bool
    by_hand: bool

    @classmethod
    def of(cls, config: RunnableConfig, runtime: ToolRuntime | None, state: Any = None, call_id: str = "") -> _Given:
        known: object = (state if isinstance(state, dict) else {}) if runtime is None else runtime.state
        messages = known if isinstance(known, list) else field_of(known, "messages")
        pending, by_hand = field_of(known, PENDING), runtime is None
        if runtime is not None:
            config, call_id = runtime.config, runtime.tool_call_id or call_id
        task = (config.get("configurable") or {}).get("checkpoint_ns") or ""
        return cls(pending, call_id, task, last_answer(messages), by_hand or pending is not None, by_hand)

    @property
    def name(self) -> str:
        """Id under which its content is pending."""
        return id_of({"id": self.call_id})

    def call(self, tool: str, arguments: dict[str, Any]) -> Call:
        """The call. `CellblockError` where another one of its message has its id, or it has no content and needs it."""
        same = ids_of(self.message).count(self.name)
        if same > 1 and (self.name or tool in CONTENT_TOOLS):
            raise CellblockError(f"{same} calls of the message have the id {self.name!r}", hint=_ONE_CALL)
        content = content_for(self.pending, self.name) if tool in CONTENT_TOOLS else ""
        if tool in CONTENT_TOOLS and not content:
            if kind := misfit(self.pending, self.name):
                said = f"The graph's state has {kind} in place of the content of this call, which is no text. {_AGAIN}"
                raise CellblockError(said)
            remedy = why_none(self.message) if self.has_field else _NO_FIELD
            raise CellblockError(f"No content found in graph state. {remedy}")
        told_apart = self.by_hand or same
        return Call(arguments, content, key_of(self.call_id, self.task, tool, arguments) if told_apart else "")

    def answer(self, told: Told) -> Command[Any]:
        update: dict[str, object] = {"messages": [_message(told, self.call_id)]}
        if self.has_field:
            update[PENDING] = "" if self.by_hand else taken(self.pending, self.name)
        if told.created:
            update["created_files"] = list(told.created)
        return Command(update=update, resume=told.text if self.by_hand else None)


_AGAIN = "An edit of its checkpoint put it there: write the content again, and call the tool again."
_ONE_CALL = "none of them was carried out: make one call in a message"
_NO_FIELD = (
    "The graph's state has no pending_content: give it cellblock's AgentState, and SandboxToolNode for its tools, or "
    "SandboxMiddleware to create_agent."
)


def _answer(told: Told, runtime: ToolRuntime | None) -> Any:
    """A message, with the files that were made; text alone where there is no graph."""
    if runtime is None or not runtime.tool_call_id:
        return told.text
    message = _message(told, runtime.tool_call_id)
    state: object = runtime.state
    if told.created and not isinstance(state, list):
        return Command(update={"messages": [message], "created_files": list(told.created)})
    return message


def _message(told: Told, call_id: str) -> ToolMessage:
    return ToolMessage(_content(told), tool_call_id=call_id, status="error" if told.failed else "success")


def _content(told: Told) -> str | list[str | dict[str, Any]]:
    """Text, and blocks of LangChain's standard where there are images: plain JSON, the same for the same cell."""
    if not told.images:
        return told.text
    images = [
        {"type": "image", "base64": base64.b64encode(data).decode(), "mime_type": "image/png"} for data in told.images
    ]
    return [{"type": "text", "text": told.text}, *images]


def _failed(name: str, error: Exception) -> Told:
    """The border: what stopped a call is told to the model, and the graph goes on."""
    if isinstance(error, CellblockError):
        return Told(f"Error: {error}", failed=True)
    _LOG.error("a call of %s failed", name, exc_info=error)
    said = f"{type_name(error)}: {message_of(error, _MOST_SAID)}"
    return Told(f"Error executing {name}: {said}. Try again, or go another way.", failed=True)
