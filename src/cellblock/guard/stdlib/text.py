"""Audits of modules about text."""

from __future__ import annotations

import difflib
import enum
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from cellblock.guard.anatomy import exact
from cellblock.guard.names import names
from cellblock.guard.sizes import bear, require_narrow
from cellblock.guard.stdlib import expressions
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, naming, public, viewed


class HtmlDiff(difflib.HtmlDiff):
    """A maker of tables whose tabs are not wider than can be borne."""

    def __init__(self, tabsize: int = 8, *given: Any, **named: Any) -> None:
        require_narrow(tabsize)
        super().__init__(tabsize, *given, **named)


HtmlDiff.__module__ = "difflib"
_TABLES = ("make_file", "make_table")


_shown: Callable[[Any], str] = re.RegexFlag.__repr__


class _Flags(enum.IntFlag, boundary=enum.KEEP):
    """Flags of patterns: the combinations that code makes of them are none of those that the program has."""

    __str__ = object.__str__
    _numeric_repr_ = hex  # type: ignore[assignment]

    @classmethod
    def _missing_(cls, value: Any) -> Any:
        return super()._missing_(exact(value))

    def __repr__(self) -> str:
        return _shown(self)


_made: Any = _Flags
_FLAGS = _made("RegexFlag", {name: one.value for name, one in re.RegexFlag.__members__.items()}, module="re")

_ESCAPED = 10_000_000
"""Characters that one call escapes."""


def _escape(pattern: Any) -> Any:
    pattern = exact(pattern)
    if len(pattern) > _ESCAPED:
        raise MemoryError(f"{len(pattern):,} characters to escape: the most are {_ESCAPED:,} [size]")
    return re.escape(pattern)


_MARKS = 2_000
"""Marks in a row that are put in order one by one."""
_NORMAL = 2_000_000
_GROWTH = 18
"""Characters that one becomes at most."""


def _normal(name: str) -> Callable[..., Any]:
    """A function that puts the marks after each letter in order, which takes the square of their number."""
    function = getattr(unicodedata, name)

    def normal(form: Any, unistr: Any, /) -> Any:
        unistr = exact(unistr)
        if issubclass(type(unistr), str) and not unistr.isascii() and len(unistr) > _MARKS:
            if len(unistr) > _NORMAL:
                raise MemoryError(f"{len(unistr):,} characters: the most are {_NORMAL:,} [size]")
            bear(len(unistr) * _GROWTH)
            marks = 0
            for one in unistr:
                marks = marks + 1 if unicodedata.combining(one) else 0
                if marks > _MARKS:
                    raise MemoryError(f"more than {_MARKS:,} marks in a row [size]")
        return function(form, unistr)

    return normal


AUDITS = (
    ModuleAudit(
        name="re",
        members=names(
            "Pattern Match error PatternError"
        ),
        instead={"escape": _escape, "RegexFlag": _FLAGS, **_FLAGS.__members__},
        replaced={name: expressions.function(name) for name in ("compile", *expressions.METHODS)},
        types=(
            audit(
                re.Pattern,
                but=["scanner", *expressions.METHODS],
                constructable=False,
                replaced={
                    **{name: expressions.method(name) for name in expressions.METHODS},
                    "groupindex": viewed("groupindex"),
                },
            ),
            audit(re.Match, but=["expand"], constructable=False, replaced={"expand": expressions.expand}),
            TypeAudit(type=enum.EnumType),
            TypeAudit(type=_FLAGS, reads=public(int) | names("name value")),
            audit(re.error, also=["msg", "pattern", "pos", "lineno", "colno"], subclassable=True),
        ),
        note="nothing ends a match under way: one that may take long is tried in a process of its own first",
    ),
    ModuleAudit(
        name="difflib",
        calling=names("ndiff diff_bytes"),
        members=names(
            "Differ IS_CHARACTER_JUNK IS_LINE_JUNK SequenceMatcher context_diff diff_bytes "
            "get_close_matches ndiff restore unified_diff"
        ),
        instead={"HtmlDiff": HtmlDiff},
        note="Match is what the others give",
        types=(
            audit(difflib.SequenceMatcher, also=["a", "b", "ratio"]),
            audit(difflib.Differ),
            audit(HtmlDiff, but=_TABLES, replaced=naming(*_TABLES)),
            audit(type(difflib.SequenceMatcher(None, "a", "a").find_longest_match()), also=["a", "b", "size"]),
        ),
    ),
    ModuleAudit(
        name="unicodedata",
        members=names(
            "bidirectional category combining decimal decomposition digit east_asian_width lookup mirrored name "
            "numeric unidata_version"
        ),
        instead={name: _normal(name) for name in ("normalize", "is_normalized")},
        note="ucd_3_2_0 is an object of the same functions, of another version",
    ),
)
