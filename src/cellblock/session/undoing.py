"""Why steps cannot be undone."""

from __future__ import annotations

from cellblock.errors import CellblockError
from cellblock.limits import ExecutionLimits
from cellblock.walls import Unavailable, Walls

_HELD = {
    "max_checkpoint_mb": "the memory of older states came to more than ExecutionLimits(max_checkpoint_mb=…), {} MB",
    "max_disk_mb": "the files of older states came to more than ExecutionLimits(max_disk_mb=…), {} MB",
    "max_files": "the files that older states had to themselves came to more than ExecutionLimits(max_files=…), {:,}",
}


def gone(step: str) -> CellblockError:
    """The error of a step that a session without versions cannot go back to."""
    return CellblockError(
        f"the session cannot go back to step {step[:80]!a}: it is too long ago, was undone, or its state was lost",
        hint="raise ExecutionLimits(max_checkpoints=…) before the session is opened, or give the session a name",
    )


def not_undone(
    steps: int, able: int, bound: str, *, limits: ExecutionLimits, walls: Walls, lacking: Unavailable | None
) -> CellblockError:
    """The error of steps that cannot be undone, of which `able` can be.

    `bound` is the limit that keeps no more, by its name; `lacking` says why the kernel keeps none, whatever the limits.
    """
    many = "1 step" if steps == 1 else f"{steps} steps"
    if steps <= able:
        return CellblockError(
            f"{many} cannot be undone: the copy of the session from before that has ended, or could not be made",
            hint="undo another number of steps",
        )
    message = f"{many} cannot be undone, {able} can" if able else "nothing can be undone"
    if walls == "reduced":
        hint = 'walls="reduced" keeps no checkpoints: use walls="full" where the machine gives them'
        return CellblockError(message, hint=hint)
    if lacking is not None:
        return CellblockError(f"{message}: {lacking.reason}", hint=lacking.remedy)
    if bound in _HELD:
        most = limits.checkpoint_bytes >> 20 if bound == "max_checkpoint_mb" else getattr(limits, bound)
        message += f": {_HELD[bound].format(most)}"
    few = bound in _HELD or able >= limits.max_checkpoints
    hint = f"raise ExecutionLimits({bound}=…) before the session is opened" if few else "the session has no older step"
    return CellblockError(message, hint=hint)
