"""Tables of pandas: which of them share memory until one is written to, as pandas itself keeps track of it."""

from __future__ import annotations

from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.pickler import Reduced, Saving, named, named_family


@named_family("pandas._libs.internals.Block")
def _block(_: Saving, value: Any) -> Reduced:
    """Reduce a block, without the object that tells where its columns are: it is chance which blocks share it."""
    made, (values, at, dimensions), *_rest = value.__reduce__()
    at = slice(at.start, at.stop, at.step) if type(at) is slice else at
    return made, (values, at, dimensions), value.refs, None, None, building.set_block_references


@named("pandas._libs.internals.BlockValuesRefs")
def _references(_: Saving, value: Any) -> Reduced:
    return building.block_references, (type(value),)


@named_family("pandas.Index", "pandas.core.indexes.base.Index")  # as newer and older ones tell their names
def _index(_: Saving, value: Any) -> Reduced:
    references = vars(value).get("_references")  # those without memory of their own work theirs out
    if references is None:
        return NotImplemented
    made, arguments, *_rest = value.__reduce__()
    return made, arguments, references, None, None, building.set_index_references


@named("pandas.core.internals.managers.SingleBlockManager")
def _series(_: Saving, value: Any) -> Reduced:
    """By its block, which knows what it shares; its own way goes by the block's values."""
    return type(value), (value.blocks[0], value.axes[0])
