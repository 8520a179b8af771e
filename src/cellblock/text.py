r"""Security border: text of values, names and JSON from inside a wall or from a model (W8, L9, D4).

`str`, `repr`, `format`, f-strings and `json` run code of the value or raise on it, and their text may drive a terminal,
forge a row of a list or be refused by every encoder. Here each is bounded, never raises and gives an exact `str`:

| from | function | gives |
|---|---|---|
| text | `valid` | text that UTF-8 encodes |
| | `inert`, `as_terminal` | printable text of several lines: what is not seen is named; as a terminal shows it |
| | `plain` | the same for a terminal; marks that are not seen are left out |
| | `line`, `row` | one line: blanks made one, at most so many characters; blanks as they are |
| | `whole_number` | the number that its digits say |
| text of HTML | `unescape` | the text with the characters that its references name |
| a name, such as a file's | `name` | one line; as a Python literal where it is not printable |
| a value | `represent`, `text_of`, `type_name` | its repr; itself where it is text; its type's name |
| | `sayable` | itself where its `str` is printable, and else its text or repr, made inert |
| an exception | `message_of`, `misfits` | its message; what pydantic found wrong |
| JSON text, JSON data | `read_json`, `bounded` | data of bounded depth with valid text, or `BadJson` |
| data | `storable` | data that any encoder takes, such as msgpack's |
| data | `write_json`, `strict_json` | JSON text of whatever it is; a copy of what JSON holds, or None |

Modules that face such values use no other way: `tools/text_border.py`, which `make lint` runs, has the table of them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, wraps
from itertools import chain, cycle, repeat
from reprlib import Repr
from typing import Any, TypeVar

Data = TypeVar("Data")

DEEPEST = 64
"""Arrays and objects within one another that `read_json` and `write_json` take."""
_MOST_JSON = 64 * 2**20
_BITS = 2_000
"""Of an integer that any interpreter writes in decimal."""
_MOST_INTEGER = 10**4_300
_LONGEST_LEAF = 10_000
"""Characters of what stands in JSON for a value that it does not hold."""

_qualname_of = type.__dict__["__qualname__"].__get__


class BadJson(ValueError):
    """Text that is no JSON, or more of it or deeper than is read."""


class Interruption(BaseException):
    """An exception from outside of the code that runs, such as a time limit's: the functions here let it pass."""


# --------------------------------------------------------------------------------------------- text


def exact(text: str, most: int | None) -> str:
    """The first `most` characters as an exact `str`: a subclass's methods are not for the reader to run."""
    return str.__getitem__(text, slice(0, most))


def valid(text: str, most: int | None = None) -> str:
    """The first `most` characters as UTF-8 encodes them: halves of a character are joined, lone ones are U+FFFD."""
    text = exact(text, most)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _LONE.sub(lambda halves: "\ufffd" * len(halves[0]), _PAIRS.sub(_joined, text))
    return text


_PAIRS = re.compile("(?:[\ud800-\udbff][\udc00-\udfff]){1,2000}")
_LONE = re.compile("[\ud800-\udfff]+")


def _joined(halves: re.Match[str]) -> str:
    return halves[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def cut(text: str, max_chars: int) -> str:
    """The head and the tail of a text longer than `max_chars`, and how much was between them."""
    if len(text) <= max_chars:
        return text
    tail = max_chars // 4
    head = max_chars - tail
    return f"{text[:head]}… {len(text) - max_chars:,} characters cut …{text[len(text) - tail :]}"


_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: cursor, colour, screen
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC on one line: title, clipboard
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_UNSEEN = re.compile(
    r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of what follows
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]+"  # tags among them: a second ASCII, which models read
    # selectors of variants within a name, after what has none, and one after the other
    "|(?<=[^\\W\u2e80-\U0003ffff])[\ufe00-\ufe0f\U000e0100-\U000e01ef](?!\u20e3)"
    "|(?<![^\x00-\x7f])[\ufe00-\ufe0f\U000e0100-\U000e01ef](?!\u20e3)"
    "|(?<=[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
    # joiners that join nothing
    "|(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d](?![^\x00-\x7f])|(?<=[\u200c\u200d])[\u200c\u200d]+"
)
"""Characters without a shape: Unicode's `Default_Ignorable_Code_Point` and annotations. Joiners and a selector of
variants stay where they stand in scripts and emoji, which are written with them."""


