"""Tensors of PyTorch on the processor: those of one storage stay of one storage, and gradients stay.

PyTorch's own pickling copies the storage of each tensor and drops the gradient. What is not plain, strided and a leaf
of its graph is left to it. Nothing here imports PyTorch but a cell.
"""

from __future__ import annotations

import ctypes
from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.pickler import Reduced, Saving, named
from cellblock.worker.saving.walk import is_plain_tensor


@named("torch.Tensor", "torch.nn.parameter.Parameter")
def _tensor(_: Saving, tensor: Any) -> Reduced:
    if not is_plain_tensor(tensor):
        return NotImplemented
    made = (
        type(tensor).__name__,
        tensor.untyped_storage(),
        tensor.dtype,
        tensor.storage_offset(),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.requires_grad,
    )
    rest = (tensor.grad, tensor.__dict__)
    return building.tensor, made, rest, None, None, building.set_tensor


@named("torch.storage.UntypedStorage")
def _storage(_: Saving, storage: Any) -> Reduced:
    if storage.device.type != "cpu":
        return NotImplemented
    size = storage.nbytes()
    return building.storage, (ctypes.string_at(storage.data_ptr(), size) if size else b"",)
