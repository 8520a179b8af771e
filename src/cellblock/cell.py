"""A cell: one piece of source, what running it showed, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import Literal

from cellblock.limits import Usage
from cellblock.outputs import Output, preformatted
from cellblock.text import as_terminal, line, name


class CellState(Enum):
    """Stage of a cell's life. ERROR covers every failure but the time limit."""

    IDLE = "idle"
    RUNNING = "running"
    COMPLETED = "completed"
    ERROR = "error"
    TIMEOUT = "timeout"


CellKind = Literal["python", "shell", "host"]
ErrorKind = Literal["raised", "timeout", "memory", "refused", "crashed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellError:
    """Why a cell failed: the exception's type and message, a traceback that starts at the cell, a hint.

    `kind`: "raised" by the code, "timeout", "memory" (the limit was reached), "refused" (never ran),
    "crashed" (the process died, or its program did: the host alone says so). `status` is the exit status of a command,
    as a shell numbers it: 128 and the signal's number for one that a signal ended; None for what is no command's.
    """

    type: str
    message: str
    traceback: str = ""
    hint: str = ""
    kind: ErrorKind = "raised"
    status: int | None = None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}".removesuffix(": ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A name whose value is gone or will not survive a restore, why, and what brings it back.

    `alive`: the session has it still, but it cannot be saved.
    """

    name: str
    type: str
    reason: str
    remedy: str
    alive: bool = False

    def __str__(self) -> str:
        return f"{name(self.name)} ({line(self.type)}): {line(self.reason)}; {line(self.remedy)}"


@dataclass(init=False, repr=False, eq=False)
class Deferred:
    """A value that is decoded the first time it is asked for; a dataclass without fields, so that `asdict` of a cell is
    plain data, of which FastAPI and pydantic make JSON and a schema.

    `size` is that of its bytes until then, and then what `weigh` says of the value; `grown` is told the difference.
    """

    __slots__ = ("_load", "_value", "_weigh", "grown", "size")

    def __init__(self, load: Callable[[], object], size: int = 0, weigh: Callable[[object], int] | None = None) -> None:
        self.size = size
        self.grown: Callable[[int], object] | None = None
        self._weigh = weigh
        self._load: Callable[[], object] | None = load
        self._value: object = None

    @property
    def has_been_read(self) -> bool:
        """True once the value was decoded."""
        return self._load is None

    def get(self) -> object:
        if self._load is not None:
            self._value = self._load()
            self._load = None
            if self._weigh is not None:
                before, self.size = self.size, max(self.size, self._weigh(self._value))
                if self.grown is not None:
                    self.grown(self.size - before)
        return self._value

    def __reduce__(self) -> tuple[Callable[[object], Deferred], tuple[object]]:
        """A copy has the value itself: what it is decoded from may be memory of the session's."""
        return _having, (self.get(),)


def _having(value: object) -> Deferred:
    return Deferred(lambda: value)


NOTHING = Deferred(lambda: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One execution of one cell. A re-run makes a new value with the same `id` and a new `number`.

    `text` is what a model should read: every output and the error, cut to the session's output limit. `cut` is how many
    bytes of printed text the outputs lack, for the same limit.
    `timeout_seconds` is the time limit that its call gave in place of the session's.
    `rolled_back` says that the session is as it was before this cell; `undone`, that it went back past the cell later.
    """

    id: str
    number: int
    source: str
    state: CellState
    outputs: tuple[Output, ...] = ()
    error: CellError | None = None
    lost: tuple[Lost, ...] = ()
    usage: Usage = Usage()
    text: str = ""
    cut: int = 0
    rolled_back: bool = False
    undone: bool = False
    kind: CellKind = "python"
    timeout_seconds: float | None = None
    result: Deferred = field(default=NOTHING, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """True if the cell ran to its end."""
        return self.state is CellState.COMPLETED

    @property
    def value(self) -> object:
        """The last expression's value where it is portable, an `Opaque` where it is not, None without one.

        Read the first time it is asked for: about a second for a million items, so in a thread where a loop is to go on
        (`await asyncio.to_thread(getattr, cell, "value")`).
        """
        return self.result.get()

    def _repr_html_(self) -> str:
        """The text, for Jupyter; what is more than text is shown by the session's notebook, which has its bytes."""
        return preformatted(as_terminal(self.text))

    def to_json(self) -> dict[str, object]:
        """The cell as plain data that JSON holds, without its value, which `text` and `outputs` show."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "result"}
        lists = {"outputs": [one.to_json() for one in self.outputs], "lost": [asdict(one) for one in self.lost]}
        parts = {"usage": asdict(self.usage), "error": self.error and asdict(self.error), **lists}
        return {**plain, "state": self.state.value, "ok": self.ok, **parts}
