"""Audits of modules about text."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import difflib
import enum
import re
import string
import textwrap
from typing import TYPE_CHECKING, Any

from cellblock.guard.refusal import denied
from cellblock.guard.sizes import check_spec
from cellblock.guard.stdlib import expressions
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, names, viewed

if TYPE_CHECKING:
    from cellblock.guard.world import World


def _formatter(world: World) -> type:
    class Formatter(string.Formatter):
        def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
            first, rest = _string.formatter_field_name_split(field_name)
            value = self.get_value(first, args, kwargs)
            for is_attribute, key in rest:
                if is_attribute:
                    raise denied("Format string attribute access not allowed", "format")
                value = value[key]
            return value, first

        def format_field(self, value: Any, format_spec: str) -> Any:
            return format(value, check_spec(format_spec))

    Formatter.__module__, Formatter.__qualname__ = "string", "Formatter"
    world.grant_types({Formatter: audit(Formatter, subclassable=True)})
    return Formatter


_WRAPPER = names(
    "width initial_indent subsequent_indent expand_tabs replace_whitespace fix_sentence_endings break_long_words "
    "drop_whitespace break_on_hyphens tabsize max_lines placeholder"
)
_WRAPPER_PATTERNS = names("wordsep_re wordsep_simple_re sentence_end_re unicode_whitespace_trans")

AUDITS = (
    ModuleAudit(
        name="string",
        members=names(
            "Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable "
            "punctuation whitespace"
        ),
        replaced={"Formatter": _formatter},
        types=(audit(string.Template, also=["template"]),),
        note="Formatter reads no attributes; Template compiles the patterns of its subclasses, and so has none",
    ),
    ModuleAudit(
        name="re",
        members=names(
            "A ASCII I IGNORECASE L LOCALE M MULTILINE S DOTALL X VERBOSE U UNICODE NOFLAG DEBUG RegexFlag "
            "Pattern Match error PatternError escape"
        ),
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
            audit(re.error, also=["msg", "pattern", "pos", "lineno", "colno"], subclassable=True),
        ),
        note="nothing ends a match under way: one that may take long is tried in a process of its own first",
    ),
    ModuleAudit(
        name="textwrap",
        members=names("wrap fill shorten dedent indent TextWrapper"),
        types=(audit(textwrap.TextWrapper, but=_WRAPPER_PATTERNS, also=_WRAPPER, writes=_WRAPPER),),
    ),
    ModuleAudit(
        name="difflib",
        members=names(
            "Differ HtmlDiff IS_CHARACTER_JUNK IS_LINE_JUNK SequenceMatcher context_diff diff_bytes "
            "get_close_matches ndiff restore unified_diff"
        ),
        note="Match is what the others give",
        types=(
            audit(difflib.SequenceMatcher, also=["a", "b", "ratio"]),
            audit(difflib.Differ),
            audit(difflib.HtmlDiff),
            audit(type(difflib.SequenceMatcher(None, "a", "a").find_longest_match()), also=["a", "b", "size"]),
        ),
    ),
    ModuleAudit(
        name="unicodedata",
        members=names(
            "bidirectional category combining decimal decomposition digit east_asian_width is_normalized lookup "
            "mirrored name normalize numeric unidata_version"
        ),
        note="ucd_3_2_0 is an object of the same functions, of another version",
    ),
)
