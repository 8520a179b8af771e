"""A refusal: where, what, by which rule, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cellblock.errors import SecurityError, SourceRejected
from cellblock.guard.rules import BY_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One place in a source that a rule refuses. `line` counts from 1, `column` from 0, in characters."""

    rule: str
    what: str
    line: int
    column: int
    end_column: int
    instead: str

    def message(self) -> str:
        """In one line: where, what, which rule."""
        return f"line {self.line}: {self.what} [{self.rule}]"


class Denied(AttributeError):
    """Raised in running code that reached for what is not granted. Code may catch it as an AttributeError."""

    __module__ = "cellblock"
    rule = "attribute"


Denied.__name__ = Denied.__qualname__ = "SecurityError"


def denied(what: str, rule: str = "attribute") -> Denied:
    """The error of running code that a rule refuses."""
    error = Denied(f"{what} [{rule}]")
    object.__setattr__(error, "rule", rule)
    return error


def rejection(refusals: list[Refusal], source: str) -> SourceRejected:
    """The error that tells of refusals whose columns count bytes; a SecurityError where a rule answers a threat."""
    lines = source.split("\n")
    refusals = sorted((_in_characters(one, lines) for one in refusals), key=lambda one: (one.line, one.column))
    threatening = any(BY_ID[one.rule].threat for one in refusals)
    kind = SecurityError if threatening else SourceRejected
    more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
    error = kind(refusals[0].message() + more, hint=refusals[0].instead, refusals=tuple(refusals))
    error.excerpts = "\n".join(f"{one.message()}\n{excerpt(one, lines)}" for one in refusals[:10])
    return error


def _in_characters(refusal: Refusal, lines: list[str]) -> Refusal:
    """A refusal with its columns, which the parser counts in bytes, as characters of its line."""
    line = lines[refusal.line - 1].rstrip().encode() if 0 < refusal.line <= len(lines) else b""
    start, end = (len(line[:column].decode(errors="ignore")) for column in (refusal.column, refusal.end_column))
    return replace(refusal, column=start, end_column=max(end, start + 1))


def excerpt(refusal: Refusal, lines: list[str]) -> str:
    """The line, with carets under the place."""
    if not 0 < refusal.line <= len(lines):
        return ""
    line = lines[refusal.line - 1].rstrip()[:200]
    width = max(1, min(refusal.end_column, len(line)) - refusal.column)
    return f"    {line}\n    {' ' * refusal.column}{'^' * width}"
