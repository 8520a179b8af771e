"""The tools: their schemas and texts for a model, and a call as an operation on the session of its thread."""

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
from cellblock.integrations.langgraph.content import (
    CONTENT_TOOLS,
    PENDING,
    RUN,
    WRITE,
    advice_without_content,
    content_for,
    field_of,
    id_of,
    ids_of,
    last_answer,
    misfit,
    taken,
)
from cellblock.integrations.langgraph.operations import Call, Told, key_of
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
    operation: Callable[..., Awaitable[Told]]


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
    """The sessions of a store, given by any of the arguments of `create_sandbox_tools`."""
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
    calls = _Calls(name, threads, thread_id, images)
    takes_content = name in CONTENT_TOOLS
    return _Tool.from_function(
        calls.call_with_content if takes_content else calls.call,
        calls.acall_with_content if takes_content else calls.acall,
        name=name,
        description=_KINDS[name].text,
        args_schema=_KINDS[name].arguments,
        infer_schema=False,
        handle_validation_error=_misused,
    )


_INJECTED = ("runtime", "_state", "tool_call_id")


class _Tool(StructuredTool):  # type: ignore[misc]
    """A tool that ignores what a model's call gives for the arguments that a graph gives.

    A node of LangGraph puts its `ToolRuntime` among a call's arguments. A node of the user's own that gives a state
    gives arguments, and no call.
    """

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return super().invoke(_without_injected(input), config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return await super().ainvoke(_without_injected(input), config, **kwargs)


def _without_injected(given: Any) -> Any:
    if not isinstance(given, dict) or given.get("type") != "tool_call":
        return given
    args = {key: one for key, one in given["args"].items() if key not in _INJECTED or isinstance(one, ToolRuntime)}
    return {**given, "args": args}


def _misused(error: Any) -> str:
    """Message about wrong arguments of a call."""
    told = misfits(error) if isinstance(error, ValidationError) else row(message_of(error, _MOST_SAID))
    return f"Error: the arguments are wrong: {told}. Call the tool again with the arguments that it has."


class _Calls:
    """One tool, of one thread or of the thread that calls it. No call raises: a model is told what went wrong."""

    def __init__(self, name: str, threads: Threads, thread_id: str | None, images: bool) -> None:
        self._name = name
        self._threads = threads
        self._thread_id = thread_id
        self._images = images

    # a graph gives `runtime`, a node of the user's own `_state` and `tool_call_id`; LangChain always gives `config`

    def call(self, config: RunnableConfig, runtime: ToolRuntime = None, **arguments: Any) -> Any:  # type: ignore[assignment]
        return self.call_with_content(config, runtime, **arguments)

    async def acall(self, config: RunnableConfig, runtime: ToolRuntime = None, **arguments: Any) -> Any:  # type: ignore[assignment]
        return await self.acall_with_content(config, runtime, **arguments)

    def call_with_content(
        self,
        config: RunnableConfig,
        runtime: ToolRuntime = None,  # type: ignore[assignment]
        _state: Annotated[Any, InjectedToolArg] = None,
        tool_call_id: Annotated[str, InjectedToolArg] = "",
        **arguments: Any,
    ) -> Any:
        context = _Context.of(config, runtime, _state, tool_call_id)
        try:
            call = context.call(self._name, arguments)
            told = self._threads.call(self._thread(config), partial(self._work, call, arguments))
        except Exception as error:
            told = _failed(self._name, error)
        return context.answer(self._name, told)

    async def acall_with_content(
        self,
        config: RunnableConfig,
        runtime: ToolRuntime = None,  # type: ignore[assignment]
        _state: Annotated[Any, InjectedToolArg] = None,
        tool_call_id: Annotated[str, InjectedToolArg] = "",
        **arguments: Any,
    ) -> Any:
        context = _Context.of(config, runtime, _state, tool_call_id)
        try:
            call = await off_loop(LARGE, context.call, self._name, arguments)
            told = await self._threads.acall(self._thread(config), partial(self._work, call, arguments))
        except Exception as error:
            told = _failed(self._name, error)
        return context.answer(self._name, told)

    async def _work(self, call: Call, arguments: dict[str, Any], session: AsyncSession) -> Told:
        told = await _KINDS[self._name].operation(session, call, **arguments)
        return told if self._images else replace(told, images=())

    def _thread(self, config: RunnableConfig) -> str:
        thread_id: str | int | UUID | None = self._thread_id or (config.get("configurable") or {}).get("thread_id")
        if not thread_id:
            raise CellblockError(
                "no thread is known", hint='run the graph with config={"configurable": {"thread_id": …}}'
            )
        return str(thread_id)


@dataclass(frozen=True, slots=True)
class _Context:
    """State and ids of a call: a graph's, or with `by_hand` those that another node gave or that nobody gave."""

    state: object
    call_id: str
    task: str
    by_hand: bool

    @classmethod
    def of(cls, config: RunnableConfig, runtime: ToolRuntime | None, state: object, call_id: str) -> _Context:
        if runtime is None:
            task = (config.get("configurable") or {}).get("checkpoint_ns") or ""
            return cls(state if isinstance(state, dict) else {}, call_id, task, by_hand=True)
        task = (runtime.config.get("configurable") or {}).get("checkpoint_ns") or ""
        return cls(runtime.state, runtime.tool_call_id or call_id, task, by_hand=False)

    @property
    def pending(self) -> object:
        """Content that waits in the state; None where the state has no field for it."""
        return field_of(self.state, PENDING)

    @property
    def has_field(self) -> bool:
        """True if the state can hold content."""
        return self.by_hand or self.pending is not None

    def call(self, tool: str, arguments: dict[str, Any]) -> Call:
        """The call. `CellblockError` where another one of its message has its id, or it has no content and needs it."""
        message = last_answer(self.state if isinstance(self.state, list) else field_of(self.state, "messages"))
        name = id_of({"id": self.call_id})
        same = ids_of(message).count(name)
        if same > 1 and (name or tool in CONTENT_TOOLS):
            raise CellblockError(f"{same} calls of the message have the id {name!r}", hint=_ONE_CALL)
        content = content_for(self.pending, name) if tool in CONTENT_TOOLS else ""
        if tool in CONTENT_TOOLS and not content:
            if kind := misfit(self.pending, name):
                said = f"The graph's state has {kind} in place of the content of this call, which is no text. {_AGAIN}"
                raise CellblockError(said)
            remedy = advice_without_content(message) if self.has_field else _NO_FIELD
            raise CellblockError(f"No content found in graph state. {remedy}")
        told_apart = self.by_hand or same
        return Call(content, key_of(self.call_id, self.task, tool, arguments) if told_apart else "")

    def answer(self, tool: str, told: Told) -> str | ToolMessage | Command[Any]:
        """The result as a graph takes it; text alone where there is no graph."""
        takes_content = tool in CONTENT_TOOLS
        if not takes_content and (self.by_hand or not self.call_id):
            return told.text
        status = "error" if told.failed else "success"
        message = ToolMessage(_content(told), tool_call_id=self.call_id, status=status)
        if not takes_content and (not told.created or isinstance(self.state, list)):
            return message
        update: dict[str, object] = {"messages": [message]}
        if takes_content and self.has_field:
            update[PENDING] = "" if self.by_hand else taken(self.pending, id_of({"id": self.call_id}))
        if told.created:
            update["created_files"] = list(told.created)
        return Command(update=update, resume=told.text if self.by_hand else None)


_AGAIN = "An edit of its checkpoint put it there: write the content again, and call the tool again."
_ONE_CALL = "none of them was carried out: make one call in a message"
_NO_FIELD = (
    "The graph's state has no pending_content: give it cellblock's AgentState, and SandboxToolNode for its tools, or "
    "SandboxMiddleware to create_agent."
)


def _content(told: Told) -> str | list[str | dict[str, Any]]:
    """Text, and blocks of LangChain's standard where there are images: plain JSON, the same for the same cell."""
    if not told.images:
        return told.text
    images = [
        {"type": "image", "base64": base64.b64encode(data).decode(), "mime_type": "image/png"} for data in told.images
    ]
    return [{"type": "text", "text": told.text}, *images]


def _failed(name: str, error: Exception) -> Told:
    """Border: an error of a call as a message for the model. The graph goes on."""
    if isinstance(error, CellblockError):
        return Told(f"Error: {error}", failed=True)
    _LOG.error("a call of %s failed", name, exc_info=error)
    said = f"{type_name(error)}: {message_of(error, _MOST_SAID)}"
    return Told(f"Error executing {name}: {said}. Try again, or go another way.", failed=True)
