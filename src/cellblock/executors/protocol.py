"""The interface of every trust level: a `Launcher` opens `Kernel`s, a kernel takes `Turn`s, a turn tells events.

A kernel is one live worker with its walls. A turn is one request under way; nothing calls back into an
executor: a tool call is an event, and its answer goes down with `Turn.reply`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

from cellblock.cell import Lost
from cellblock.container import Container
from cellblock.errors import CaptureFailed
from cellblock.executors.suspects import Suspects
from cellblock.limits import ExecutionLimits
from cellblock.network import Destination, Traffic
from cellblock.policy import Policy
from cellblock.snapshots import Snapshot
from cellblock.walls import Wall
from cellblock.wire.frames import Buffer
from cellblock.wire.messages import Bind, Display, Finished, Place, Request, Reserved, ToolCalled, ToolReply, ToolRoom

Row: TypeAlias = tuple[str, str, str, str]
"""A lost value: its name, its type, the reason, the remedy."""
Fetch: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[bytes]]]
"""Gives the bytes of addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSpec:
    """Options that a kernel is opened with. `python` None is the host's own interpreter.

    `mounts` are names inside, with the paths of the host that cells are to see there, read-only.

    `progress` is told what a long opening waits for, as a line such as "importing pandas". It is called in a thread.

    `policy` is what code may reach, in the eyes of the guard; None where nothing but walls stands in its way.

    One that `forgets` unbinds all names after each cell. At the level `local` alone.

    `network` is where its cells may connect to, through a door; without any there is none. A `private` one has none,
    whatever is listed.

    `container` is what it runs in at the level `sandboxed`; None is a container by default.

    `saved`: its states are to be captured, so that it takes note of which memory was written after each step.
    `scoped`: a `with` at top level is a temporary scope, for what cannot be captured.
    """

    limits: ExecutionLimits = field(default_factory=ExecutionLimits)
    preload: tuple[str, ...] = ()
    python: str | None = None
    seed: int = 0
    mounts: tuple[tuple[str, str], ...] = ()
    progress: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    policy: Policy | None = field(default=None, compare=False, repr=False)
    forgets: bool = False
    saved: bool = False
    scoped: bool = False
    network: tuple[Destination, ...] = ()
    private: bool = False
    container: Container | None = None

    @property
    def has_door(self) -> bool:
        """True if its cells can connect to anything."""
        return bool(self.network) and not self.private


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The walls around a kernel, mechanism by mechanism, and the interpreter inside."""

    trust_level: str
    python: str
    walls: tuple[Wall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Text that a cell wrote. `cut` counts bytes left out before it."""

    stream: str
    text: str
    cut: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """The worker's process is gone. `signal` killed it, or it left with `status`; None where unknown.

    `excess` is what the session held when that was what it was killed for, as in `Curbed.held`; `unruly` where that is
    no memory, but processes that run though they were stopped. `untaken`: it had not read all of the request that was
    under way, which was not begun.
    """

    signal: int | None = None
    status: int | None = None
    reason: str = ""
    excess: str = ""
    unruly: bool = False
    untaken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed(Bind):
    """Bind a name to this very object: for a kernel of this process. It goes over no wire."""

    value: object


class WorkerGone(Exception):
    """The worker died before a request could be given to it; nothing of the request was carried out."""

    def __init__(self, death: Died | None = None) -> None:
        super().__init__()
        self.death = death or Died()


