"""Failures for the exceptions of the `openai` package, for one endpoint; and the hint to install the package."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import partial

from cellblock.errors import ModelError, needing
from cellblock.masking import masked
from cellblock.models.assembling import Unreadable
from cellblock.models.failures import LONGEST, MOST_READ, Failure, Refusal, asked_wait
from cellblock.text import line, message_of, text_of, type_name
from cellblock.url import Url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.errors import ModelFailure

with needing("openai", "an endpoint's models need the package openai", partial(ModelError, kind="setup")):
    import openai as openai  # from here, so that its absence is told in one place

_BELOW = ("anyio", "h11", "httpcore", "httpx")
"""Packages whose errors tell of connections."""
_STATUSES = range(100, 1000)
_MOST_HIDDEN = 1_000
"""Characters of an endpoint's words that are looked through for secrets, 2 ms; fewer are shown."""
_SETTINGS = "see the port of OPENAI_BASE_URL and what HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE name"


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
        refusal = Refusal(
            status=status,
            message=self._hidden(text_of(told.get("message") or said, max_chars=MOST_READ)),
            code=f"{text_of(code, max_chars=MOST_READ)} {text_of(kind, max_chars=MOST_READ)}",
            after=asked_wait(headers or {}),
        )
        return refusal.failure(model=self._model, place=self.place)

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


def _is_certificate(error: BaseException | None) -> bool:
    """True if a connection failed as the other side is not who it should be: asking again changes nothing."""
    while error is not None:
        said = message_of(error, MOST_READ)
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in said:
            return True
        error = error.__cause__ or error.__context__
    return False
