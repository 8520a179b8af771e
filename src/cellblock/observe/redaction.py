"""Keeps secrets out of logs, by rule: patterns of well-known keys, and values of the environment that look like one.

A value of the environment is found as it is, as `repr` and JSON write it, with other blanks in place of its own, and
where a text was cut in the middle of it, as long as half of it is there. Bytes that a log holds, in hexadecimal or
base64, are looked into.
"""

from __future__ import annotations

import base64
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping

from cellblock.masking import is_secret
from cellblock.text import dumps, represent, valid

MASK = "[redacted]"
BYTES = "base64:"
"""Prefix of a text that is bytes in base64."""

_KEYS = r"""
    (?=[sprgxA]) START (?:
        (?:sk|pk|rk)-[A-Za-z0-9_-]{16,}             # OpenAI, Anthropic, Stripe and their like
        | (?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,}
        | xox[abpr]-[A-Za-z0-9-]{10,}
        | (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])
        | AIza[A-Za-z0-9_-]{30,}
    )
    | (?<=Bearer\ )[A-Za-z0-9._~+/-]{8,}+=*
    | (?<=://)[^/\s:@]*+:[^/\s]+(?=@)
    """
"""None has a blank in it, and one alone has one before it."""
_PRIVATE = r"""
    -----BEGIN[ A-Z]*PRIVATE\ KEY-----(?:(?!-----END[ A-Z]*PRIVATE\ KEY-----).)*+(?:-----END[ A-Z]*PRIVATE\ KEY-----)?
    """
_JWT = r"""
    (?<![A-Za-z0-9_-]) ((?:(?! (?=eyJ) START )[A-Za-z0-9_-])*+)
    START eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{5,}+
    """
"""A JSON web token, and what stands before it in the same word: a word is read once, from its beginning."""
_START = r"(?: (?<![A-Za-z0-9]) | (?<=\\[nrtbf]) | (?<=\\x[0-9a-f]{2}) | (?<=\\u[0-9a-f]{4}) )"
"""No word goes on here, unless it is an escape's."""
_FLAGS = re.VERBOSE | re.DOTALL
_AT_WORDS = tuple(re.compile(one.replace("START", _START), _FLAGS) for one in (_PRIVATE, _KEYS, _JWT))
_ANYWHERE = tuple(re.compile(one.replace("START", ""), _FLAGS) for one in (_PRIVATE, _KEYS, _JWT))
_HEXADECIMAL = re.compile(r"(?:[0-9a-f]{2}){8,}+")
_LEAST = 8
_MOST_BITS = 1_000
_LONG = 2_000
_LONGEST = 10_000
"""Characters of what is no JSON."""
_PIECE = 2**16
_CUT = ("…", "...")
_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\f": "f", "\b": "b"}
_SPACES = re.compile(r"(\s+)")


class Redactor:
    """Replaces what is secret in texts, and in data that is made of texts.

    `rules` are patterns beside the built-in ones. Values of `environment` are secret where their names say so and they
    have at least 8 characters.
    """

    def __init__(
        self, rules: Iterable[str | re.Pattern[str]] = (), *, environment: Mapping[str, str] | None = None
    ) -> None:
        if isinstance(rules, str):
            raise TypeError(f"redact is a list of patterns, not the text {rules!r:.100}")
        self._rules = tuple(map(_compiled, rules))
        named = os.environ if environment is None else environment
        values = {value.strip() for name, value in named.items() if is_secret(name)}
        ordered = sorted(values, key=lambda value: (-len(value), value))
        self._numbers = {value for value in ordered if value.isdecimal() and len(value) >= _LEAST}
        self._values = [(_written(value), _forms(value)) for value in map(valid, ordered) if len(value) >= _LEAST]

    def text(self, text: str) -> str:
        """The text without its secrets."""
        for written, forms in self._values:
            text = written.sub(MASK, text)
            for form in forms:
                text = _without_cut(text, form)
        private, keys, jwt = _AT_WORDS
        pieces = _pieces(private.sub(MASK, text))
        text = "".join(jwt.sub(rf"\1{MASK}", keys.sub(MASK, piece)) for piece in pieces)
        for rule in self._rules:
            text = rule.sub(MASK, text)
        return text

    def data(self, data: object) -> object:
        """JSON data without the secrets of its texts; of other objects the repr."""
        if isinstance(data, str):
            return MASK if self._holds(data) else self.text(data)
        if isinstance(data, dict):
            return {self.text(str(key)): self.data(value) for key, value in data.items()}
        if isinstance(data, (list, tuple)):
            return [self.data(value) for value in data]
        if type(data) is int and self._numbers and data.bit_length() < _MOST_BITS:
            return MASK if str(data) in self._numbers else data
        if data is None or isinstance(data, (bool, int, float)):
            return data
        return self.text(represent(data, max_chars=_LONGEST))

    def _holds(self, text: str) -> bool:
        """True if a text stands for bytes with a secret in them."""
        if text.startswith(BYTES):
            try:
                data = base64.b64decode(text.removeprefix(BYTES))
            except ValueError:
                return False
        elif _HEXADECIMAL.fullmatch(text):
            data = bytes.fromhex(text)
        else:
            return False
        plain = data.replace(b"\0", b"")  # arrays of text have four bytes a character
        found = plain.decode("latin-1")
        return any(rule.search(found) for rule in _ANYWHERE) or any(
            one != self.text(one) for one in (found, plain.decode("utf-8", "replace"))
        )


