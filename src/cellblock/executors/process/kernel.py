"""A kernel of the process level: a shell, a worker in it, and the descriptors the host holds on both."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from functools import partial

from anyio import to_thread

from cellblock.errors import SessionClosed
from cellblock.executors.process.enclosure import Enclosure
from cellblock.executors.process.family import Family, FamilyGone
from cellblock.executors.process.files import ProcessFiles
from cellblock.executors.process.link import Link
from cellblock.executors.process.linked import LinkedKernel, boot_time, death_of, not_started, require_walls, said_of
from cellblock.executors.process.shell import Shell, files_gone
from cellblock.executors.process.waits import SECONDS, Waits, awaited
from cellblock.executors.protocol import Capabilities, Died, KernelSpec
from cellblock.walls import Applied
from cellblock.wire.messages import Hello

_TRIES = 3


class ProcessKernel(LinkedKernel):
    """One live worker. Its death ends a turn with `Died`; `restart` puts another into the same shell.

    Belongs to no event loop until it is first used on one.
    """

    def __init__(self, family: Family, shell: Shell, spec: KernelSpec) -> None:
        super().__init__(spec)
        self._family = family
        self._shell = shell
        self._enclosure = Enclosure(shell.init, spec.limits)
        self.capabilities = Capabilities(trust_level="isolated", python="", walls=())

    def attach(self) -> Waits[None]:
        """Put a worker into the shell and learn what walls it stands behind; `FamilyGone` when nobody is left to.

        It waits for `begin`.
        """
        hello = (yield from self._taken_worker()) or (yield from self._new_worker())
        require_walls(hello)
        link = self._living()
        group = self._enclosure.enclose(link.pid)
        self._shell.tell("seal")
        link.watch_notices(self._shell.channel.fileno())
        if self._enclosure.group is not None:
            link.watch_group(self._enclosure.group)
        self.capabilities = Capabilities(
            trust_level="isolated",
            python=hello.python,
            walls=(
                Applied(mechanism="namespaces", detail="user, mount, pid, net, ipc, uts"),
                *self._shell.walls,
                *(Applied(mechanism=name, detail=detail) for name, detail in hello.walls),
                group,
            ),
        )

    def begin(self) -> None:
        """Let the worker take requests: it is seeded now."""
        self._living().begin(self._spec.seed)

    def _taken_worker(self) -> Waits[Hello | None]:
        """The worker that the shell came with, if it did with one that lives."""
        self._link, self._shell.worker = self._shell.worker, None
        return None if self._link is None else (yield from self._link.hello())

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
            self._enclosure.prepare()
            try:
                hello = yield from link.hello()
            except TimeoutError:
                raise not_started(f"no word of it within {SECONDS:.0f} s") from None
            if hello is not None:
                return hello
            if self._family.ready and not self._shell.ended:
                raise not_started(said_of(death_of((yield partial(self._family.how_it_ended, link.token)))))
            if not self._family.alive or self._shell.ended:
                break
        raise FamilyGone

    @property
    def files(self) -> ProcessFiles:
        return self._shell.files

    def time_out(self, seconds: float) -> None:
        self.interrupt()
        if self._open:
            self._shell.tell("hold back", since=boot_time() - seconds)

    async def end_since(self, seconds: float) -> int:
        began = boot_time() - seconds
        async with self._changing:
            return await awaited(self._shell.end_since(began)) if self._open else 0

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
            self.begin()

    async def close(self) -> None:
        async with self._changing:
            self.dispose()

    def dispose(self) -> None:
        """Close without a wait: for one that nobody else has yet. Safe to call twice."""
        if self._open:
            self._open = False
            self._unlink()
            self._shell.close(kill=os.getpid() == self._host)  # a forked copy of the host only lets go
            self._enclosure.leave()

    def __del__(self) -> None:
        if self._open:
            self.dispose()
            warnings.warn("a session was not closed", ResourceWarning, stacklevel=2, source=self)

    def curbed(self) -> str | None:
        """See `Shell.curbed`."""
        return self._shell.curbed()

    async def how_it_ended(self) -> Died:
        """What is known of the worker's death."""
        death = death_of(await to_thread.run_sync(partial(self._family.how_it_ended, self._living().token)))
        return replace(death, excess=self._shell.excess() or self._enclosure.exceeded)

    def exceeded(self) -> str | None:
        return self._enclosure.exceeded or None

    def _unlink(self) -> None:
        if self._link is not None:
            self._family.forget(self._link.token)
            self._link.close()
            self._link = None
