"""Classification of an endpoint's refusals: the kind, whether asking again may help, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from cellblock.errors import ModelError
from cellblock.text import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.errors import ModelFailure

LONGEST = 400
"""Characters of an endpoint's own message that are passed on."""
MOST_READ = 10_000
"""Those that are looked at for what it means."""
_TOO_LONG = re.compile(
    r"context[ _]?(length|window|size)|maximum (number of )?(prompt )?tokens|too many (input )?tokens"
    r"|(prompt|input|request|message)s? (is|are)? ?too (long|large)|reduce the length|exceed_context|max_new_tokens",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)
"""One request by itself is more than a minute's tokens. Other words about tokens are of many requests."""
_FILTERED = re.compile(r"content[ _]?(filter|management|policy)|responsible ?ai|moderation", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"not support (\w{1,40} )?tool|tool (use|calling|choice)\w{0,20} .{0,60}not supported", re.IGNORECASE
)
_AGAIN = frozenset({408, 409, 425, 429})
"""Statuses below 500 that pass by themselves."""


class Failure(Exception):
    """An attempt that failed: `error` tells of it, `again` is whether another may succeed, `after` a wait in seconds
    that the endpoint asked for."""

    def __init__(self, error: ModelError, *, again: bool, after: float | None = None) -> None:
        super().__init__()
        self.error = error
        self.again = again
        self.after = after


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An endpoint's answer that is none, as HTTP tells it. `status` is 0 where it came in the middle of a stream."""

    status: int
    message: str
    code: str = ""
    after: float | None = None

    def failure(self, *, model: str, place: str) -> Failure:
        """The failure that it means for a request of `model` at the URL `place`."""
        kind, hint = self._meaning(model, place)
        said = line(self.message, LONGEST)
        error = ModelError(
            f"{place} answered {self.status or 'in the middle of a stream'}" + (f": {said}" if said else ""),
            kind=kind, hint=hint, status=self.status,
        )  # fmt: skip
        return Failure(error, again=kind in ("rate", "server"), after=self.after)

    def _meaning(self, model: str, place: str) -> tuple[ModelFailure, str]:
        said = f"{self.code} {self.message}"[:MOST_READ]
        if self.status < 500 and (is_too_long(said) if self.status != 429 else _TOO_LARGE.search(said)):
            return "context", "send less: shorter or fewer messages"
        match self.status:
            case 401:
                return "key", f"set OPENAI_API_KEY to a key of {place}"
            case 402:
                return "quota", f"the account at {place} has no credit left"
            case 403 if not _FILTERED.search(said):
                return "key", "the key is not allowed to do this; give another one, or another model"
            case 404:
                return (
                    "unknown",
                    f"{place} knows no model {model!r}, or OPENAI_BASE_URL is not its API (most end in /v1)",
                )
            case 413:
                return "context", "send less: shorter or fewer messages"
            case 429 if "insufficient_quota" in said:
                return "quota", f"the account at {place} has no credit left"
            case 429:
                return "rate", "ask less often, or raise total_seconds"
            case status if status in _AGAIN or (status >= 500 and status not in (501, 505)):
                return "server", "try again later"
            case 0 if not _FILTERED.search(said):
                return "server", "try again later"
        if _FILTERED.search(said):
            return "filtered", "the endpoint's content filter refused the messages; put them otherwise"
        if _NO_TOOLS.search(said):
            return "refused", "this model takes no tools; use one that does, or an agent that writes code"
        return "refused", ""


def is_too_long(message: str) -> bool:
    """True if an endpoint's words say that the messages were more than the model takes."""
    return _TOO_LONG.search(message) is not None


def asked_wait(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that `Retry-After` asks to wait, a number or a date there; None without one that can be read."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    told = headers.get("retry-after")
    if told is None or _number(told) is not None:
        return _number(told)
    try:
        date = parsedate_to_datetime(told)
        return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, OverflowError):
        return None


def _number(told: str | None) -> float | None:
    try:
        number = float(told) if told is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
