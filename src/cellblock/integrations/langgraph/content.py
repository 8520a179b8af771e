"""Content that a model writes in a message for its calls: which block is whose, and the state that it waits in."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, count, islice, permutations
from posixpath import splitext
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from cellblock.fences import PYTHON, Fence, fences
from cellblock.text import line, storable, text_of, type_name

_LOG = logging.getLogger(__name__)

RUN = "python_run_prepared"
WRITE = "file_write"
CONTENT_TOOLS = (RUN, WRITE)
"""The tools whose content is a block of the message that calls them."""

_ENDINGS = {
    ".py": PYTHON,
    ".sh": {"sh", "bash", "shell", "zsh", "console"},
    ".js": {"js", "javascript", "mjs"},
    ".ts": {"ts", "typescript"},
    ".md": {"md", "markdown"},
    ".yml": {"yml", "yaml"},
    ".yaml": {"yml", "yaml"},
    ".txt": {"txt", "text", "plain", "plaintext"},
    ".rs": {"rs", "rust"},
    ".rb": {"rb", "ruby"},
    ".cpp": {"cpp", "c++"},
    ".htm": {"html", "htm"},
}
_NEUTRAL = {"", "txt", "text", "plain", "plaintext", "code"}
_MOST_TEXT = 32 * 2**20
"""Characters of a message that are read: a block that goes on past them is cut off."""
_MOST_PERMUTATIONS = 5_000


def contents(message: object) -> dict[str, str]:
    """Content of a message by the id of the call that it is for; ids that two calls of the message have are left out.

    Blocks go to calls in their order, unless their tags and the calls' file names fit another order better. A block
    whose fence is not closed was cut off, and goes to none.
    """
    ids = Counter(ids_of(message))
    made = message.tool_calls if isinstance(message, AIMessage) else []
    calls = [call for call in made if call["name"] in CONTENT_TOOLS]
    if not calls:
        return {}
    blocks = [fence for fence in fences(message_text(message)[:_MOST_TEXT]) if fence.closed]
    found = zip(map(id_of, calls), _blocks_for(calls, blocks), strict=True)
    own = {id_ for id_, many in ids.items() if many == 1 and (id_ or len(ids) == 1)}
    return {id_: block.text for id_, block in found if block is not None and id_ in own}


def advice_without_content(message: object) -> str:
    """Reason why a message has no content for a call that takes some, with what to write instead."""
    if message is None:
        return _WRITE
    found = fences(message_text(message)[:_MOST_TEXT])
    if any(not fence.closed for fence in found):
        return f"The block in your message is cut off. Write it again, shorter, and end it with a line ```. {_ONE}"
    if found:
        return f"Your message has fewer blocks than calls that need one. {_ONE}"
    return _WRITE


_ONE = "Each call takes one block, in their order."
_WRITE = (
    "Write the content in your message, between a line ```python (or ```csv, and so on) and a line ```, and call the "
    "tool again in the same message."
)


def message_text(message: object) -> str:
    """Text of a message, or of all its blocks of text, each on lines of its own."""
    content = getattr(message, "content", "")
    if isinstance(content, str):
        return content
    found = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            found.append(block)
        elif isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            found.append(block["text"])
    return "\n".join(found)


def last_answer(messages: object) -> AIMessage | None:
    """The newest message of the model."""
    found = reversed(messages) if isinstance(messages, list) else ()
    return next((message for message in found if isinstance(message, AIMessage)), None)


def stored(message: AIMessage) -> AIMessage:
    """A message of the model made storable by any checkpointer: valid text, bounded numbers, a unique id for each call.

    An answer to a call needs its id, which models leave out or give twice.
    """
    fields = {name: storable(getattr(message, name)) for name in type(message).model_fields}
    if fields["usage_metadata"] != message.usage_metadata:
        fields["usage_metadata"] = None
    known: set[str] = set()
    for number, call in enumerate([*fields["tool_calls"], *fields["invalid_tool_calls"]], 1):
        names = chain([line(call["id"] or "", 1_000)], (f"call_{n}" for n in count(number)))
        call["id"] = next(one for one in names if one and one not in known)
        known.add(call["id"])
    return message.model_copy(update=fields)


def ids_of(message: object) -> list[str]:
    """Ids of the calls of a message, one for each call."""
    return [id_of(call) for call in message.tool_calls] if isinstance(message, AIMessage) else []


def tool_name(call: Mapping[str, Any]) -> str:
    """Name of the tool of a call, in a line."""
    return line(call["name"], 200)


def id_of(call: Mapping[str, Any]) -> str:
    """Id of a call, as text of at most 1,000 characters."""
    return text_of(call["id"], max_chars=1_000)


def refused(call: Mapping[str, Any], why: str) -> ToolMessage:
    """Answer to a call that was not carried out."""
    return ToolMessage(why, name=tool_name(call), tool_call_id=id_of(call), status="error")


def _blocks_for(calls: Sequence[Mapping[str, Any]], blocks: Sequence[Fence]) -> tuple[Fence | None, ...]:
    """A block for each call: the first permutation of those that fit best."""
    given: list[Fence | None] = [*blocks, *[None] * max(0, len(calls) - len(blocks))]
    ways = islice(permutations(given, len(calls)), max(1, _MOST_PERMUTATIONS // len(calls)))
    return max(ways, key=lambda way: sum(map(_fit, calls, way)))


def _fit(call: Mapping[str, Any], block: Fence | None) -> int:
    """2 where the block's tag fits the call, 1 where it says nothing, 0 where it says something else."""
    if block is None:
        return 0
    if call["name"] == RUN:
        wanted: AbstractSet[str] = PYTHON
    else:
        ending = splitext(text_of(call["args"].get("file_path", ""), max_chars=4096))[1].lower()
        wanted = set(_ENDINGS.get(ending, {ending[1:]})) - {""}
    return 2 if block.tag in wanted else 1 if block.tag in _NEUTRAL else 0