def plain(text: str) -> str:
    """Text without escape sequences, control characters, overrides of the writing direction and what is not seen.

    Tabs, line feeds and carriage returns stay.
    """
    return _UNSEEN.sub("", _CONTROLS.sub("", _SEQUENCE.sub("", text)))


def inert(text: str) -> str:
    """Printable text with tabs and line breaks; a lone carriage return is one, as it is to Python's parser.

    Nothing is left out: what is not seen, or drives a terminal, is named, so that code reads as it runs.
    """
    text = valid(text).replace("\r\n", "\n").replace("\r", "\n")
    for unseen in (_CONTROLS, _UNSEEN):
        text = unseen.sub(lambda marks: "".join(map(_mark, marks[0])), text)
    return text


@cache
def _mark(mark: str) -> str:
    return f"[U+{ord(mark):04X}]"


def as_terminal(text: str) -> str:
    """Printed text, made inert, without its escape sequences and control characters.

    What a carriage return overwrote is gone, as progress bars expect.
    """
    if "\r" in text:
        lines = (line.rstrip("\r") for line in text.split("\n"))
        text = "\n".join(line[line.rfind("\r") + 1 :] for line in lines)
    return inert(_CONTROLS.sub("", _SEQUENCE.sub("", text)))


def line(value: object, most: int = 500) -> str:
    """One line of what `text_of` gives: no control characters, each run of blanks and line breaks one space, cut after
    `most` characters."""
    shown = " ".join(plain(text_of(value, max_chars=4 * most)).split())
    return shown if len(shown) <= most else shown[:most] + "…"


def row(text: str) -> str:
    """One row of a list, made inert: blanks stay, and a line break is a backslash and an n."""
    return "\\n".join(inert(text).splitlines())


_DIGITS = re.compile(r"&#(?=[0-9])0*+([0-9]{0,8}+)[0-9]*+")


def unescape(text: str) -> str:
    """The text of HTML with the characters that its references name.

    Of a number eight digits are read: more name no character, and Python refuses to read more than 4,300.
    """
    if "&" not in text:
        return text
    from html import unescape  # costs the start of each process 1 ms

    return unescape(_DIGITS.sub(r"&#0\1", text))


def name(text: str, most: int = 500) -> str:
    """A name in a list, such as a file's: as it is where it is printable, and else as a literal of Python, in a line.

    So it forges no row, and code that is given the literal opens the same file.
    """
    text = exact(text, None)
    plain = text.isprintable() and text[:1] not in ("'", '"') and not _UNSEEN.search(text)
    return cut(text if plain else _UNSEEN.sub(_escaped, repr(text)), most)


def _escaped(marks: re.Match[str]) -> str:
    return marks[0].encode("unicode_escape").decode("ascii")


def whole_number(text: str, most: int) -> int | None:
    """The number that ASCII digits say, from 0 to `most`; None for any other text, however long."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    return number if 0 <= number <= most else None


# ------------------------------------------------------------------------------------------- values


def type_name(value: object) -> str:
    """The qualified name of a value's type, read past its metaclass, at most 200 characters."""
    return exact(_qualname_of(type(value)), 200)


def represent(value: object, *, max_chars: int) -> str:
    """`repr(value)`, its middle cut to `max_chars`. A repr that raises is named instead.

    Runs the value's own `__repr__`: a value that a cell made has one only where it lives. Lists, tuples, text and bytes
    that cannot fit are cut before they are written out. A built-in container that holds far more than fits, or more
    than is written in one call, is written part by part, as far as fits. An integer with more digits than the
    interpreter writes in decimal is hexadecimal. Of what is raised only an `Interruption` passes.
    """
    try:
        short = _shortened(value, max_chars)
        return valid(short) if short is not None else cut(valid(repr(value)), max_chars)
    except Interruption:
        raise
    except BaseException as error:  # the value's own code, which may raise SystemExit too
        if type(error) is ValueError and type(value) in _BUILTIN:
            return cut(_Hexadecimal().repr(value), max_chars)
        said = f"{type_name(error)}: {message_of(error, 500)}".removesuffix(": ")
        return f"<{type_name(value)} repr failed: {said}>"


