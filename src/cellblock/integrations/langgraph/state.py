"""The state of a graph whose tools take content from messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from cellblock.integrations.langgraph.prepared import contents

PENDING = "pending_content"
Pending = dict[str, str]
"""Content by the id of the call that it is for; under "" content for any call."""


def merge_pending(old: object, new: object) -> Pending:
    """What is pending after an update: content by calls' ids, of which None takes one away.

    A string is the one content there is, as in a state that has room for one; "" clears all.
    """
    if not isinstance(new, Mapping):
        return {"": new} if isinstance(new, str) and new else {}
    merged = {**_pending(old), **new}
    return {call: content for call, content in merged.items() if isinstance(content, str)}


def merge_files(old: list[str] | None, new: list[str] | None) -> list[str]:
    """Files by their names, each once, in the order in which they were made."""
    return list(dict.fromkeys([*(old or ()), *(new or ())]))


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
    """What is pending for a call, "" where nothing is."""
    held = _pending(pending)
    return held.get(call_id) or held.get("") or ""


def taken(pending: object, call_id: str) -> object:
    """The update that takes away what was pending for a call, in the form that the state has."""
    if isinstance(pending, str):
        return ""
    held = _pending(pending)
    return {call: None for call in (call_id, "") if call in held}


def field_of(state: object, name: str) -> Any:
    """A field of a graph's state, which may be a dict or an object; None where it has none."""
    return state.get(name) if isinstance(state, dict) else getattr(state, name, None)


def _pending(value: object) -> Pending:
    if isinstance(value, str):
        return {"": value} if value else {}
    return dict(value) if isinstance(value, Mapping) else {}