def _pieces(text: str) -> Iterator[str]:
    """Parts of a text that cut no word and no "Bearer TOKEN": `re` holds all threads for as long as it reads one."""
    at = 0
    while len(text) - at > _PIECE:
        end = text.rfind(" ", at + 1, at + _PIECE)
        while text.endswith("Bearer", at, max(end, at)):
            end = text.rfind(" ", at + 1, end)
        end = max(end, text.rfind("\n", at + 1, at + _PIECE))
        if end <= at:  # one long word, such as a picture in base64
            end = _outside(text, at + _PIECE)
        yield text[at:end]
        at = end
    yield text[at:]


def _outside(text: str, at: int) -> int:
    """A place from there on that is in no secret: none is longer than `_LONGEST`."""
    for rule in _ANYWHERE:
        for found in rule.finditer(text, max(0, at - _LONGEST), at + _LONGEST):
            if found.start() < at < found.end():
                at = found.end()
    return min(at, len(text))


def _compiled(rule: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        return re.compile(rule)
    except re.error as error:
        raise ValueError(f"redact: {rule!r:.100} is not a pattern: {error}") from None


def _written(value: str) -> re.Pattern[str]:
    """A value in all the ways that `repr` and JSON write it, one within the other too; a very long one in some."""
    return re.compile("".join(_parts(value)) if len(value) <= _LONG else "|".join(map(re.escape, _forms(value))))


def _parts(value: str) -> Iterator[str]:
    """The patterns of a value's words, and of the blanks between them: any blanks, or escapes of theirs.

    No pattern gives back what it took, so a text is read once from each place. Before a backslash, which may begin an
    escape itself, there are as many escapes as blanks.
    """
    words = _SPACES.split(value)
    for at, word in enumerate(words):
        if at % 2 == 0:
            yield from map(_character, word)
        elif words[at + 1].startswith("\\"):
            yield rf"(?>{''.join(map(_character, word))}(?!\s)|\s++)"
        else:
            yield rf"(?:\s|{'|'.join(map(_character, sorted({*word, chr(10)})))})++"


_BACKSLASHES = r"(?:(?<!\\)\\++|(?<=\\))"
"""Any number of backslashes; those of the character before may have been taken already."""


def _character(one: str) -> str:
    if one == "\\":
        return _BACKSLASHES
    if one in "'\"/":
        return f"{_BACKSLASHES}?{one}"
    if one.isascii() and one.isprintable():
        return re.escape(one)
    code = ord(one)
    escapes = [f"x{code:02x}", f"u{code:04x}", f"U{code:08x}", *_LETTERS.get(one, "")]
    units = "".join(rf"{_BACKSLASHES}u{unit[0]:04x}" for unit in struct.iter_unpack("<H", one.encode("utf-16-le")))
    encoded = "".join(rf"{_BACKSLASHES}x{byte:02x}" for byte in one.encode())
    return rf"(?:{re.escape(one)}|{_BACKSLASHES}(?:{'|'.join(escapes)})|{units}|{encoded})"


def _forms(value: str) -> list[str]:
    """A value as it stands in texts, which may be cut there; the longest first."""
    texts = (repr(value), repr(value.encode())[1:], dumps(value), dumps(value, ensure_ascii=False))
    forms = {value, *(text[1:-1] for text in texts)}
    return sorted(forms | {" ".join(form.split()) for form in forms}, key=lambda form: (-len(form), form))


def _without_cut(text: str, value: str) -> str:
    """A text without what is left of a value where the text was cut in the middle of it."""
    least = max(_LEAST, (len(value) + 1) // 2)
    if value[:least] not in text and value[-least:] not in text:
        return text
    for mark in _CUT:
        text = mark.join(_without_ends(part, value, least) for part in text.split(mark))
    return text


def _without_ends(text: str, value: str, least: int) -> str:
    if len(text) < least:
        return text
    for many in range(len(value) - 1, least - 1, -1):
        if text.endswith(value[:many]):
            text = text[:-many] + MASK
        if text.startswith(value[-many:]):
            text = MASK + text[many:]
    return text
