"""What the exceptions of the `openai` package mean, for one endpoint; where the package is missing, what to install."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from cellblock.errors import ModelError
from cellblock.models.failures import LONGEST, Failure, Refusal, asked_wait
from cellblock.text import BadJson, line, message_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.errors import ModelFailure

try:
    import openai as openai  # from here, so that its absence is told in one place
except ImportError as error:
    raise ModelError(
        f"an endpoint's models need the package openai: {error}", kind="setup", hint='pip install "cellblock[openai]"'
    ) from None

_BELOW = ("anyio", "h11", "httpcore", "httpx")
"""Packages whose errors tell of connections."""

_MOST = 10_000
"""Characters of an endpoint's own words."""

_SECRET = 8
"""Characters from which on a key is a secret: local servers are given "ollama", "EMPTY" and the like."""


class Translator:
    """Makes failures of what a request of `model` to the endpoint at `place` ended with. None of them holds `key`."""

    def __init__(self, model: str, place: str, key: str) -> None:
        self.place = place
        self._model = model
        self._key = key

    def translated(self, error: Exception) -> Failure:
        """What an exception of the package, or of what is below it, means. Any other is a mistake, and is raised."""
        match error:
            case openai.APIStatusError():
                return self.refused(error.status_code, error.body, error.response.headers, error.message)
            case openai.APITimeoutError():
                return self.failure("timeout", f"{self.place} does not answer", "raise timeout_seconds")
            case openai.APIConnectionError():
                return self._unreached(error.__cause__ or error)
            case openai.APIError():  # in the middle of a stream
                return self.refused(0, error.body, {}, error.message)
            case BadJson() | json.JSONDecodeError() | UnicodeDecodeError() | RecursionError():
                return self.malformed(error)
        if type(error) is ValueError:  # of a number with too many digits
            return self.malformed(error)
        if isinstance(error, OSError) or type(error).__module__.startswith(_BELOW):
            return self._unreached(error)
        raise error

    def refused(self, status: int, body: object, headers: Mapping[str, str] | None = None, said: str = "") -> Failure:
        """What an error that the endpoint sent means; `status` is 0 where it came with or within an answer."""
        told = body if isinstance(body, Mapping) else {"message": body if isinstance(body, str) else said}
        code, kind = (told.get("code") or told.get("type") or ""), (told.get("type") or "")
        if not status and isinstance(code, int):
            status = code
        refusal = Refusal(
            status=status,
            message=self._hidden(text_of(told.get("message") or said, max_chars=_MOST)),
            code=f"{text_of(code, max_chars=_MOST)} {text_of(kind, max_chars=_MOST)}",
            after=asked_wait(headers or {}),
        )
        return refusal.failure(model=self._model, place=self.place)

    def malformed(self, error: Exception) -> Failure:
        said = f"{self.place} sent something that is not an answer: {message_of(error, _MOST)}"
        return self.failure("malformed", said, "is it an OpenAI-compatible endpoint?")

    def failure(self, kind: ModelFailure, said: str, hint: str) -> Failure:
        """One that may pass."""
        return Failure(ModelError(self._hidden(said), kind=kind, hint=hint), again=True)

    def _unreached(self, error: BaseException) -> Failure:
        name, why = type(error).__name__, message_of(error, _MOST)
        said = line(f"{name}: {why}" if why else name, LONGEST)
        if "Connect" in name:
            said, hint = f"no connection to {self.place}: {said}", "is it running? OPENAI_BASE_URL says where to ask"
        else:
            said, hint = f"the connection to {self.place} broke: {said}", "try again later"
        failure = self.failure("connection", said, hint)
        failure.again = not _is_certificate(error)
        return failure

    def _hidden(self, said: str) -> str:
        """What an endpoint says, without the key, which some repeat."""
        return said.replace(self._key, "***") if len(self._key) >= _SECRET else said


def shown(url: str) -> str:
    """An endpoint's URL without what may be secret in it. Raises `ModelError` where it is none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.scheme not in ("http", "https"):
        raise ModelError(
            "the endpoint's URL is not an HTTP URL",
            kind="setup",
            hint="set OPENAI_BASE_URL to something like http://localhost:11434/v1",
        )
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _is_certificate(error: BaseException | None) -> bool:
    """Whether a connection failed as the other side is not who it should be: asking again changes nothing."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in message_of(error, _MOST):
            return True
        error = error.__cause__ or error.__context__
    return False
