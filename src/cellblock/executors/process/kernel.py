"""A kernel of the process level: a shell, a worker in it, and the descriptors the host holds on both."""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from functools import cached_property, partial

import anyio
from anyio import to_thread

from cellblock.errors import IsolationUnavailable, SessionClosed
from cellblock.executors.process.family import Family, FamilyGone
from cellblock.executors.process.files import ProcessFiles
from cellblock.executors.process.link import Link
from cellblock.executors.process.shell import Shell, files_gone
from cellblock.executors.process.turn import ProcessTurn
from cellblock.executors.process.waits import SECONDS, Waits, awaited
from cellblock.executors.protocol import Capabilities, Died, KernelSpec
from cellblock.walls import Applied
from cellblock.wire.messages import Hello, Request

_TRIES = 3


class ProcessKernel:
    """One live worker. Its death ends a turn with `Died`; `restart` puts another into the same shell.

    Belongs to no event loop until it is first used on one.
    """

    def __init__(self, family: Family, shell: Shell, spec: KernelSpec) -> None:
        self._family = family
        self._shell = shell
        self._spec = spec
        self._host = os.getpid()
        self._open = True
        self._link: Link | None = None
        self.capabilities = Capabilities(trust_level="isolated", python="", walls=())

    @cached_property
    def _changing(self) -> anyio.Lock:
        """Held over a restart and a close: they do not meet half way."""
        return anyio.Lock()

    def attach(self) -> Waits[None]:
        """Put a worker into the shell and learn what walls it stands behind; `FamilyGone` when nobody is left to.

        It waits for `begin`.
        """
        hello = yield from self._new_worker()
        if hello.missing:
            mechanism, reason, remedy = hello.missing[0]
            raise IsolationUnavailable(f"{mechanism}: {reason}", mechanism=mechanism, hint=remedy)
        link = self._living()
        self._shell.tell("seal")
        link.watch_notices(self._shell.channel.fileno())
        self.capabilities = Capabilities(
            trust_level="isolated",
            python=hello.python,
            walls=(
                Applied(mechanism="namespaces", detail="user, mount, pid, net, ipc, uts"),
                *self._shell.walls,
                *(Applied(mechanism=name, detail=detail) for name, detail in hello.walls),
            ),
        )

    def begin(self, spec: KernelSpec) -> None:
        """Let the worker take requests, for a session of this spec; it is seeded now."""
        self._spec = spec
        self._living().begin(spec.seed)

    @property
    def fit(self) -> bool:
        """Whether worker and shell live."""
        return self._link is not None and self._link.living and not self._shell.ended

    def _new_worker(self) -> Waits[Hello]:
        """A worker of the zygote, or of the one that takes its place when it ends meanwhile."""
        for _ in range(_TRIES):
            if not self._family.ready:
                yield partial(self._family.ensure_ready, self._spec.progress)
            self._unlink()
            link = self._link = Link()
            try:
                link.token = self._family.attach(self._shell.init, link.ends, self._setup(link))
            except FamilyGone:
                continue
            finally:
                link.close_ends()
            try:
                hello = yield from link.hello()
            except TimeoutError:
                raise _not_started(f"no word of it within {SECONDS:.0f} s") from None
            if hello is not None:
                return hello
            if self._family.ready and not self._shell.ended:
                raise _not_started(_said((yield partial(self._family.how_it_ended, link.token))))
            if not self._family.alive or self._shell.ended:
                break
        raise FamilyGone

    def _setup(self, link: Link) -> dict[str, object]:
        limits = self._spec.limits
        return {
            "nonce": link.nonce.hex(),
            "limits": {
                "memory_bytes": limits.max_memory_mb * 2**20,
                "file_bytes": limits.max_disk_mb * 2**20,
                "processes": limits.max_processes,
                "open_files": limits.max_open_files,
            },
        }

    @property
    def names(self) -> dict[str, str]:
        return self._living().names

    @property
    def files(self) -> ProcessFiles:
        return self._shell.files

    def turn(self, request: Request, *, max_output_bytes: int) -> ProcessTurn:
        turn = ProcessTurn(self._living(), max_output_bytes, self)
        try:
            turn.begin(request)
        except BaseException:
            turn.close()
            raise
        return turn

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._link is not None and self._link.pidfd >= 0 and os.getpid() == self._host:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._link.pidfd, number)

    async def restart(self) -> None:
        async with self._changing:
            if not self._open:
                raise SessionClosed("the session was closed", hint="open a new one")
            self._unlink()
            if self._shell.ended:
                raise files_gone()
            await awaited(self._shell.sweep())
            try:
                await awaited(self.attach())
            except FamilyGone:
                raise files_gone() from None
            self.begin(self._spec)

    async def close(self) -> None:
        async with self._changing:
            self.dispose()

    def dispose(self) -> None:
        """Close without a wait: for one that nobody else has yet. Safe to call twice."""
        if self._open:
            self._open = False
            self._unlink()
            self._shell.close(kill=os.getpid() == self._host)  # a forked copy of the host only lets go

    def __del__(self) -> None:
        if self._open:
            self.dispose()
            warnings.warn("a session was not closed", ResourceWarning, stacklevel=2, source=self)

    def curbed(self) -> int | None:
        """See `Shell.curbed`."""
        return self._shell.curbed()

    async def how_it_ended(self) -> Died:
        """What is known of the worker's death."""
        return _death(await to_thread.run_sync(partial(self._family.how_it_ended, self._living().token)))

    def _living(self) -> Link:
        if self._link is None:
            raise SessionClosed("the session's worker is gone")
        return self._link

    def _unlink(self) -> None:
        if self._link is not None:
            self._family.forget(self._link.token)
            self._link.close()
            self._link = None


def _death(status: int | None) -> Died:
    if status is None:
        return Died()
    if os.WIFSIGNALED(status):
        return Died(signal=os.WTERMSIG(status))
    return Died(status=os.WEXITSTATUS(status))


def _said(status: int | None) -> str:
    death = _death(status)
    if death.signal is not None:
        return f"it was killed by {signal.Signals(death.signal).name}"
    return "it ended" if death.status is None else f"it left with status {death.status}"


def _not_started(reason: str) -> IsolationUnavailable:
    return IsolationUnavailable(
        f"the worker did not start: {reason}",
        mechanism="worker",
        hint="see its message on stderr, and whether the machine is overloaded",
    )
