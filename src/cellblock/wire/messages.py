"""Messages between host and worker: requests go down, events come up.

The wire numbers requests, and a `Finished` says which it answers: one that a cell forged is followed by the true
one, which then answers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cellblock.wire.frames import Buffer

# ---------------------------------------------------------------------------------------- requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run a cell's source. `filename` stands in tracebacks; texts are cut to `max_text` characters."""

    source: str
    filename: str
    max_text: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Run a command with /bin/sh in the workspace."""

    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """Bind a name to the value pickled in the first buffer; it is unpickled inside the wall.

    The others are its buffers out of band; with `is_stored` those are in the memory that was reserved before.
    """

    name: str
    buffers: tuple[Buffer, ...]
    is_stored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Have memory for buffers of these lengths, which the next request uses; the reply names its places."""

    lengths: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Send a name's value back."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Send every name's type, size and preview back.

    With `apart` previews are made in copies of the worker, which may take so many seconds: the code of a value has
    ended or held up the worker itself.
    """

    max_names: int
    max_preview: int
    apart: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """Empty the namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sow:
    """Seed the generators that cells have without making one, as where a branch began."""

    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Equip:
    """Put host functions into the session: for each its name, documentation, parameters and what it returns."""

    tools: tuple[Mapping[str, object], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrict:
    """Run cells behind the guard, under a policy, as `wire.granted` tells it. The first request, where there is one."""

    policy: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReply:
    """The answer to a tool call: a packed portable value, or an error's type and message.

    With `is_stored` empty buffers stand for those in the memory that was reserved, in order.
    """

    call: int
    error: tuple[str, str] | None = None
    buffers: tuple[Buffer, ...] = ()
    is_stored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRoom:
    """Have memory for buffers of these lengths, for the answer to a call; `Reserved` names its places."""

    call: int
    lengths: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Bind what a record, the one buffer, says; the worker asks for the bytes that it refers to."""

    buffers: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplied:
    """The bytes that `Wanted` asked for, in its order; or their `lengths`, where they are in the room it named."""

    call: int
    lengths: tuple[int, ...] = ()
    buffers: tuple[Buffer, ...] = ()


Request = (
    Run
    | Shell
    | Bind
    | Reserve
    | Fetch
    | Survey
    | Clear
    | Sow
    | Equip
    | Restrict
    | ToolReply
    | ToolRoom
    | Restore
    | Supplied
)

REPLIES = ToolReply, ToolRoom, Supplied
"""Requests that belong to one which is under way."""

# ------------------------------------------------------------------------------------------ events

Place = tuple[int, int, int]
"""A buffer that stayed in its process's memory, and is empty in the message: which it is, its address, its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The worker is ready. `walls` are the mechanisms applied, with their details; `missing` those that
    could not be, with reason and remedy. Sent before any cell's code runs."""

    python: str
    walls: tuple[tuple[str, ...], ...]
    missing: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Awake:
    """A checkpoint that was woken is the worker now. Each row is what it could not bring along: name, type, reason,
    remedy. `left` is as in `Finished`: timers, say, which go on."""

    lost: tuple[tuple[str, ...], ...] = ()
    left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """A MIME bundle; `mimes` name the buffers. `mark` is the place in the text output where it belongs."""

    data: Mapping[str, object]
    mimes: tuple[str, ...]
    is_result: bool
    mark: int
    buffers: tuple[Buffer, ...] = ()
    size: int = field(default=0, compare=False)
    """Set by the reader: how many bytes it takes in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The cell of a request called a host function; the buffers are [args, kwargs] as a packed portable value."""

    call: int
    request: int
    name: str
    mark: int
    buffers: tuple[Buffer, ...] = ()
    beside: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """Places of the memory that `ToolRoom` asked for."""

    call: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A restore needs the bytes of these addresses. `beside` is a place in the worker's memory with room for all
    of them, one after the other; or there is none."""

    call: int
    addresses: tuple[str, ...]
    beside: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The `group` that is loaded from here on, "" for one that runs no code of the cells. Gets no answer."""

    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The error that a cell raised. `rule` is the guard's that refused it, "" where none did; `status` is a command's.

    `is_wrecked`: it was for want of Python itself, which an earlier cell has taken away.
    """

    type: str
    message: str
    traceback: str
    kind: str
    rule: str = ""
    hint: str = ""
    status: int | None = None
    is_wrecked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The request of that number was carried out. The buffers are its packed value, if it has one.

    `gained` are names bound since the last reply, or to a value of another type, with their types' names;
    `dropped` are those no longer bound. `unsaved` are gained names of values that no commit can hold, each with the
    full name of a type that tells why. `left`, of a state that is saved: threads, processes or timers live on, and may
    change it.
    """

    number: int
    failure: Failure | None
    duration_ms: float
    cpu_ms: float
    memory_peak: int
    gained: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    unsaved: Mapping[str, str] = field(default_factory=dict)
    left: bool = False
    buffers: tuple[Buffer, ...] = ()
    beside: tuple[Place, ...] = ()


Event = Hello | Awake | Display | ToolCalled | Reserved | Wanted | Loading | Finished
