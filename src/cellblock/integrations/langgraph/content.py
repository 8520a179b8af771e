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
_MOST_WORDS = 32 * 2**20
"""Characters of a message that are read: a block that goes on past them is cut off."""
_MOST_WAYS = 5_000


def contents(message: object) -> dict[str, str]:
    """The content for each call of a message that has one, by the call's id, which no other call of it has.

    Blocks go to calls in their order, but for where their tags and the calls' file names say otherwise. A block whose
    fence is not closed was cut off, and is nobody's.
    """
    ids = Counter(ids_of(message))
    made = message.tool_calls if isinstance(message, AIMessage) else []
    calls = [call for call in made if call["name"] in CONTENT_TOOLS]
    if not calls:
        return {}
    blocks = [fence for fence in fences(words_of(message)[:_MOST_WORDS]) if fence.closed]
    chosen = _chosen(calls, blocks)
    found = zip(map(id_of, calls), chosen, strict=True)
    own = {id_ for id_, many in ids.items() if many == 1 and (id_ or len(ids) == 1)}
    return {id_: block.text for id_, block in found if block is not None and id_ in own}


def why_none(message: object) -> str:
    """Why a message that calls such a tool has no content for it, and what to write instead."""
    if message is None:
        return _WRITE
    found = fences(words_of(message)[:_MOST_WORDS])
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


def words_of(message: object) -> str:
    """Text of a message: its text, or all the text among its blocks of content, each on lines of its own."""
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
    """A message of the model as any checkpointer takes it: valid text, bounded numbers, an id of its own for each call.

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
    """Ids of the calls of a message. A text stands there as often as there are calls that have it for an id."""
    return [id_of(call) for call in message.tool_calls] if isinstance(message, AIMessage) else []


def called(call: Mapping[str, Any]) -> str:
    """The name of the tool that a call is of, in a line."""
    return line(call["name"], 200)


def id_of(call: Mapping[str, Any]) -> str:
    """Id of a call."""
    return text_of(call["id"], max_chars=1_000)


def refused(call: Mapping[str, Any], why: str) -> ToolMessage:
    """The answer to a call that was not carried out."""
    return ToolMessage(why, name=called(call), tool_call_id=id_of(call), status="error")


def _chosen(calls: Sequence[Mapping[str, Any]], blocks: Sequence[Fence]) -> tuple[Fence | None, ...]:
    """A block for each call: of the ways to give them out, the first in order of those that fit best."""
    given: list[Fence | None] = [*blocks, *[None] * max(0, len(calls) - len(blocks))]
    ways = islice(permutations(given, len(calls)), max(1, _MOST_WAYS // len(calls)))
    return max(ways, key=lambda way: sum(map(_fit, calls, way)))


def _fit(call: Mapping[str, Any], block: Fence | None) -> int:
    """2 where the block's tag is what the call is about, 1 where it says nothing, 0 where it is something else."""
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
    """Pending content after an update: content by calls' ids, of which None takes one away.

    A string is the one content there is, as in a state that has room for one; "" clears all.
    """
    if not isinstance(new, Mapping):
        return {"": new} if isinstance(new, str) and new else {}
    merged: dict[str, Any] = {**_pending(old), **new}
    return {call: content for call, content in merged.items() if isinstance(content, str)}


def merge_files(old: object, new: object) -> list[str]:
    """Files by their names, each once, in the order in which they were made.

    What is no name was put there by an edit of a checkpoint. It is left out, and logged: no update could take it away.
    """
    found = [one for some in (old, new) if some is not None for one in (some if isinstance(some, list) else [some])]
    if odd := [type_name(one) for one in found if not isinstance(one, str)]:
        _LOG.warning("created_files of a graph's state held %s, which is no name of a file: left out", ", ".join(odd))
    return list(dict.fromkeys(one for one in found if isinstance(one, str)))


class AgentState(TypedDict, total=False):
    """Messages, content that waits for its tool call, and the files that tools and code made. All of it is JSON.

    `pending_content` may be begun as "".
    """

    messages: Annotated[list[AnyMessage], add_messages]
    pending_content: Annotated[Pending, merge_pending]
    created_files: Annotated[list[str], merge_files]


def pending_update(old: object, message: object) -> dict[str, str | None]:
    """The update by which what a message has for its calls is pending, and nothing else."""
    found = contents(message)
    return {**dict.fromkeys(_pending(old)), **found}


def content_for(pending: object, call_id: str) -> str:
    """Pending content for a call, "" for none, or for what is no text."""
    held = _pending(pending)
    return next((one for one in (held.get(call_id), held.get("")) if isinstance(one, str) and one), "")


def misfit(pending: object, call_id: str) -> str:
    """The type of what is pending for a call and is no text, as in a checkpoint that was edited; "" where all is."""
    held = _pending(pending)
    found = pending if not isinstance(pending, str | Mapping | None) else held.get(call_id) or held.get("")
    return "" if isinstance(found, str | None) else type_name(found)


def taken(pending: object, call_id: str) -> object:
    """The update that takes away what was pending for a call, in the form that the state has."""
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
