"""A kernel of the process level: a shell, a worker in it, and the descriptors the host holds on both."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import warnings
from functools import partial

import anyio
from anyio import to_thread

from cellblock.errors import IsolationUnavailable, SessionClosed
from cellblock.executors.process.family import Family, FamilyGone, Profile, family_of, running
from cellblock.executors.process.files import ProcessFiles
from cellblock.executors.process.forks import watch_forks
from cellblock.executors.process.link import Link
from cellblock.executors.process.turn import ProcessTurn
from cellblock.executors.process.zygote import failure
from cellblock.executors.protocol import Capabilities, Died, KernelSpec, WorkerGone
from cellblock.walls import Applied
from cellblock.wire.messages import Hello, Request
from cellblock.worker import control
from cellblock.worker.launch import SANDBOX_UID

_OPEN_SECONDS = 60.0
_TRIES = 3


class ProcessLauncher:
    """Opens kernels in forked, walled-in processes of a shared zygote."""

    async def open(self, spec: KernelSpec) -> ProcessKernel:
        for _ in range(_TRIES):
            try:
                return await _open(spec)
            except FamilyGone:
                continue
        raise IsolationUnavailable(
            f"the processes that make sessions ended {_TRIES} times while one was opened",
            mechanism="start",
            hint="see what they say on stderr, and whether the machine is out of memory",
        )


async def _open(spec: KernelSpec) -> ProcessKernel:
    """`FamilyGone` when the processes that make sessions ended meanwhile."""
    family = await _family(spec)
    shell = await Shell.make(family, spec)
    kernel = ProcessKernel(family, shell, spec)
    try:
        await kernel.attach()
    except BaseException:
        kernel.dispose()
        raise
    return kernel


async def _family(spec: KernelSpec) -> Family:
    profile = Profile(spec.python or sys.executable, spec.preload)
    family = running(profile)
    return await to_thread.run_sync(partial(family_of, profile, spec.progress)) if family is None else family


class Shell:
    """An empty session: its init's control channel and pidfd, and a descriptor of its files."""

    def __init__(self, channel: socket.socket, init: int, root: int, detail: str) -> None:
        self.channel = channel
        self.init = init
        self.detail = detail
        self.files = ProcessFiles(root, SANDBOX_UID if os.getuid() == 0 else None)

    @classmethod
    async def make(cls, family: Family, spec: KernelSpec) -> Shell:
        """`FamilyGone` when the nursery ended before there was one."""
        channel, init_end = control.pair()
        watch_forks(channel)
        channel.setblocking(False)
        try:
            with init_end:
                family.make_shell(
                    init_end,
                    disk_bytes=spec.limits.max_disk_mb * 2**20,
                    files=spec.limits.max_files,
                    memory_bytes=spec.limits.max_memory_mb * 2**20,
                )
            report, descriptors = await _receive(channel)
            if report is None and not family.alive:
                raise FamilyGone
            report = report or {"failed": "shell", "reason": "its process ended", "remedy": ""}
            if "failed" in report:
                raise failure(report, family.profile.python)
        except BaseException:
            channel.close()
            raise
        init, root = descriptors
        return cls(channel, init, root, str(report["ready"]))

    @property
    def ended(self) -> bool:
        """Whether its first process is gone, and with it every other and all files."""
        wait = select.poll()
        wait.register(self.init, select.POLLIN)
        return bool(wait.poll(0))

    def tell(self, what: str) -> None:
        """Send init a message that has no answer."""
        control.send(self.channel, {"do": what})

    def curbed(self) -> int | None:
        """Bytes held when a process was last killed for what all held together, since this was last asked."""
        held = None
        while True:
            try:
                notice, _ = control.receive(self.channel)
            except BlockingIOError:
                return held
            if notice is None:
                raise EOFError
            if isinstance(notice.get("curbed"), int):
                held = int(str(notice["curbed"]))

    async def sweep(self) -> None:
        """Kill every process of the session but init."""
        with contextlib.suppress(BrokenPipeError):  # init is gone
            self.tell("sweep")
        while True:
            answer, _ = await _receive(self.channel)
            if answer is None:
                raise _files_gone()
            if "swept" in answer:  # before it there may be notices of the watch
                return

    def close(self, *, kill: bool = True) -> None:
        """End init, and with it every process of the session."""
        with contextlib.suppress(ProcessLookupError):
            if kill:
                signal.pidfd_send_signal(self.init, signal.SIGKILL)
        self.channel.close()
        os.close(self.init)
        self.files.close()


