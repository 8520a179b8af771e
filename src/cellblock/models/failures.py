"""Failures of requests to an endpoint: the kind, whether asking again may help, and what to do about it."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from cellblock.errors import ModelError
from cellblock.masking import masked
from cellblock.models.assembling import Unreadable
from cellblock.text import line, message_of, text_of, type_name
from cellblock.url import Url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.errors import ModelFailure

LONGEST = 400
"""Characters of an endpoint's own message that are passed on."""
MOST_READ = 10_000
"""Characters that are searched for its meaning."""
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
_BELOW = ("anyio", "h11", "httpcore", "httpx")
"""Packages whose errors tell of connections."""
_STATUSES = range(100, 1000)
_MOST_HIDDEN = 1_000
"""Characters of an endpoint's words that are looked through for secrets, 2 ms; fewer are shown."""
_SETTINGS = "see the port of OPENAI_BASE_URL and what HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE name"


class Failure(Exception):
    """An attempt that failed: `error` tells of it, `again` is whether another may succeed, `after` a wait in seconds
    that the endpoint asked for."""

    def __init__(self, error: ModelError, *, again: bool, after: float | None = None) -> None:
        super().__init__()
        self.error = error
        self.again = again
        self.after = after


class Translator:
    """Makes failures of what a request of `model` to an endpoint ended with.

    None of them holds `key`, or what is secret in the endpoint's URL; `place` is the URL without that.
    """

    def __init__(self, model: str, url: Url, key: str) -> None:
        self.place = f"{url.scheme}://{url.host}{url.path.rstrip('/')}"
        self._model = model
        self._secrets = (key, url.user or "", url.password or "", *url.options.values())

    def translated(self, error: Exception, *, answered: bool) -> Failure:
        """Failure for an exception of the package, or of what is below it. Any other is a mistake, and is raised,
        unless the endpoint had `answered`: it is of what came then.
        """
        import openai

        match error:
            case openai.APIStatusError():
                return self.refused(error.status_code, error.body, error.response.headers, error.message)
            case openai.APITimeoutError():
                return self.failure("timeout", f"{self.place} does not answer", "raise timeout_seconds")
            case openai.APIConnectionError():
                return self._unreached(error.__cause__ or error)
            case openai.APIError():  # in the middle of a stream
                return self.refused(0, error.body, {}, error.message)
        if isinstance(error, OSError) or type(error).__module__.startswith(_BELOW):
            return self._unreached(error)
        if answered:
            return self.malformed(error)
        if isinstance(error, ExceptionGroup):  # of connecting: a port that cannot be
            return Failure(self.unusable(error.exceptions[0]), again=False)
        raise error

    def refused(self, status: int, body: object, headers: Mapping[str, str] | None = None, said: str = "") -> Failure:
        """Failure for an error that the endpoint sent; `status` is 0 where it came with or within an answer."""
        told = body if isinstance(body, Mapping) else {"message": body if isinstance(body, str) else said}
        code, kind = (told.get("code") or told.get("type") or ""), (told.get("type") or "")
        if not status and isinstance(code, int) and code in _STATUSES:
            status = code
        return refused(
            status,
            self._hidden(text_of(told.get("message") or said, max_chars=MOST_READ)),
            code=f"{text_of(code, max_chars=MOST_READ)} {text_of(kind, max_chars=MOST_READ)}",
            after=asked_wait(headers or {}),
            model=self._model,
            place=self.place,
        )

    def malformed(self, error: Exception) -> Failure:
        if isinstance(error, Unreadable):
            failure = self.failure("malformed", f"{self.place}: {error}", error.hint)
            failure.again = False
            return failure
        why = message_of(error, MOST_READ) if isinstance(error, ValueError) else f"{type(error).__name__} in reading it"
        said = f"{self.place} sent something that is not an answer: {why}"
        return self.failure("malformed", said, "is it an OpenAI-compatible endpoint?")

    def unusable(self, error: Exception) -> ModelError:
        """Error for what was raised before there was a connection: by the settings that clients take."""
        said = f"no request to {self.place} can be made: {type_name(error)}: {message_of(error, MOST_READ)}"
        return ModelError(line(self._hidden(said), LONGEST), kind="setup", hint=_SETTINGS)

    def failure(self, kind: ModelFailure, said: str, hint: str) -> Failure:
        """One that may pass."""
        return Failure(ModelError(self._hidden(said), kind=kind, hint=hint), again=True)

    def _unreached(self, error: BaseException) -> Failure:
        name, why = type(error).__name__, message_of(error, MOST_READ)
        said = line(f"{name}: {why}" if why else name, LONGEST)
        if "Connect" in name:
            said, hint = f"no connection to {self.place}: {said}", "is it running? OPENAI_BASE_URL says where to ask"
        else:
            said, hint = f"the connection to {self.place} broke: {said}", "try again later"
        failure = self.failure("connection", said, hint)
        failure.again = not _is_certificate(error)
        return failure

    def _hidden(self, said: str) -> str:
        """An endpoint's words, without the secrets that some repeat."""
        return masked(said[:_MOST_HIDDEN], self._secrets)


def refused(
    status: int, message: str, *, code: str = "", after: float | None = None, model: str, place: str
) -> Failure:
    """Failure that a refusal means for a request of `model` at the URL `place`.

    `status` is 0 where it came in the middle of a stream; `after` is the wait in seconds that it asked for.
    """
    kind, hint = _meaning(status, f"{code} {message}"[:MOST_READ], model, place)
    said = line(message, LONGEST)
    error = ModelError(
        f"{place} answered {status or 'in the middle of a stream'}" + (f": {said}" if said else ""),
        kind=kind, hint=hint, status=status,
    )  # fmt: skip
    return Failure(error, again=kind in ("rate", "server"), after=after)


def _meaning(status: int, said: str, model: str, place: str) -> tuple[ModelFailure, str]:
    if status < 500 and (is_too_long(said) if status != 429 else _TOO_LARGE.search(said)):
        return "context", "send less: shorter or fewer messages"
    match status:
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
        case _ if status in _AGAIN or (status >= 500 and status not in (501, 505)):
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


def _is_certificate(error: BaseException | None) -> bool:
    """True if a connection failed as the other side is not who it should be: asking again changes nothing."""
    while error is not None:
        said = message_of(error, MOST_READ)
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in said:
            return True
        error = error.__cause__ or error.__context__
    return False
