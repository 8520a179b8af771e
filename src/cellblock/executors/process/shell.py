"""The host's hold on a shell: a session without a worker, of which init is the first process."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace

from cellblock.errors import CaptureFailed, CellblockError, IsolationUnavailable, SessionClosed
from cellblock.executors.process.family import Family, FamilyGone
from cellblock.executors.process.files import ProcessFiles
from cellblock.executors.process.kinds import Kind
from cellblock.executors.process.link import Link
from cellblock.executors.process.mounts import Mount
from cellblock.executors.process.stopped import go_on, pid_of
from cellblock.executors.process.waits import answered, readable
from cellblock.executors.process.zygote import failure
from cellblock.executors.protocol import Died
from cellblock.hosting import clock, sockets, to_thread
from cellblock.hosting.account import SANDBOX_UID
from cellblock.hosting.forks import watch_forks
from cellblock.hosting.waiting import ready
from cellblock.walls import Applied
from cellblock.worker import control

_log = logging.getLogger("cellblock")
_ENDED = "open it again; if that does not help, see whether the machine is out of memory"


class Shell:
    """Init's control channel and pidfd, and a descriptor of the session's files."""

    def __init__(
        self,
        family: Family,
        channel: socket.socket,
        descriptors: list[int],
        walls: tuple[Applied, ...],
        mounts: tuple[Mount, ...],
        worker: Link | None = None,
        *,
        door: bool = False,
    ) -> None:
        watch_forks(channel)
        self.channel = channel
        self.init, root, *self.spaces = descriptors
        """`spaces` are a branch's namespaces, until its worker has them."""
        self.listener = sockets.adopted(self.spaces.pop(0), sockets.INTERNET) if door else None
        """The socket its door listens on, inside, until somebody serves it."""
        self.walls = walls
        self.worker = worker
        """The worker in it, where it was made beforehand and nobody has taken it yet."""
        owner = SANDBOX_UID if os.getuid() == 0 else None
        self.files = ProcessFiles(root, owner, [mount.place for mount in mounts], apart=bool(self.spaces))
        self._adopted = 0
        self._status: int | None = None
        self._is_gone = False
        self._held: str | None = None
        self._excess = ""
        self._unruly = False
        self.gone: list[tuple[int, str]] = []
        """Checkpoints that init has told are no more: all up to a number, with the limit they were let go for; or that
        of one whose copy has ended, and ""."""
        self.unkept: list[int] = []
        """Checkpoints whose files init could not remember."""
        self._asked = self._kept = 0
        self._expected: tuple[int, list[int]] = 0, []
        self._to_keep = self._answer_expected = self._answer_awaited = b""
        self._family = family
        family.enter(self)

    @classmethod
    async def make(
        cls, family: Family, kind: Kind, mounts: tuple[Mount, ...] = (), within: tuple[int, ...] = ()
    ) -> Shell:
        """Have the nursery make one, or give one that it has ready; `FamilyGone` when it ended before that.

        `within` are descriptors of the user and pid namespace of the session that it is a branch of.
        """
        channel, init_end = control.pair()
        watch_forks(channel)
        channel.setblocking(False)
        try:
            with init_end:
                if within:
                    family.make_branch(init_end, within, kind, mounts=bool(mounts))
                else:
                    family.make_shell(init_end, kind, mounts=bool(mounts))
            placed = await to_thread.run_sync(_send_trees, mounts, family, channel) if mounts else ()
            report, descriptors = await _received(channel, family.rouse)
            if report is None and not family.alive:
                raise FamilyGone
            report = report or {"failed": "shell", "reason": "its process ended", "remedy": _ENDED}
            if "failed" in report:
                raise _unplaced(mounts, report) if "place" in report else failure(report, family.profile.python)
        except BaseException:
            channel.close()
            raise
        match report:
            case {"spare": {"token": int(token), "nonce": str(nonce), "ready": str(detail)}}:
                channel.close()
                return cls._taken(family, token, bytes.fromhex(nonce), _root(detail), descriptors)
        walls = (_root(str(report["ready"])), *placed)
        return cls(family, channel, descriptors, walls, mounts, door=bool(kind["door"]))

    @classmethod
    def _taken(cls, family: Family, token: int, nonce: bytes, wall: Applied, descriptors: list[int]) -> Shell:
        """From the descriptors of a spare."""
        channel, init, root, *door, worker, stdout, stderr = descriptors
        to_worker, to_init = sockets.adopted(worker), sockets.adopted(channel)
        for one in (to_worker, to_init):
            one.setblocking(False)
        link = Link((to_worker, stdout, stderr, nonce))
        link.token = token
        family.took(token)
        return cls(family, to_init, [init, root, *door], (wall,), (), link, door=bool(door))

    @property
    def ended(self) -> bool:
        """True if init is gone, and with it every other process and all files, or going: its channel ends first."""
        if self._is_gone:
            return True
        return ready(self.init)

    def rouse(self) -> None:
        """Have init, and the processes that made it, go on where somebody has stopped them."""
        if (init := pid_of(self.init)) > 0:
            go_on(init, "the first process of a session")
        self._family.rouse()

    def tell(self, what: str, *ends: socket.socket, **more: object) -> None:
        """Send init a message, and copies of sockets' ends; nothing, once it was closed."""
        if self.channel.fileno() < 0:
            return
        with contextlib.suppress(ConnectionError):  # it is gone, which the worker's death tells
            control.send(self.channel, {"do": what, **more}, [end.fileno() for end in ends])

    def supervise(self) -> socket.socket:
        """The end for a worker whose system calls init is to answer."""
        try:
            return control.introduce(self.channel)
        except ConnectionError:
            raise files_gone() from None

    def curbed(self) -> str | None:
        """Description of what was held when a process other than the worker was killed for it since the last call."""
        self._hear()
        held, self._held = self._held, None
        return held

    def explain(self, death: Died) -> Died:
        """The worker's death, with what init killed it for, if it did."""
        with contextlib.suppress(EOFError):
            self._hear()
        return replace(death, excess=self._excess or death.excess, unruly=self._unruly)

    async def end_since(self, began: float, frozen: list[int]) -> int:
        """Kill what the worker has started since a time of CLOCK_BOOTTIME; how many processes that were."""
        self.tell("end", since=began, frozen=frozen)
        try:
            return int(str((await self._answer("end", "count"))["count"]))
        except CellblockError:  # init is gone, and all that it would have ended; or it has said what failed
            return 0

    async def stirred(self, since: int) -> bool:
        """True where a process beside the worker lives, or has lived since a checkpoint."""
        self.tell("stirred", since=since)
        return bool((await self._answer("stirred", "stirred"))["stirred"])

    def _hear(self) -> None:
        """Take what init has told by now; EOFError when it is gone."""
        while True:
            if self.channel.fileno() < 0:
                raise EOFError
            try:
                notice = control.heard(self.channel)
            except BlockingIOError:
                return
            if notice is None:
                raise EOFError
            self._note(notice)

    def _note(self, notice: dict[str, object]) -> None:
        match notice:
            case {"curbed": str(held), "worker": True, "unruly": bool(unruly)}:
                self._excess, self._unruly = held, unruly
            case {"curbed": str(held)}:
                self._held = held
            case {"ended": self._adopted, "status": int(status)}:  # the worker before it may end later than is told
                self._status = status
            case {"kept": int(number)}:
                self._kept = number
            case {"let go": int(number), "for": str(limit)}:
                self.gone.append((number, limit))
            case {"unkept": int(number)}:
                self.unkept.append(number)
            case {"gone": int(number)}:
                self.gone.append((number, ""))
            case {"failed": str(what), "reason": str(reason)}:
                _log.warning("the first process of a session could not %s: %s", what, reason)

    def expect_to_keep(self, number: int, forgotten: list[int]) -> None:
        """`keep` will be called with these, soon after the end of a cell: make its message while nobody waits."""
        self._expected = number, forgotten
        self._to_keep = control.packed(_keeping(number, forgotten))
        self._answer_expected = control.packed({"kept": number})

    def keep(
        self,
        number: int,
        forgotten: list[int],
        *made: socket.socket,
        tentative: bool = False,
        repeated: int | None = None,
    ) -> None:
        """Have init remember the files as they are, and forget states; it ends their copies.

        `tentative`: the host may go back at once, to the state before. Copies that will say on `made` that they are
        ready count to no limit of the session's; init is given each channel once. A state of files alone has the copy
        of the one that is `repeated`.
        """
        self._asked = number
        self._answer_awaited = self._answer_expected if self._expected[0] == number else b""
        is_expected = self._expected == (number, forgotten) and not tentative and repeated is None
        keeping = _keeping(number, forgotten, tentative=tentative, repeated=repeated)
        packed = self._to_keep if is_expected else control.packed(keeping)
        with contextlib.suppress(ConnectionError):  # init is gone, which the worker's death tells
            control.send_packed(self.channel, packed, [end.fileno() for end in made])

    async def kept(self) -> None:
        """Wait until init has remembered all it was asked to: nothing may write to the files before."""
        while self._kept < self._asked:
            self._note(await self._told())

    @property
    def keeping(self) -> bool:
        """True if init is still at it."""
        if self._kept < self._asked:
            if self._answer_awaited and control.take(self.channel, self._answer_awaited):
                self._kept = self._asked
                return False
            with contextlib.suppress(EOFError):  # which the worker's death tells
                self._hear()
        return self._kept < self._asked

    async def reserve(self) -> None:
        """Have init let go of no checkpoint until the next is kept, or one was gone back to."""
        self.tell("reserve")
        await self._answer("reserve", "reserved")

    async def copied(self) -> object:
        """The number of large files that init has copied, once it copies none: before, it lets nobody write to one."""
        return (await self._asked_apart("copy"))[0]["copied"]

    def adopt(self, worker: int, number: int, processes: int, *made: socket.socket) -> None:
        """Tell init which process is the worker now, by its number in the session, and at which checkpoint it is.

        `made` is as for `keep`. Its cells may have so many `processes`, 0 where it sees to that itself.
        """
        self._adopted, self._status = worker, None
        self.tell("adopt", *made, worker=worker, number=number, processes=processes)

    async def sweep(self, **more: object) -> list[str]:
        """Kill every process of the session but init; `SessionClosed` when that is gone.

        `spared` are frozen copies to be left, `wakes` is the one that goes on, 0 for none. `number` is what files go
        back to; those that could not are returned.
        With `attaches` a worker is to be attached then: init can be looked into until it is told to seal.
        """
        self.tell("sweep", **more)
        missed = (await self._answer("sweep", "swept"))["missed"]
        self._excess, self._unruly, self._held = "", False, None  # of what was ended, as all that was told before
        return [str(path) for path in missed] if isinstance(missed, list) else []

    async def export(self, number: int) -> list[int]:
        """Descriptors that a branch is made of: a list of a state's files, the store of them, a `/proc` that shows all
        processes of the session, the user and the pid namespace."""
        answer, ends = await self._asked_apart("export", number=number)
        if not answer["exported"]:
            raise CellblockError(f"this session cannot be branched: {answer['reason']}", hint="a branch needs /proc")
        return ends

    @contextlib.contextmanager
    def speaking(self, copy: int) -> Iterator[None]:
        """Have init let a frozen copy run, by its number there, while it is spoken to."""
        self.tell("speak", copy=copy)
        try:
            yield
        finally:
            self.tell("speak", copy=0)

    async def end_beside(self, copy: int, since: float) -> None:
        """Have init end what a frozen copy has made since then, but a branch; CellblockError where it goes on."""
        answer, _ = await self._asked_apart("end beside", copy=copy, since=since)
        if not answer["alone"]:
            raise could_not("branch", "a process of the session makes others all the time: end it, then try again")

    async def part(self, copy: int) -> None:
        """Have init let a frozen copy, by its number there, make the worker of a branch; 0 ends that."""
        await self._asked_apart("part", copy=copy)

    async def parted(self, worker: int) -> int | None:
        """The wait status of a branch's first worker that has ended; None where init does not know it."""
        try:
            status = (await self._asked_apart("parted", worker=worker))[0]["status"]
        except CellblockError:
            return None
        return status if isinstance(status, int) else None

    async def _asked_apart(self, what: str, **more: object) -> tuple[dict[str, object], list[int]]:
        """Answer of init on a channel of its own: the turn of a running cell hears the other."""
        ours, theirs = control.pair()
        with ours:
            ours.setblocking(False)
            with theirs:
                self.tell(what, theirs, **more)
            answer, ends = await _received(ours, self.rouse)
        if answer is None:
            raise files_gone() if self.ended else could_not(what, "see the log of cellblock for the reason")
        return answer, ends

    async def admit(self, copy: int) -> socket.socket:
        """Have init let a frozen copy, by its number there, make a scribe for as long as the channel is open.

        Waits until the copy may have one process more: before that it would be refused.
        """
        admitted, answer = self._held_open("admit", copy=copy), None
        try:
            answer, _ = await _received(admitted, self.rouse)
            if answer is None:
                many = CaptureFailed("too many states are being saved", hint="wait until one of them is")
                raise files_gone() if self.ended else many
        except IsolationUnavailable as error:
            raise CaptureFailed(str(error.args[0]), hint=error.hint) from error
        finally:
            if answer is None:
                admitted.close()
        return admitted

    def capture(self, number: int, since: int) -> socket.socket:
        """Have init keep a checkpoint's files for as long as the channel is open; what they are comes in over it.

        Given the number of the telling before, what is other than then.
        """
        return self._held_open("capture", number=number, since=since)

    def _held_open(self, what: str, **more: object) -> socket.socket:
        ours, theirs = control.pair()
        watch_forks(ours)
        with theirs:
            self.tell(what, theirs, **more)
        return ours

    async def take_over(self, files: list[int]) -> list[str]:
        """Have init copy files that `export` of another shell gave; the paths that could not be."""
        with contextlib.suppress(ConnectionError):
            control.send(self.channel, {"do": "import"}, files)
        return _paths(await self._answer("import", "imported"), "imported")

    async def as_imported(self, number: int) -> list[str]:
        """Have the files be again what init took over, at the checkpoint of this number; the paths that are not."""
        self.tell("as_imported", number=number)
        return _paths(await self._answer("as_imported", "as_imported"), "as_imported")

    def give_spaces(self) -> None:
        """The worker has the namespaces."""
        for space in self.spaces:
            os.close(space)
        self.spaces = []

    async def ending(self, seconds: float) -> int | None:
        """The wait status of the worker that init adopted; None when init does not tell it soon.

        A step on the event loop: init's channel has one reader, or another takes the answer that a step waits for.
        """
        deadline = clock.now() + seconds
        with contextlib.suppress(EOFError, TimeoutError):
            self._hear()
            while self._status is None:
                await readable(self.channel.fileno(), max(0.0, deadline - clock.now()), rouse=self.rouse)
                self._hear()
        return self._status

    async def _answer(self, what: str, word: str) -> dict[str, object]:
        """The answer to a request, which has this word; notices that come before it are noted."""
        while word not in (answer := await self._told()):
            self._note(answer)
            if answer.get("failed") == what:
                raise could_not(what, str(answer["reason"]))
        return answer

    async def _told(self) -> dict[str, object]:
        told, _ = await _received(self.channel, self.rouse) if self.channel.fileno() >= 0 else (None, [])
        if told is None:
            self._is_gone = True
            raise files_gone()
        return told

    def end(self) -> None:
        """End init, and with it every process of the session."""
        try:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.init, signal.SIGKILL)
        except PermissionError:  # this program has become another user
            self.forsake()

    def forsake(self) -> None:
        """Have init see the end of its channel, with which it ends."""
        with contextlib.suppress(OSError):  # it has, or is closed
            self.channel.shutdown(socket.SHUT_RDWR)

    def close(self, *, kill: bool = True) -> None:
        """Let go of everything; init is ended unless `kill` says otherwise."""
        if kill:
            self.end()
        if self.worker is not None:
            self.worker.close()
        self.give_spaces()
        if self.listener is not None:
            self.listener.close()
        self.channel.close()
        os.close(self.init)
        self.files.close()
        self._family.leave(self)


