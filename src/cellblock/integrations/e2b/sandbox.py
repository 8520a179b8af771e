"""`Sandbox`: E2B's code interpreter over one session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from cellblock.hosting.threads import later
from cellblock.hosting.unique import unique_word
from cellblock.integrations.e2b.commands import Commands, Environment
from cellblock.integrations.e2b.exceptions import InvalidArgumentException, checked, wrong
from cellblock.integrations.e2b.execution import (
    Execution,
    ExecutionError,
    Kind,
    OutputMessage,
    Result,
    execution,
    message,
    result,
    run_cell,
)
from cellblock.integrations.e2b.files import Filesystem
from cellblock.outputs import Output, OutputType
from cellblock.session.blocking import Session
from cellblock.text import represent

_LANGUAGES: dict[str | None, Kind] = {None: "python", "python": "python", "bash": "shell"}
_SERVICE_ARGUMENTS = {"api_key", "access_token", "domain", "debug", "request_timeout", "proxy", "secure", "headers"}
"""Arguments about reaching E2B's service: there is none here."""


class Sandbox:
    """A sandbox on this machine. `session` is the one beneath, for what E2B does not have: undo, branches, versions."""

    @checked
    def __init__(
        self,
        template: str | None = None,
        timeout: float | None = None,
        metadata: Mapping[str, str] | None = None,
        envs: Mapping[str, str] | None = None,
        allow_internet_access: bool = False,
        **options: Any,
    ) -> None:
        """Opens the session. `options` are those of `Session`: limits, mounts, preload, python, a name and state.

        The sandbox ends by itself after `timeout` seconds, by default with the program. `envs` are variables of its
        environment. What says how the service is reached is left aside; what cannot be had is an error.
        """
        if template is not None:
            what = f"there is no template {represent(template, max_chars=100)}"
            raise InvalidArgumentException(what, hint="python= names an interpreter, preload= packages to import")
        if allow_internet_access:
            raise InvalidArgumentException("a sandbox here has no network", hint="pass what it needs as files")
        given = {name: value for name, value in options.items() if name not in _SERVICE_ARGUMENTS}
        self.metadata = dict(metadata or {})
        try:
            self.session = Session(**given)
        except (TypeError, ValueError) as error:  # an option that is not one, or a wrong one
            raise InvalidArgumentException(str(error)) from None
        self.sandbox_id = self.session.name or unique_word(10)
        self.files = Filesystem(self.session)
        self._environment = Environment(self.session)
        self.commands = Commands(self.session, self._environment)
        self._running = True
        self._end: threading.Event | None = None
        try:
            if envs:
                self._environment.set(envs)
            if timeout is not None:
                self.set_timeout(timeout)
        except BaseException:
            self.kill()
            raise

    @classmethod
    def create(cls, template: str | None = None, timeout: float | None = None, **options: Any) -> Self:
        """A new sandbox; arguments are those of the constructor."""
        return cls(template, timeout, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @checked
    def run_code(
        self,
        code: str,
        language: str | None = None,
        context: None = None,
        on_stdout: Callable[[OutputMessage], object] | None = None,
        on_stderr: Callable[[OutputMessage], object] | None = None,
        on_result: Callable[[Result], object] | None = None,
        on_error: Callable[[ExecutionError], object] | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: float | None = None,
        request_timeout: float | None = None,
    ) -> Execution:
        """Run Python, or "bash", among the names of what ran before. What the code did wrong is `execution.error`.

        TimeoutException after `timeout` seconds, or at the session's own limit; the sandbox goes on. `envs` hold for
        this run. Callbacks are called in this thread, as it happens; for an image at the end.
        """
        if language not in _LANGUAGES:
            raise wrong("language", "'python' or 'bash'", language)
        callbacks = {"stdout": on_stdout, "stderr": on_stderr}

        def show(output: Output) -> None:
            if output.stream is not None:
                if callback := callbacks[output.stream]:
                    callback(message(output))
            elif output.uri is not None:  # its bytes can be read when the cell has ended
                images.append(output)
            elif on_result is not None and output.type is not OutputType.ERROR:
                on_result(result(output, self.session.read_output))

        images: list[Output] = []
        with self._environment.once(envs):
            cell = run_cell(self.session, code, _LANGUAGES[language], timeout, show)
        if on_result is not None:
            for image in images:
                on_result(result(image, self.session.read_output))
        found = execution(cell, self.session.read_output)
        if found.error is not None and on_error is not None:
            on_error(found.error)
        return found

    @checked
    def set_timeout(self, timeout: float) -> None:
        """End the sandbox so many seconds from now."""
        if self._end is not None:
            self._end.set()
        self._end = later(timeout, self.kill, "cellblock-e2b-timeout")

    def is_running(self) -> bool:
        """True if it has not ended."""
        return self._running

    def kill(self) -> bool:
        """End the sandbox and everything it started; False where it had ended."""
        was, self._running = self._running, False
        if self._end is not None:
            self._end.set()
        self.session.close()
        return was
