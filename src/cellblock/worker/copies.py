"""Copies of the host's values, made from its pickles; the host is trusted, and code of the cell's may run here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from pickle import Unpickler, loads
from types import ModuleType

from cellblock.wire.frames import Buffer

_names_ours = re.compile(rb"cellblock\.").search
_modules: dict[str, ModuleType] = {}


def offer(modules: list[ModuleType]) -> None:
    """The runner's modules, whose classes the host's values may be of; an import finds them no more."""
    _modules.update((module.__name__, module) for module in modules)


def copy_of(data: Buffer, buffers: Sequence[Buffer] = ()) -> object:
    """The value in a pickle, whose parts out of band are memory that is to be the value's."""
    if _names_ours(data) is None:
        return loads(data, buffers=buffers)
    return _Unpickler(BytesIO(data), buffers=buffers).load()


class _Unpickler(Unpickler):
    def find_class(self, module: str, name: str) -> object:
        ours = _modules.get(module)
        return getattr(ours, name) if ours is not None else super().find_class(module, name)
