"""Iterators that C code cannot run away with: what they give passes through Python every so often."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from time import perf_counter
from types import GeneratorType
from typing import Any

_MOST = 4096
_SECONDS = 0.002


def ticking(values: Iterable[Any]) -> Iterator[Any]:
    """The same values, no sooner than they are asked for, in portions between which a cell can be ended.

    A portion is as large as what was done with the last one was quick: about 10 ns a value.
    """
    source = iter(values)
    return source if type(source) is GeneratorType else chain.from_iterable(_portions(source))


def _portions(source: Iterator[Any]) -> Iterator[Iterable[Any]]:
    size, began = 1, perf_counter()
    for first in source:
        yield (first,)
        yield islice(source, size)
        now = perf_counter()
        size = min(2 * size, _MOST) if now - began < _SECONDS else max(size // 2, 1)
        began = now