class ProcessKernel:
    """One live worker. Its death ends a turn with `Died`; `restart` puts another into the same shell."""

    def __init__(self, family: Family, shell: Shell, spec: KernelSpec) -> None:
        self._family = family
        self._shell = shell
        self._spec = spec
        self._host = os.getpid()
        self._open = True
        self._link: Link | None = None
        self._changing = anyio.Lock()  # a restart and a close do not meet half way
        self.capabilities = Capabilities(trust_level="isolated", python="", walls=())

    async def attach(self) -> None:
        """Put a worker into the shell and learn what walls it stands behind; `FamilyGone` when nobody is left to."""
        hello = await self._new_worker()
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
                Applied(mechanism="root", detail=self._shell.detail),
                *(Applied(mechanism=name, detail=detail) for name, detail in hello.walls),
            ),
        )

    async def _new_worker(self) -> Hello:
        """A worker of the zygote, or of the one that takes its place when it ends meanwhile."""
        for _ in range(_TRIES):
            if not self._family.ready:
                await to_thread.run_sync(partial(self._family.ensure_ready, self._spec.progress))
            self._unlink()
            link = self._link = Link()
            try:
                link.token = self._family.attach(self._shell.init, link.ends, self._setup(link))
            except FamilyGone:
                continue
            finally:
                link.close_ends()
            hello = await link.await_hello(_OPEN_SECONDS)
            if hello is not None:
                return hello
            if self._family.ready and not self._shell.ended:
                raise IsolationUnavailable(
                    f"the worker did not start: {await self._last_sign()}",
                    mechanism="worker",
                    hint="see its message on stderr",
                )
            if not self._family.alive or self._shell.ended:
                break
        raise FamilyGone

    def _setup(self, link: Link) -> dict[str, object]:
        limits = self._spec.limits
        return {
            "seed": self._spec.seed,
            "nonce": link.nonce.hex(),
            "limits": {
                "memory_bytes": limits.max_memory_mb * 2**20,
                "file_bytes": limits.max_disk_mb * 2**20,
                "processes": limits.max_processes,
                "open_files": limits.max_open_files,
            },
        }

    async def _last_sign(self) -> str:
        death = await self.how_it_ended()
        if death.signal is not None:
            return f"it was killed by {signal.Signals(death.signal).name}"
        return "it ended" if death.status is None else f"it left with status {death.status}"

    @property
    def names(self) -> dict[str, str]:
        return self._living().names

    @property
    def files(self) -> ProcessFiles:
        return self._shell.files

    async def turn(self, request: Request, *, max_output_bytes: int, seconds: float | None = None) -> ProcessTurn:
        link = self._living()
        turn = ProcessTurn(link, max_output_bytes, self)
        try:
            turn.begin()
            await link.send(request, seconds)
        except WorkerGone as gone:
            turn.close()
            raise WorkerGone(gone.death if gone.death.reason else await self.how_it_ended()) from None
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
                raise _files_gone()
            await self._shell.sweep()
            try:
                await self.attach()
            except FamilyGone:
                raise _files_gone() from None

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
        status = await to_thread.run_sync(partial(self._family.how_it_ended, self._living().token))
        if status is None:
            return Died()
        if os.WIFSIGNALED(status):
            return Died(signal=os.WTERMSIG(status))
        return Died(status=os.WEXITSTATUS(status))

    def _living(self) -> Link:
        if self._link is None:
            raise SessionClosed("the session's worker is gone")
        return self._link

    def _unlink(self) -> None:
        if self._link is not None:
            self._family.forget(self._link.token)
            self._link.close()
            self._link = None


def _files_gone() -> SessionClosed:
    return SessionClosed("its first process is gone, and its files with it", hint="open a new session")


async def _receive(channel: socket.socket) -> tuple[dict[str, object] | None, list[int]]:
    """The next message on a channel that does not block."""
    with anyio.move_on_after(_OPEN_SECONDS):
        await anyio.wait_readable(channel)
        return control.receive(channel)
    raise IsolationUnavailable(
        f"a session's first process did not answer within {_OPEN_SECONDS:.0f} s",
        mechanism="shell",
        hint="see whether the machine is overloaded",
    )
