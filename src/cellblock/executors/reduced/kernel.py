"""A kernel without namespaces: a keeper, the worker it made, and the descriptors the host holds on both."""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import replace

from cellblock.errors import CaptureFailed, CellblockError, IsolationUnavailable, MountRefused, RestoreFailed
from cellblock.executors.process.enclosure import Enclosure
from cellblock.executors.process.family import FamilyGone, Profile
from cellblock.executors.process.files import ProcessFiles
from cellblock.executors.process.link import Link
from cellblock.executors.process.linked import (
    LinkedKernel,
    gone,
    not_started,
    require_possible,
    require_walls,
    said_of,
)
from cellblock.executors.protocol import Capabilities, Capture, Died, Fetch, KernelSpec, Recovery, Row
from cellblock.executors.reduced.family import family_of
from cellblock.executors.reduced.keeper import Keeper
from cellblock.executors.suspects import Suspects
from cellblock.hosting import to_thread
from cellblock.hosting.conditions import interpreter
from cellblock.hosting.shortage import short_of
from cellblock.snapshots import Snapshot
from cellblock.walls import Applied, Unavailable, Wall
from cellblock.wire.messages import Hello

_TRIES = 3
_FULL = 'use walls="full" where the machine gives them'
LACKING: tuple[Wall, ...] = (
    Unavailable(
        mechanism="namespaces",
        reason='walls="reduced" goes without: processes, network and names are the host\'s, and only kept out of reach',
        remedy=_FULL,
    ),
    Unavailable(
        mechanism="root",
        reason='walls="reduced" goes without: paths are the host\'s, and Landlock says which may be used',
        remedy=_FULL,
    ),
    Unavailable(mechanism="mounts", reason='walls="reduced" gives none', remedy=f"write copies, or {_FULL}"),
)
"""Walls that a session lacks, whatever the machine could give."""


class ReducedLauncher:
    """Opens kernels behind the walls that need no namespaces."""

    async def open(self, spec: KernelSpec) -> ReducedKernel:
        if spec.mounts:
            raise MountRefused(
                'mounts: walls="reduced" gives none', hint=f"write copies with session.files, or {_FULL}"
            )
        if spec.network:
            raise IsolationUnavailable(
                'walls="reduced" has no network namespace in which a door could be',
                mechanism="door",
                hint=f"give the session a tool that asks the network, or {_FULL}",
            )
        return await _opening(spec)

    def keep_ready(self, spec: KernelSpec, count: int) -> None:
        """None are kept: whoever asks for some is told so."""
        if count:
            raise CellblockError('walls="reduced" keeps no sessions ready', hint=f"open them when needed, or {_FULL}")


async def _opening(spec: KernelSpec) -> ReducedKernel:
    require_possible(spec)  # before anything is made
    profile = Profile(interpreter(spec.python), spec.preload, spec.policy is not None)
    for _ in range(_TRIES):
        family = await to_thread.run_sync(family_of, profile, spec.progress)
        try:
            keeper = await Keeper.make(family, spec)
        except FamilyGone:
            continue
        return await ReducedKernel(keeper, spec).open()
    raise IsolationUnavailable(
        f"the process that makes sessions ended {_TRIES} times while one was opened",
        mechanism="start",
        hint="see what it says on stderr, and whether the machine is out of memory",
    )