def files_gone(reason: str = "its first process is gone") -> SessionClosed:
    """The end of the process that holds a session's files. What follows from it is the hint: a session that is stored
    has another one, as its next call resumes it with its files."""
    return SessionClosed(reason, hint="its files are gone with it: open a new session")


def could_not(what: str, reason: str) -> CellblockError:
    """A request failed that a session's first process was asked to carry out."""
    return CellblockError(f"the session's first process could not {what}: {reason}", hint="the session goes on")


def _send_trees(mounts: tuple[Mount, ...], family: Family, channel: socket.socket) -> tuple[Applied, ...]:
    from cellblock.executors.process.porter import send_trees  # most sessions have no mounts, and open sooner

    return send_trees(mounts, family.profile.python, channel)


def _unplaced(mounts: tuple[Mount, ...], report: dict[str, object]) -> Exception:
    from cellblock.executors.process.porter import unplaced

    return unplaced(mounts, report)


def _keeping(
    number: int, forgotten: list[int], *, tentative: bool = False, repeated: int | None = None
) -> dict[str, object]:
    return {"do": "keep", "number": number, "forgotten": forgotten, "tentative": tentative, "repeated": repeated}


def _root(detail: str) -> Applied:
    return Applied(mechanism="root", detail=detail)


def _paths(answer: dict[str, object], word: str) -> list[str]:
    paths = answer[word]
    return [str(path) for path in paths] if isinstance(paths, list) else []


async def _received(
    channel: socket.socket, rouse: Callable[[], object]
) -> tuple[dict[str, object] | None, list[int]]:
    """The next message on a channel that does not block."""
    await answered(channel, "first process", mechanism="shell", rouse=rouse)
    return control.receive(channel)