_PARTS, _TIMES = 20_000, 16
"""A container is not written out whole that holds so many parts, or so many times as many characters (of parts half) as
are shown."""
_BUILTIN = frozenset((int, list, tuple, dict, set, frozenset))


class _Hexadecimal(Repr):
    """The part of a value that there is room for, with integers that need no decimal digits."""

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if abs(x) < 2**64 else cut(hex(x), self.maxlong)


def _shortened(value: object, max_chars: int) -> str | None:
    """Both ends of a sequence with more than `max_chars` items, the beginning of a container that holds far more than
    so many characters, and None for a value that is written out whole."""
    kind = type(value)
    if kind is list or kind is tuple or kind is str or kind is bytes:
        assert isinstance(value, list | tuple | str | bytes)
        tail = max_chars // 4
        ends = head, end = value[: max_chars - tail], value[max(len(value) - tail - 1, 0) :]
        if len(value) > max_chars and not any(id(kind) in _WRITTEN and _is_larger(one, max_chars) for one in ends):
            first, last = exact(repr(head), max_chars - tail), exact(repr(end), None)
            return f"{first}… {len(value):,} long, middle cut …{last[len(last) - tail :]}"
    if id(kind) in _WRITTEN and _is_larger(value, max_chars):
        written = _beginning(value, max_chars)
        return written if len(written) <= max_chars else f"{exact(written, max_chars)}… the rest is cut"
    return None


# Types are told apart by address: a metaclass may hash and compare as it likes.
_WRITTEN = {
    id(list): ("[", "]"),
    id(tuple): ("(", ")"),
    id(set): ("{", "}"),
    id(frozenset): ("frozenset({", "})"),
    id(dict): ("{", "}"),
    id(deque): ("deque([", "])"),
    id(OrderedDict): ("OrderedDict([", "])") if sys.version_info < (3, 12) else ("OrderedDict({", "})"),
    id(defaultdict): ("defaultdict({}, {{", "})"),
}
"""The types whose parts are looked at, and what stands around these."""
_AGAIN = {id(set): "set(...)", id(deque): "[...]", id(OrderedDict): "...", id(defaultdict): "defaultdict(...)"}
"""Text for one of them within itself, where that is not its brackets with dots."""
_DICTS = frozenset(map(id, (dict, defaultdict, *((OrderedDict,) if sys.version_info >= (3, 12) else ()))))
_TEXTS = frozenset(map(id, (str, bytes, bytearray)))


