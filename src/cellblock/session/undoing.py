"""How many steps lead back to a state, and why steps cannot be undone."""

from __future__ import annotations

from cellblock.errors import CellblockError
from cellblock.limits import ExecutionLimits
from cellblock.walls import Unavailable, Walls

_HELD = {
    "max_checkpoint_mb": "the memory of older states came to more than ExecutionLimits(max_checkpoint_mb=…), {} MB",
    "max_disk_mb": "the files of older states came to more than ExecutionLimits(max_disk_mb=…), {} MB",
}


def steps_to(state: int, states: tuple[int, ...]) -> int:
    """How many steps lie between a state and the present one; CellblockError where it is no more."""
    if state not in states:
        raise CellblockError(
            "the session cannot go back to that state: it is too long ago, or was undone",
            hint="raise ExecutionLimits(max_checkpoints=…) before the session is opened",
        )
    return len(states) - 1 - states.index(state)


def not_undone(
    steps: int, able: int, bound: str, *, limits: ExecutionLimits, walls: Walls, lacking: Unavailable | None
) -> CellblockError:
    """The error of steps that cannot be undone, of which `able` can be.

    `bound` is the limit that keeps no more, by its name; `lacking` says why the kernel keeps none, whatever the limits.
    """
    many = "1 step" if steps == 1 else f"{steps} steps"
    if steps <= able:
        return CellblockError(
            f"{many} cannot be undone: the copy of the session from before that has ended",
            hint="undo another number of steps",
        )
    message = f"{many} cannot be undone, {able} can" if able else "nothing can be undone"
    if walls == "reduced":
        hint = 'walls="reduced" keeps no checkpoints: use walls="full" where the machine gives them'
        return CellblockError(message, hint=hint)
    if lacking is not None:
        return CellblockError(f"{message}: {lacking.reason}", hint=lacking.remedy)
    if bound in _HELD:
        megabytes = limits.checkpoint_bytes >> 20 if bound == "max_checkpoint_mb" else limits.max_disk_mb
        message += f": {_HELD[bound].format(megabytes)}"
    few = bound in _HELD or able >= limits.max_checkpoints
    hint = f"raise ExecutionLimits({bound}=…) before the session is opened" if few else ""
    return CellblockError(message, hint=hint)