# ------------------------------------------------------------------------------------------ state

PENDING = "pending_content"
Pending = dict[str, str]
"""Content by the id of the call that it is for; under "" content for any call."""


def merge_pending(old: object, new: object) -> Pending:
    """Merge an update into pending content: by call id, where None removes one.

    A string replaces all, as in a state that has room for one content; "" clears it.
    """
    if not isinstance(new, Mapping):
        return {"": new} if isinstance(new, str) and new else {}
    merged: dict[str, Any] = {**_pending(old), **new}
    return {call: content for call, content in merged.items() if isinstance(content, str)}


def merge_files(old: object, new: object) -> list[str]:
    """Merge names of files: each once, in the order in which they were made.

    An edit of a checkpoint may put in something else than a name. It is left out, and logged.
    """
    found = [one for some in (old, new) if some is not None for one in (some if isinstance(some, list) else [some])]
    if odd := [type_name(one) for one in found if not isinstance(one, str)]:
        _LOG.warning("created_files of a graph's state held %s, which is no name of a file: left out", ", ".join(odd))
    return list(dict.fromkeys(one for one in found if isinstance(one, str)))


class AgentState(TypedDict, total=False):
    """Messages, content pending for tool calls, and the files that tools and code made. All of it is JSON.

    `pending_content` may be begun as "".
    """

    messages: Annotated[list[AnyMessage], add_messages]
    pending_content: Annotated[Pending, merge_pending]
    created_files: Annotated[list[str], merge_files]


def pending_update(old: object, message: object) -> dict[str, str | None]:
    """Update that makes the content of a message pending, and removes all other."""
    found = contents(message)
    return {**dict.fromkeys(_pending(old)), **found}


def content_for(pending: object, call_id: str) -> str:
    """Pending content for a call; "" where there is none, or it is not text."""
    held = _pending(pending)
    return next((one for one in (held.get(call_id), held.get("")) if isinstance(one, str) and one), "")


def misfit(pending: object, call_id: str) -> str:
    """Type of pending content that is not text, as in a checkpoint that was edited; "" otherwise."""
    held = _pending(pending)
    found = pending if not isinstance(pending, str | Mapping | None) else held.get(call_id) or held.get("")
    return "" if isinstance(found, str | None) else type_name(found)


def taken(pending: object, call_id: str) -> object:
    """Update that removes the pending content of a call, in the form that the state has."""
    if isinstance(pending, str):
        return ""
    held = _pending(pending)
    return {call: None for call in (call_id, "") if call in held}


def field_of(state: object, name: str) -> Any:
    """A field of a graph's state, which may be a dict or an object; None where it has none."""
    return state.get(name) if isinstance(state, dict) else getattr(state, name, None)


def _pending(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        return {"": value} if value else {}
    return dict(value) if isinstance(value, Mapping) else {}