@dataclass(frozen=True, slots=True, kw_only=True)
class Curbed:
    """The session's processes together held more than allowed; one of them, not the worker, was killed.

    `held` says what and how much: "310 MB, over their memory limit". `between`: before the request was sent.
    """

    held: str
    between: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The state that a session went back to. `exact`: to the state that was asked for, names and files.

    Else an older state, or with `fresh` an empty namespace. `fresh`: a new worker stands there. `lost` are names or
    other things that are not as they were, each with type, reason and remedy. `failed`: how many requests in a row have
    ended the worker in that state. `dead`: there is no worker, and will be none. `rewound`: the files went back, too.
    """

    exact: bool
    fresh: bool = False
    failed: int = 0
    lost: tuple[Row, ...] = ()
    dead: bool = False
    rewound: bool = False


Named = TypeVar("Named", bound=Finished | ToolCalled)

TurnEvent = Written | Curbed | Display | ToolCalled | Reserved | Finished | Died


class Turn(Protocol):
    """One request under way."""

    @property
    def sent(self) -> bool:
        """True if all was sent, of the request or of a reply; else `send_rest` comes before anything else."""
        ...

    async def send_rest(self, seconds: float) -> None:
        """Send what could not be sent without waiting. `WorkerGone` if the worker had died before this turn.

        TimeoutError when the worker does not take it within `seconds`; part of it may have been sent.
        """
        ...

    def at_once(self) -> TurnEvent | None:
        """The next event if it is there, or comes within a moment of what was last sent; never waits longer."""
        ...

    async def next(self) -> TurnEvent:
        """The next event. The last one is `Finished` or `Died`. May be cancelled and called again."""
        ...

    def has_ended(self) -> bool:
        """True once the end of the request has come, told or not. Looks at what has come by now, and waits for nothing.

        A host that was held up finds it here after the request's deadline.
        """
        ...

    def reply(self, reply: ToolReply | ToolRoom) -> None:
        """Answer a tool call, or ask for room for its answer, as far as that takes no waiting.

        What comes next is waited for as at the turn's start.
        """
        ...


FileVersion: TypeAlias = tuple[int, int, int, int]
"""Device, inode, time of the last change in nanoseconds, and size: two versions of a file differ in one of them."""


class Files(Protocol):
    """The session's own files, reached from the host without trusting what the session put there."""

    def write(self, path: str, data: bytes) -> FileVersion: ...
    def read(self, path: str, *, max_bytes: int, offset: int | None = None) -> bytes:
        """A file's bytes; `FileRefused` past `max_bytes`. With `offset`, at most `max_bytes` from there on."""
        ...

    def list(self, directory: str = "") -> list[str]: ...
    def delete(self, path: str) -> None: ...
    def version(self, path: str) -> FileVersion | None:
        """The version of a file, told without reading it; None where there is none, or none that can be reached."""
        ...


class Capture(Protocol):
    """A state of a session that is being saved: its memory is a process's own by now, its files stay.

    `CaptureFailed` where the session's code, or its end, keeps it from being saved; the session goes on.
    """

    async def begin(self, previous: Snapshot | None, suspects: Suspects | None = None) -> None:
        """Start reading. `previous` is a snapshot of the same session whose bytes the caller has: they do not come.

        `suspects` gets the values whose code ended or held up the process that saves. Where it then `tries_again`,
        another capture of the same state, begun with the same `suspects`, gets further without them.
        """
        ...

    async def read(self, put: Callable[[bytes], object], take: Callable[[int], object] = int) -> Snapshot:
        """The snapshot, once `put` has taken the bytes of each of its addresses, once each, in a thread.

        `take` gets how many bytes of memory the description needs next, before they are needed, less than none where
        some are given back, and may raise: in the end as many as the snapshot's `held`.
        """
        ...

    async def trial(self) -> tuple[Lost, ...]:
        """Names of the snapshot, once it is read, that are written anew and cannot be loaded again, as far as a trial
        tells. It goes on in the background: nothing of the session waits for it. As for `read`, another capture may
        get further."""
        ...

    def close(self) -> None:
        """Let go of it, read or not. Safe to call twice, and while `read` waits."""
        ...


def too_large(most: int) -> CaptureFailed:
    """The error of a state whose description does not fit into so many bytes of the host."""
    return CaptureFailed(
        f"what describes its state takes more than {most >> 20} MB of the program around it",
        hint="bind fewer names, or raise ExecutionLimits(max_host_mb=…)",
    )


