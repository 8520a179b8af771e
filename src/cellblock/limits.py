"""Limits of a session, and the usage of one cell."""

from __future__ import annotations

from dataclasses import dataclass

_LEAST = {"max_checkpoints": 0, "max_open_files": 8, "max_files": 8}
"""The smallest values of limits for which above 0 is too small; with fewer files no process of a session starts."""
_MOST = {"max_output_bytes": 10**9, "max_checkpoints": 1000}
_MOST_OF_OTHERS = 10**12
"""More the kernel does not take. A limit of seconds may be infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLimits:
    """Bounds on a cell and on the session around it.

    A cell is interrupted at `timeout_seconds` of wall-clock time and killed `interrupt_grace_seconds`
    later if the interrupt did not end it. `max_memory_mb` counts growth above the preloaded image.
    `max_output_bytes` bounds what a cell's text keeps: the head and the tail, with the middle cut.
    `max_value_mb` bounds a value that leaves the session, which the host's memory holds; a larger one is `Opaque`.
    `max_disk_mb` bounds the workspace and `/tmp` together, which live in memory. `max_steps` is for agents.

    `max_checkpoints` is how many steps can be undone, and how many states of the session are kept for that. With 0
    there are none: nothing can be undone, and a session whose process ends goes on with an empty namespace.
    `max_checkpoint_mb` bounds the memory that these states hold beyond what the session itself holds, which is what
    has changed since: past it the oldest states are dropped, but never the newest. None means `max_memory_mb`. The
    files of these states may take another `max_disk_mb`; past that the oldest states are dropped, too.

    `max_host_mb` bounds what the session makes this program hold: outputs, values, arguments and answers of tools,
    what waits to be written to a store, and the description of the state that was saved last: some 2 KB a name,
    and 1 KB a file beside its path. A state that it leaves no room for is not saved. Past it the outputs and values of
    the oldest cells are dropped, and a cell that goes on filling it ends with an error of kind "memory".

    `max_connections` can be open at a time through `network=`; others wait. `max_network_mb` bounds what passes in
    all, both ways.
    """

    timeout_seconds: float = 30.0
    max_memory_mb: int = 256
    max_output_bytes: int = 10_000
    max_steps: int = 10
    max_disk_mb: int = 512
    max_value_mb: int = 64
    max_files: int = 50_000
    max_processes: int = 128
    max_open_files: int = 512
    interrupt_grace_seconds: float = 0.5
    max_checkpoints: int = 5
    max_checkpoint_mb: int | None = None
    max_connections: int = 32
    max_network_mb: int = 1024
    max_host_mb: int = 512

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is None and name == "max_checkpoint_mb":
                continue
            least = _LEAST.get(name)
            said = "a number above 0" if least is None else f"{least} or more"
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not (value > 0 if least is None else value >= least):
                raise ValueError(f"ExecutionLimits.{name} must be {said}, not {value!r}")
            if name.endswith("_seconds"):
                continue
            if not isinstance(value, int):
                raise ValueError(f"ExecutionLimits.{name} must be a whole number, not {value!r}")
            if value > (most := _MOST.get(name, _MOST_OF_OTHERS)):
                raise ValueError(f"ExecutionLimits.{name} must be {most:,} or less, not {value!r}")

    @property
    def checkpoint_bytes(self) -> int:
        """Most memory that states for going back may hold."""
        megabytes = self.max_memory_mb if self.max_checkpoint_mb is None else self.max_checkpoint_mb
        return megabytes * 2**20


def limits_of(given: ExecutionLimits | None) -> ExecutionLimits:
    """The limits that an argument gives; the defaults for None."""
    if not isinstance(given, ExecutionLimits | None):
        raise TypeError(f"limits must be ExecutionLimits, not {type(given).__name__}")
    return given or ExecutionLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Usage of one cell: wall and CPU time in milliseconds, peak memory in bytes above the preloaded image.

    With `network=`: the connections made through the door and the requests it refused meanwhile, and the bytes passed.
    """

    duration_ms: float = 0.0
    cpu_ms: float = 0.0
    memory_peak_bytes: int = 0
    connections: int = 0
    connections_refused: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
