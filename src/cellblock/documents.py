"""Documents that others may have written or damaged: read as what they should be, or refused by one error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cellblock.errors import CellblockError
from cellblock.text import message_of

_OTHERWISE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)


@contextmanager
def reading(
    what: str, error: Callable[..., CellblockError], *, hint: str = "", also: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Around code that takes a document apart: `error`, which says that `what` ("the log is") damaged.

    It replaces what Python raises where something is not as expected, and what `also` names.
    """
    kinds: tuple[type[Exception], ...] = (*_OTHERWISE, *also)
    try:
        yield
    except kinds as found:
        raise error(f"{what} damaged: {type(found).__name__}: {message_of(found, 500)}", hint=hint) from None


def fits(value: object, shape: object) -> bool:
    """True for a value of a shape: a type, an int of a range, any of a tuple's, each of a list, values by key, a text.

    All keys of a shape are there; `...` is the shape of the values by other keys, by default any.
    """
    match shape:
        case type():
            return shape is object or type(value) is shape
        case tuple():
            return any(fits(value, one) for one in shape)
        case range():
            return type(value) is int and value in shape
        case [each]:
            return isinstance(value, list) and all(fits(one, each) for one in value)
        case dict():
            others, named = shape.get(..., object), shape.keys() - {...}
            if not isinstance(value, dict) or not named <= value.keys():
                return False
            return all(fits(one, shape.get(key, others)) for key, one in value.items())
    return type(value) is type(shape) and value == shape
