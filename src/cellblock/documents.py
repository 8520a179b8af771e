"""Documents that others may have written or damaged: read as what they should be, or refused by one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cellblock.errors import CellblockError
from cellblock.text import message_of

_OTHERWISE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


@contextmanager
def reading(
    what: str, error: type[CellblockError], *, hint: str = "", also: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Around code that takes a document apart: `error`, which says that `what` ("the log is") damaged.

    It replaces what Python raises where something is not as expected, and what `also` names.
    """
    kinds: tuple[type[Exception], ...] = (*_OTHERWISE, *also)
    try:
        yield
    except kinds as found:
        raise error(f"{what} damaged: {type(found).__name__}: {message_of(found, 500)}", hint=hint) from None
