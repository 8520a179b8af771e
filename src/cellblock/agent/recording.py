"""What a log keeps of values and of calls: portable forms of them, so that a run can be replayed."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

from cellblock.agent.setting import present
from cellblock.values import portable

_MOST_BYTES = 64 * 1024
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def to_plain(value: object) -> object:
    """A value as JSON data, in its portable form; what is too large, or has none, as an opaque one."""
    try:
        encoded = portable.encode(value, max_bytes=_MOST_BYTES)
        if not encoded.buffers:
            return encoded.tree
        reason = "too large for a log"
    except portable.NotPortable as error:
        reason = error.reason
    shown = _ADDRESS.sub("", repr(value)[:500])
    return {"opaque": [type(value).__name__, shown, reason]}


def from_plain(tree: object) -> object:
    """The value again; `MalformedValue` where it is none that a log has."""
    return portable.decode(portable.Encoded(tree))


def recorded(tool: Callable[..., Any]) -> Callable[..., Any]:
    """A tool that logs its calls to the run whose cell makes them, with what it answers or raises."""
    if inspect.iscoroutinefunction(tool):

        @functools.wraps(tool)
        async def call_async(*args: object, **kwargs: object) -> object:
            try:
                answer = await tool(*args, **kwargs)
            except Exception as error:
                _log(tool, args, kwargs, error=error)
                raise
            _log(tool, args, kwargs, answer=answer)
            return answer

        return call_async

    @functools.wraps(tool)
    def call(*args: object, **kwargs: object) -> object:
        try:
            answer = tool(*args, **kwargs)
        except Exception as error:
            _log(tool, args, kwargs, error=error)
            raise
        _log(tool, args, kwargs, answer=answer)
        return answer

    return call


def _log(
    tool: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    *,
    answer: object = None,
    error: Exception | None = None,
) -> None:
    setting = present.get(None)
    if setting is None:  # called by somebody else than a cell of an agent
        return
    told: dict[str, Any] = {"answer": to_plain(answer)}
    if error is not None:
        told = {"error": [type(error).__name__, str(error)]}
    setting.log.write("tool", name=tool.__name__, arguments=[to_plain(list(args)), to_plain(kwargs)], **told)
