"""The repr of any value, bounded and never raising: what stands for a value that cannot be sent itself."""

from __future__ import annotations

from reprlib import Repr

from cellblock.values.forms import Opaque

_qualname_of = type.__dict__["__qualname__"].__get__


def opaque(value: object, *, max_repr: int = 2000, reason: str = "") -> Opaque:
    """The value's type and repr. Runs the value's own `__repr__`, so only where the value lives."""
    return Opaque(type_name(value), represent(value, max_chars=max_repr), reason)


def type_name(value: object) -> str:
    """The qualified name of a value's type, read past its metaclass, at most 200 characters."""
    return exact(_qualname_of(type(value)), 200)


def represent(value: object, *, max_chars: int) -> str:
    """`repr(value)`, its middle cut to `max_chars`. A repr that raises is named instead.

    Lists, tuples, text and bytes that cannot fit are cut before they are written out; an integer with more digits than
    the interpreter writes in decimal is hexadecimal. What is raised and no `Exception`, KeyboardInterrupt for one,
    passes.
    """
    try:
        long = _ends(value, max_chars)
        return long if long is not None else cut(exact(repr(value), None), max_chars)
    except Exception as error:  # the value's own code
        if type(error) is ValueError and type(value) in _BUILTIN:
            return cut(_Hexadecimal().repr(value), max_chars)
        return f"<{type_name(value)} repr failed: {type_name(error)}: {message_of(error, 500)}>"


_BUILTIN = frozenset((int, list, tuple, dict, set, frozenset))


class _Hexadecimal(Repr):
    """What there is room for of a value, with integers that need no decimal digits."""

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if abs(x) < 2**64 else cut(hex(x), self.maxlong)


def text_of(value: object, *, max_chars: int) -> str:
    """A text as it is, up to `max_chars`; of anything else what `represent` gives."""
    return exact(value, max_chars) if isinstance(value, str) else represent(value, max_chars=max_chars)


def cut(text: str, max_chars: int) -> str:
    """The head and the tail of a text longer than `max_chars`, and how much was between them."""
    if len(text) <= max_chars:
        return text
    tail = max_chars // 4
    head = max_chars - tail
    return f"{text[:head]}… {len(text) - max_chars:,} characters cut …{text[len(text) - tail :]}"


def exact(text: str, most: int | None) -> str:
    """The first `most` characters as an exact `str`: a subclass's methods are not for the reader to run."""
    return str.__getitem__(text, slice(0, most))


def message_of(error: BaseException, most: int) -> str:
    """What an exception says, up to `most` characters; of a KeyError the key that is text, not its repr."""
    try:
        match error:
            case KeyError(args=(str(key),)):
                return exact(key, most)
        return exact(str(error), most)
    except Exception:  # the error's own code
        return "its message could not be read"


def _ends(value: object, max_chars: int) -> str | None:
    """Both ends of a sequence with more than `max_chars` items; None for any other value."""
    kind = type(value)
    if not (kind is list or kind is tuple or kind is str or kind is bytes):
        return None
    assert isinstance(value, list | tuple | str | bytes)
    if len(value) <= max_chars:
        return None
    tail = max_chars // 4
    first = exact(repr(value[: max_chars - tail]), max_chars - tail)
    last = exact(repr(value[len(value) - tail - 1 :]), None)
    return f"{first}… {len(value):,} long, middle cut …{last[len(last) - tail :]}"
