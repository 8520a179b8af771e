"""Figures of Matplotlib: their registries of callbacks, which count on as a figure is loaded."""

from __future__ import annotations

from typing import Any

from cellblock.worker.saving.pickler import Reduced, Saving, named_family


@named_family("matplotlib.cbook.CallbackRegistry")
def _callbacks(_: Saving, value: Any) -> Reduced:
    """With the first number after those of the callbacks that are saved: all others are registered anew."""
    made, arguments, state, *_rest = value.__reduce_ex__(5)
    following = 1 + max((number for held in state["callbacks"].values() for number in held), default=-1)
    return made, arguments, dict(sorted({**state, "_cid_gen": following}.items()))
