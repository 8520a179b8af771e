"""The state of a graph whose tools take content from messages."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from cellblock.integrations.langgraph.prepared import contents
from cellblock.text import type_name

_LOG = logging.getLogger(__name__)
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