class Kernel(Protocol):
    """A live worker behind its walls. One that inherits from this need not say what it has not: steps, a door, memory
    that the host reads."""

    capabilities: Capabilities
    owner: str = "a session"
    """The session in the words of a warning."""

    @property
    def names(self) -> dict[str, str]:
        """The names its cells have bound, with their types, as of the last turn that ended."""
        ...

    @property
    def files(self) -> Files: ...

    @property
    def ended(self) -> bool:
        """True if all its processes are gone, or going: it can go back to nothing."""
        ...

    @property
    def gone(self) -> bool:
        """True if the worker has ended or was killed, told in any thread: what it asked for is of no use any more."""
        ...

    async def ending(self) -> bool:
        """The same, between two requests. Where the worker is gone, the rest has a moment to follow."""
        ...

    def turn(self, request: Request, *, max_output_bytes: int) -> Turn:
        """Start a request, which is sent as far as that takes no waiting; the one before it must have ended."""
        ...

    def binding(self, name: str, value: object) -> Bind:
        """The request to bind a name to a copy of a value; UnpicklableError where none can be made.

        The value may be changed once the request has been carried out, and not before.
        """
        ...

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the running cell, if it lets itself be interrupted."""
        ...

    def kill(self) -> None:
        """End the worker and everything it started, whatever it is doing."""
        ...

    async def fetch(self, event: Named) -> Named:
        """A reply or a call with the buffers that it names by their places in the worker's memory, which stay there
        until the next request, or until the call is answered. An `Opaque` instead where they are not to be had."""
        return event

    async def store(self, buffers: Sequence[Buffer], seconds: float) -> bool:
        """Copy buffers into memory that the worker has for the next request; whether that could be done."""
        return False

    @property
    def traffic(self) -> Traffic:
        """Traffic through its door, if it has one."""
        return Traffic()

    @property
    def unlisted(self) -> str:
        """The destination that its door has refused last for not being listed; "" where there is none."""
        return ""

    def cut_off(self) -> None:
        """Close its door for good: what is open is cut, and nothing is connected to any more."""
        return

    @property
    def beside(self) -> bool:
        """True if large buffers go from memory to memory."""
        return False

    async def write(self, places: Sequence[Place], buffers: Sequence[Buffer]) -> None:
        """Copy buffers to these places in the worker's memory; OSError where it has no such."""
        raise OSError("no memory of the session is the host's to write to")

    def time_out(self) -> None:
        """As `interrupt`, for a cell that has met its time limit; what it started may be held back."""
        ...

    async def end_started(self) -> int:
        """End the processes that the worker has started since its last turn began, but not the worker; how many those
        were.
        """
        ...

    @property
    def steps(self) -> int:
        """Number of steps that can be undone: requests to run, bind and clear that were carried out, and noted changes
        of files."""
        return 0

    @property
    def states(self) -> tuple[int, ...]:
        """The states before and after those steps, oldest first: the last is the present one. No number comes twice."""
        return (0,)

    async def reserve(self, steps: int) -> str | None:
        """None if so many steps can be undone, which stays so until the next request. Else the limit in the way.

        That is a name of `ExecutionLimits`.
        """
        return None if steps <= self.steps else "max_checkpoints"

    async def settle_files(self) -> None:
        """Until what the files were is remembered: meanwhile one whose mode keeps its owner out has another."""
        return

    async def change_files(self, change: Callable[[], object]) -> None:
        """Have the host change the session's files: `change` is called in a thread.

        Not before what the files were is remembered, and not while the kernel recovers.
        """
        ...

    def note_files(self) -> None:
        """Make what the host has changed since the last step, if anything, a step of its own. Between two requests."""
        return

    async def stirred(self) -> bool:
        """True if what the steps so far have left, threads and processes, may have changed the session since the
        newest that was captured.

        Of a session whose states are saved, between two requests.
        """
        return False

    async def recover(self, steps: int = 0) -> Recovery:
        """End the worker and go back to the state before its last `steps` steps and any request under way.

        A session that has no such state left goes on from one before it, or from an empty namespace over those files.
        """
        ...

    @property
    def branchable(self) -> bool:
        """True if there is a state with a memory to branch from; else a step has to come first."""
        return True  # which `branch` then refuses

    async def branch(self, spec: KernelSpec, state: int | None = None) -> tuple[Kernel, tuple[Row, ...]]:
        """Another kernel in one of `states`, the newest if none is named, and what it could not bring along.

        It goes on apart, and lives on when this one is closed.
        """
        ...

    async def capture(self, state: int | None = None, *, seconds: float = 60.0) -> Capture:
        """One of `states`, held to be saved, within so many seconds of being begun; the newest one if none is named. It
        may be let go of afterwards.

        `CaptureFailed` where there is no such state, or too many are being saved.
        """
        ...

    async def restore(
        self, snapshot: Snapshot, fetch: Fetch, *, seconds: float = 60.0, suspects: Suspects | None = None
    ) -> tuple[Row, ...]:
        """Put what was saved into a kernel that has run nothing yet; the names that could not be, with the reasons.

        `fetch` gives the bytes of addresses. That is no step: `steps` is 0 afterwards. `suspects` gets the groups whose
        values end the process or keep it: where it then `tries_again`, a restore after `recover` gets further without
        them.
        """
        ...

    async def close(self) -> None:
        """End the worker and give back everything it held."""
        ...


class Launcher(Protocol):
    """Opens kernels of one trust level."""

    async def open(self, spec: KernelSpec) -> Kernel: ...

    def keep_ready(self, spec: KernelSpec, count: int) -> None:
        """Keep so many kernels of this spec, of whatever seed, made beforehand, for `open` to take; 0 ends that.

        Blocks until they are there, and raises what keeps one from being made.
        """
        ...
