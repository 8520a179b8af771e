"""Objects whose `__init__` has not ended have a repr, as tracebacks with locals and debuggers ask for one."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass

import pytest

import cellblock
from cellblock import CellblockError, Versioned

_NOT_OF_THE_HOST = (".worker", ".guard", ".testing", "__main__")


def _described() -> Iterator[type]:
    for module in pkgutil.walk_packages(cellblock.__path__, "cellblock."):
        if any(part in module.name for part in _NOT_OF_THE_HOST):
            continue
        try:
            found = vars(importlib.import_module(module.name))
        except CellblockError:  # an extra that is not installed
            continue
        for kind in found.values():
            is_own = inspect.isclass(kind) and kind.__module__ == module.name
            if is_own and "__repr__" in vars(kind) and not is_dataclass(kind):
                yield kind


@pytest.mark.parametrize("kind", sorted(_described(), key=lambda kind: kind.__qualname__))
def test_an_object_that_is_half_made_has_a_repr(kind: type) -> None:
    try:
        made = kind.__new__(kind)
    except TypeError:
        pytest.skip("it is made whole by __new__")
    assert repr(made)


def test_a_state_whose_url_is_no_text_has_a_repr_without_it() -> None:
    with pytest.raises(TypeError, match="url must be str") as refused:
        Versioned(b"postgresql://bob:secret@db/cells")  # type: ignore[arg-type]
    state = refused.traceback[-1].frame.f_locals["self"]
    assert repr(state) == "Versioned(url='***', strict=False, hibernate_after=None)"
