"""`@tool`: marks a plain function as one that agents may call. It stays the function that it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

Visibility = Literal["full", "signature", "hidden"]
"""The part of a capability that a model is told: its signature and documentation, the signature alone, or nothing."""

_ATTRIBUTE = "__cellblock_tool__"

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Settings of a function from when it was marked."""

    visibility: Visibility = "full"
    outward: bool = False
    private: bool = False


@overload
def tool(function: Function) -> Function: ...
@overload
def tool(
    *, visibility: Visibility = ..., outward: bool = ..., private: bool = ...
) -> Callable[[Function], Function]: ...
def tool(
    function: Function | None = None,
    *,
    visibility: Visibility = "full",
    outward: bool = False,
    private: bool = False,
) -> Function | Callable[[Function], Function]:
    """Mark a function, plain or async, as a tool: `@tool` or `@tool(visibility="signature")`.

    Its name, signature and docstring are what a model reads. Agents take unmarked functions as well.

    An `outward` function takes what it is given out of the session's reach, to a network, say: a session that holds
    private data cannot call it. A `private` one gives private data: a session is marked before it is called.
    """
    if visibility not in ("full", "signature", "hidden"):
        raise ValueError(f'visibility must be "full", "signature" or "hidden", not {visibility!r}')

    def mark(marked: Function) -> Function:
        if not callable(marked):
            raise TypeError(f"a tool must be a function, not {type(marked).__name__}")
        setattr(marked, _ATTRIBUTE, About(visibility=visibility, outward=outward, private=private))
        return marked

    return mark if function is None else mark(function)


def listed(tools: Iterable[Function]) -> tuple[Function, ...]:
    """Functions that were given as tools; TypeError where it is one function, and no list."""
    if not isinstance(tools, Iterable):
        raise TypeError(f"tools is a list of functions, not {tools!r:.100}")
    found: tuple[Any, ...] = tuple(tools)
    for one in found:
        name = getattr(one, "__name__", None)
        if not callable(one) or not isinstance(name, str):
            raise TypeError(f"a tool must be a function with a name, not {one!r:.100}")
        require_callable_name(name)
    return found


def require_callable_name(name: str) -> None:
    """ValueError for the name of a function that code could not call, as `<lambda>`."""
    if not name.isidentifier():
        raise ValueError(f"{name!r} cannot be the name of a tool: cells could not call it; define the tool by def")


def about(function: Callable[..., Any]) -> About:
    """Settings of a function from when it was marked; the defaults for any other."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, About) else About()