def _is_larger(value: object, max_chars: int) -> bool:
    """True if built-in containers hold so many items, characters and digits that they are not written out whole."""
    most, level, met = _TIMES * max_chars, list[Any]((value,)), set[int]()
    parts = min(most // 2, _PARTS)
    for _ in range(DEEPEST):
        kinds = set(map(id, map(type, level)))
        if id(int) in kinds:
            most -= sum(one.bit_length() // 4 for one in level if type(one) is int)
        if kinds & _TEXTS:
            most -= sum(len(one) for one in level if id(type(one)) in _TEXTS)
        parts -= sum(len(one) for one in level if id(type(one)) in _WRITTEN)
        holders = {id(one) for one in level if id(type(one)) in _WRITTEN}
        if most < 0 or parts < 0 or holders <= met:
            break
        met |= holders
        level = [part for one in level for part in _parts(one)]
    else:
        return True  # it is nested too deep for `repr`
    return most < 0 or parts < 0


def _leaf(value: Any, most: int) -> str:
    if value is None or type(value) is float or type(value) is bool:
        return repr(value)
    return valid(repr(value[:most])) if id(type(value)) in _TEXTS else represent(value, max_chars=most)


def _parts(value: Any) -> Iterable[Any]:
    if id(type(value)) in _DICTS:
        return chain.from_iterable(value.items())
    if type(value) is OrderedDict:
        return value.items()
    return value if id(type(value)) in _WRITTEN else ()


def _beginning(value: object, most: int) -> str:
    """The first characters of the repr of containers, and of what is left out one more; no more is written of them."""
    written: list[str] = []
    open_: dict[int, tuple[Iterator[Any], Iterator[str], str]] = {0: (iter((value,)), repeat(""), "")}
    while open_ and most >= 0:
        parts, separators, end = open_[next(reversed(open_))]
        for part in parts:
            around = _WRITTEN.get(id(type(part)))
            around = around if around and part else None
            if around and id(part) in open_:
                piece = next(separators) + _AGAIN.get(id(type(part)), "...".join(around))
            elif around:
                begin = around[0].format(_leaf(part.default_factory, most)) if type(part) is defaultdict else around[0]
                piece = next(separators) + begin
                follow = cycle((": ", ", ")) if id(type(part)) in _DICTS else repeat(", ")
                comma = "," if type(part) is tuple and len(part) == 1 else ""
                open_[id(part)] = (iter(_parts(part)), chain(("",), follow), comma + around[1])
            else:
                piece = next(separators) + _leaf(part, most)
            break
        else:
            piece = end
            open_.popitem()
        written.append(piece)
        most -= len(piece)
    return "".join(written)


def half_made(described: Callable[[Any], str]) -> Callable[[Any], str]:
    """A `__repr__` that also describes an object whose `__init__` has not ended: a traceback with locals shows it."""

    @wraps(described)
    def described_even_so(self: Any) -> str:
        try:
            return described(self)
        except AttributeError:
            return f"<{type_name(self)}, half made>"

    return described_even_so


def text_of(value: object, *, max_chars: int) -> str:
    """A text as it is, up to `max_chars`; of anything else what `represent` gives."""
    if issubclass(type(value), str):
        assert isinstance(value, str)
        return valid(value, max_chars)
    return represent(value, max_chars=max_chars)


def sayable(value: object, *, max_chars: int) -> object:
    """A value for a reader that prints its `str`: itself where that is short and printable; else its text or repr."""
    if issubclass(type(value), str):
        return as_terminal(text_of(value, max_chars=max_chars))
    shown = represent(value, max_chars=max_chars)
    if len(shown) >= max_chars:
        return as_terminal(shown)
    try:
        said = exact(str(value), None)
    except Interruption:
        raise
    except BaseException:  # the value's own code
        said = ""
    return value if 0 < len(said) <= max_chars and said == inert(said) else as_terminal(shown)


def message_of(error: BaseException, most: int) -> str:
    """The message of an exception, up to `most` characters; of a KeyError the key that is text, not its repr.

    Runs the exception's own `__str__`, so on no event loop. Of what is raised only an `Interruption` passes.
    """
    try:
        match error:
            case KeyError(args=(str(key),)):
                return valid(key, most)
        return valid(_said(error, most), most)
    except Interruption:
        raise
    except BaseException:  # the error's own code, which may raise SystemExit too
        return "its message could not be read"


_OF_ARGUMENTS = (BaseException.__str__, KeyError.__str__)


def _said(error: BaseException, most: int) -> str:
    """`str(error)`, without more of it than is read where that is known of its kind."""
    if type(error).__str__ in _OF_ARGUMENTS and any(
        type(one) is not str and _shortened(one, most) for one in error.args
    ):
        return ", ".join(text_of(one, max_chars=most) for one in error.args)
    kind = getattr(sys.modules.get("pydantic_core"), "ValidationError", None)
    return (kind is not None and isinstance(error, kind) and _too_many(error)) or str(error)


def misfits(error: Any) -> str:
    """The first ten errors of a pydantic `ValidationError`, each with its place; their number where it is over 1,000.

    pydantic writes all of them or none, in one call that holds the interpreter for 6 to 8 µs an error.
    """
    return _too_many(error) or "; ".join(
        ": ".join([*([".".join(map(line, one["loc"]))] if one["loc"] else []), line(one["msg"])])
        for one in error.errors(include_url=False, include_context=False, include_input=False)[:10]
    )


def _too_many(error: Any) -> str:
    count = error.error_count()
    return f"{count:,} validation errors for {error.title}" if count > 1_000 else ""


# --------------------------------------------------------------------------------------------- JSON


def read_json(text: str | bytes, *, deepest: int = DEEPEST, halves: bool = False) -> object:
    """Value of JSON text, its strings valid text; `BadJson` where it is none, has over 64 MB or is deeper than
    `deepest`. With `halves` its strings are as they are written, lone halves of characters too."""
    if len(text) > _MOST_JSON:
        raise BadJson(f"it has more than {_MOST_JSON >> 20} MB")
    try:
        return bounded(json.loads(text), deepest=deepest, halves=halves)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadJson(f"it is not JSON: {error}") from None
    except BadJson:
        raise
    except ValueError:  # of an integer with more than 4,300 digits
        raise BadJson("it has a number of too many digits") from None
    except RecursionError:
        raise BadJson(_TOO_DEEP) from None


_MOST_VALUES = 250_000
"""Commas and opening brackets of a JSON text of a model, which has no more values. No model writes so many at once."""
_MOST_DIGITS = 2_000_000
"""Digits of the same: long numbers take their reader as long as fifty values."""


def too_much(text: str | bytes) -> str:
    """The bound that JSON text of a model exceeds, as "250,000 values"; "" for none. Its reader holds all threads."""
    for what, marks, most in (("values", ",[{", _MOST_VALUES), ("digits", "0123456789", _MOST_DIGITS)):
        counted: Any = (one.encode() if isinstance(text, bytes) else one for one in marks)
        if sum(map(text.count, counted)) > most:
            return f"{most:,} {what}"
    return ""


_TOO_DEEP = "it is nested too deeply"


def bounded(value: Data, *, deepest: int = DEEPEST, halves: bool = False) -> Data:
    """A copy of JSON's data with valid texts; `BadJson` for what is deeper, or an integer that cannot be written. What
    JSON has not stays as it is, and with `halves` texts do."""
    made: Any = value
    less = deepest - 1
    if isinstance(value, str):
        made = value if halves else valid(value)
    elif isinstance(value, int) and not -_MOST_INTEGER < value < _MOST_INTEGER:
        raise BadJson("an integer has more than 4,300 digits")
    elif isinstance(value, dict | list | tuple) and not deepest:
        raise BadJson(_TOO_DEEP)
    elif isinstance(value, dict):
        made = {bounded(key, halves=halves): bounded(one, deepest=less, halves=halves) for key, one in value.items()}
    elif isinstance(value, list | tuple):
        made = [bounded(one, deepest=less, halves=halves) for one in value]
    return made  # type: ignore[no-any-return]


def dumps(value: object, **options: Any) -> str:
    """JSON text by the standard library's own encoder: a program may have replaced `json.dumps`, by one of bytes."""
    return json.JSONEncoder(**options).encode(value)


def storable(value: object) -> Any:
    """A copy that encoders take: integers of 64 bits and what is too deep are text; what JSON has not stays."""
    return _held(value, DEEPEST, bits=64)


def write_json(value: object, *, indent: int | None = None, escaped: bool = True) -> str:
    """JSON text of a value, in ASCII where `escaped`; what it does not hold, or is too deep, is its repr, cut."""
    try:
        text = dumps(value, allow_nan=False, indent=indent, ensure_ascii=escaped)
    except Exception:  # the value's own code, or what JSON does not hold
        text = ""
    # half of a character, or a whole one in two escapes
    if not text or r"\ud" in text or text != valid(text):
        text = dumps(_held(value, DEEPEST), indent=indent, ensure_ascii=escaped)
    return text


def _held(value: object, deepest: int, bits: int = _BITS) -> object:
    """The nearest to a value that JSON holds."""
    kind = type(value)
    if value is None or kind is bool or (kind is int and value.bit_length() < bits):  # type: ignore[attr-defined]
        return value
    if kind is float:
        return value if value - value == 0 else represent(value, max_chars=10)  # type: ignore[operator]
    if issubclass(kind, str):
        return valid(value)  # type: ignore[arg-type]
    if deepest and (kind is list or kind is tuple):
        return [_held(one, deepest - 1, bits) for one in value]  # type: ignore[attr-defined]
    if deepest and isinstance(value, Mapping):
        return {text_of(key, max_chars=_LONGEST_LEAF): _held(one, deepest - 1, bits) for key, one in value.items()}
    if bits < _BITS and not isinstance(value, int | list | tuple | Mapping):
        return value
    return represent(value, max_chars=_LONGEST_LEAF)


def strict_json(value: object) -> tuple[object] | None:
    """A copy of a JSON value without NaN, infinities and lone surrogates; None where it cannot be one."""
    try:
        text = dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return (json.loads(valid(text)),)
