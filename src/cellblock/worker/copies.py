"""Copies of the host's values, made from its pickles; the host is trusted, and code of the cell's may run here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from pickle import Unpickler, loads

from cellblock.wire.frames import Buffer
from cellblock.worker.late import runner

_names_ours = re.compile(rb"cellblock\.").search


def copy_of(data: Buffer, buffers: Sequence[Buffer] = ()) -> object:
    """The value in a pickle, whose parts out of band are memory that is to be the value's."""
    if _names_ours(data) is None:
        return loads(data, buffers=buffers)
    return _Unpickler(BytesIO(data), buffers=buffers).load()


class _Unpickler(Unpickler):
    def find_class(self, module: str, name: str) -> object:
        for ours in runner:  # which an import finds no more
            if ours.__name__ == module:
                return getattr(ours, name)
        return super().find_class(module, name)