class ReducedKernel(LinkedKernel):
    """One live worker. Its death ends a turn with `Died`; `recover` has the keeper make another."""

    trust_level = "reduced"
    where = 'walls="reduced"'
    instead = _FULL
    """The name of this level in messages, and the remedy for what it lacks."""

    def __init__(self, keeper: Keeper, spec: KernelSpec, enclosure: Enclosure | None = None) -> None:
        around = enclosure or Enclosure(replace(spec.limits, max_checkpoints=0))
        super().__init__(spec, around, contained=self.trust_level == "sandboxed")
        self._keeper = keeper
        self._tokens = 0
        self.capabilities = Capabilities(trust_level=self.trust_level, python="", walls=())

    async def attach(self) -> None:
        link = self._link = self._linked()
        self._tokens += 1
        link.token = self._tokens
        try:
            self._ask(link)
        finally:
            link.close_ends()
        try:
            hello = await link.introduced(Hello)
        except TimeoutError:
            hello = None
        if hello is None:
            death = await self._keeper.how_it_ended(link.token)
            raise short_of(OSError(self._keeper.unmade, "")) or not_started(said_of(death))
        require_walls(hello)
        walls = self._walls(hello, link.pid)
        self._listen(link, self._keeper.channel)
        self.capabilities = Capabilities(trust_level=self.trust_level, python=hello.python, walls=walls)

    def _linked(self) -> Link:
        return Link()

    def _ask(self, link: Link) -> None:
        """Have a worker made, at the other ends of a link."""
        self._keeper.attach(link.token, link.ends, self._setup(link))

    def _walls(self, hello: Hello, worker: int) -> tuple[Wall, ...]:
        """The walls around a worker that has said hello, and those it lacks."""
        group = self._enclosure.enclose(worker)
        told = (Applied(mechanism=name, detail=detail) for name, detail in hello.walls)
        return (*LACKING, self._files_wall(), *told, group)

    def _files_wall(self) -> Applied:
        megabytes = self._spec.limits.max_disk_mb
        return Applied(
            mechanism="files",
            detail=f"a private directory on the host's disk; {megabytes} MB of it are watched, not reserved",
        )

    @property
    def files(self) -> ProcessFiles:
        return self._keeper.files

    def time_out(self) -> None:
        self.interrupt()
        if self._open:
            self._keeper.tell("hold back", since=self._turn_began)

    async def end_started(self) -> int:
        async with self._changing:
            return await self._keeper.end_since(self._turn_began) if self._open else 0

    async def recover(self, steps: int = 0) -> Recovery:
        """There are no checkpoints: an empty namespace over the same files."""
        async with self._changing:
            self._require_open()
            lost = gone(self._link.names) if self._link is not None else ()
            self._unlink()
            await self._keeper.sweep()
            if self._enclosure.full:
                await to_thread.run_sync(self._enclosure.await_room)
            await self.attach()
            await self.begin()
            return Recovery(exact=False, fresh=True, lost=lost)

    async def capture(self, state: int | None = None, *, seconds: float = 60.0) -> Capture:
        raise CaptureFailed(f"{self.where} saves nothing yet", hint=self.instead)

    async def restore(
        self, snapshot: Snapshot, fetch: Fetch, *, seconds: float = 60.0, suspects: Suspects | None = None
    ) -> tuple[Row, ...]:
        raise RestoreFailed(f"{self.where} restores nothing yet", hint=self.instead)

    async def close(self) -> None:
        async with self._changing:
            if self._open:
                self._open = False
                self._unlink()
                if os.getpid() == self._host:
                    await to_thread.run_sync(self._keeper.close)
                else:
                    self._keeper.let_go()
                self._enclosure.leave()

    def dispose(self) -> None:
        """Close without a wait: for one that nobody else has yet. Safe to call twice."""
        if self._open:
            self._open = False
            self._unlink()
            self._keeper.let_go()
            self._enclosure.leave()

    def _curbed(self) -> str | None:
        return self._keeper.curbed()

    @property
    def ended(self) -> bool:
        return not self._open or self._keeper.ended

    @property
    def _falls(self) -> int:
        return self._keeper.channel.fileno()

    def _forsake(self) -> None:
        with contextlib.suppress(OSError):
            self._keeper.channel.shutdown(socket.SHUT_RDWR)

    async def how_it_ended(self) -> Died:
        """All that is known of the worker's death."""
        async with self._changing:  # which reads the keeper's channel, too
            self._require_open()
            death = await self._keeper.how_it_ended(self._living().token)
        return self._judged(death)

    def exceeded(self) -> str | None:
        return self._enclosure.held if self._enclosure.killed() else None

    def _unlink(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
