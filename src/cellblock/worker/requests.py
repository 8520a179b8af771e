"""Carries out the host's requests, one after the other, and reports each before it does what can wait."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from gc import collect
from gc import isenabled as collects
from os import _exit, getpid, register_at_fork
from socket import socket
from sys import getrefcount, getswitchinterval, setswitchinterval
from time import sleep
from types import CoroutineType
from typing import Any

from cellblock.values import portable
from cellblock.wire.codec import pack_request
from cellblock.wire.messages import (
    REPLIES,
    Awake,
    Bind,
    Clear,
    Equip,
    Failure,
    Fetch,
    Finished,
    Request,
    Reserve,
    Restore,
    Restrict,
    Run,
    Shell,
    Sow,
    Supplied,
    Survey,
    ToolReply,
    ToolRoom,
)
from cellblock.worker import apart, control, exits, late, shell, survey
from cellblock.worker.beside import leave, reserve
from cellblock.worker.channel import Channel, Quiet, Voice
from cellblock.worker.checkpoint.gone import losses
from cellblock.worker.checkpoint.left import are_left
from cellblock.worker.checkpoint.sealing import wall_in
from cellblock.worker.checkpoint.seeds import sow
from cellblock.worker.checkpoint.twin import Woken, freeze
from cellblock.worker.checkpoint.twin import reap as reap_copies
from cellblock.worker.checkpoint.written import Written
from cellblock.worker.confine import layout
from cellblock.worker.copies import copy_of
from cellblock.worker.environment import lead_to_packages
from cellblock.worker.import_hooks import on_import, replace
from cellblock.worker.integrity import Broken, Integrity, ours
from cellblock.worker.interpreter import NO_VALUE, Interpreter
from cellblock.worker.interrupts import (
    guard_handlers,
    raise_postponed,
    repair,
    sheltered,
    was_interrupted,
    whole,
)
from cellblock.worker.meter import Meter
from cellblock.worker.names import Names
from cellblock.worker.reap import Children, begun, reap
from cellblock.worker.references import refer
from cellblock.worker.show.display import bundle
from cellblock.worker.show.figures import close_shown, install
from cellblock.worker.show.figures import flush as open_figures
from cellblock.worker.streams import Streams
from cellblock.worker.tools import Tools

MAX_VALUE_BYTES = 64 * 2**20

_BRISK_SECONDS = 1e-5
_LEAST_SECONDS = 1e-6
"""Shorter ones are told as none, which cannot be set."""
_SAVING, _TEMPORARY = "cellblock.worker.saving", "cellblock.guard.temporary"
_TRIES, _PAUSE_SECONDS = 500, 0.002
_BEFORE_CELLS = (Equip, Restrict, Restore)
"""The requests that may come before a state is loaded."""


class Worker:
    """Carries out requests in one interpreter. Every reply leaves before what can wait is done."""

    __slots__ = (
        "_at_once",
        "_beside",
        "_changed",
        "_channel",
        "_integrity",
        "_interpreter",
        "_kept",
        "_max_text",
        "_meter",
        "_names",
        "_pid",
        "_rehearsal",
        "_reserved",
        "_scoped",
        "_sealed",
        "_shows",
        "_standing",
        "_streams",
        "_tools",
        "_value_bytes",
        "_voice",
        "_written",
    )

    def __init__(self, channel: Channel, streams: Streams, meter: Meter, integrity: Integrity) -> None:
        self._channel = channel
        self._streams = streams
        self._voice = Voice(channel, streams)
        self._integrity = integrity
        self._sealed = self._scoped = False
        self._pid = getpid()
        self._written = Written()
        self._standing: tuple[dict[str, object], Any] = {}, sys.unraisablehook
        """Settings that the runner changes before it leaves a copy, as the cells had them."""
        self._tools: Tools | None = None
        self._at_once: Callable[[object], str | None] | None = None
        self._meter = meter
        meter.adopt_limits()
        guard_handlers()
        register_at_fork(after_in_child=channel.let_go)
        self._max_text = 10_000
        self._value_bytes, self._beside = MAX_VALUE_BYTES, False
        self._kept: tuple[portable.Buffer, ...] = ()
        self._reserved: tuple[memoryview, ...] = ()
        self._changed = False
        install(self._voice.show)
        self._shows = refer("@display", self._displaying())
        self._use(Interpreter())
        on_import("IPython.display", self._take_over_display)
        on_import("PIL.ImageShow", self._take_over_pictures)

    def _use(self, interpreter: Interpreter) -> None:
        """Run cells in this interpreter from here on."""
        self._interpreter = interpreter
        self._names = Names(interpreter)
        self._rehearsal = pack_request(Run(source=interpreter.rehearsal, filename="<rehearsal>", max_text=10_000), 0)
        interpreter.offer("display", self._shows)
        if self._scoped:
            self._scope()
        channel = self._channel
        self._integrity.watch(
            (
                self,
                ("_channel", "_streams", "_voice", "_interpreter", "_names", "_integrity", "_pid", "_meter"),
            ),
            (self._interpreter, ("builtins", "module", "namespace")),
            (self._names, ("_interpreter",)),
            (self._voice, ("_channel", "_streams", "_pid", "_lock")),
            (channel, tuple(name for name in Channel.__slots__ if name not in ("_hurried", "_checkpoint"))),
        )

    def begin(
        self, *, value_bytes: int, beside: bool, sealed: bool = False, saved: bool = False, scoped: bool = False
    ) -> None:
        """Settings: the largest value, and if the host reads large buffers out of this process's memory.

        One that is `sealed` carries out nothing before it has been given a policy. `saved`: copies will be saved, and
        the kernel can tell what was written between them. `scoped`: a `with` at top level is a temporary scope.
        """
        self._sealed = sealed
        if saved:
            self._written.begin()
            for name in late.SAVING:  # once, and not in each scribe: cells may forbid what these import
                late.load(name)
            late.load(_SAVING).offer()
            self._at_once = late.load(_SAVING).at_once
        if scoped:
            self._scoped = True
            self._scope()
        self._beside = beside
        self._value_bytes = value_bytes if beside else min(value_bytes, MAX_VALUE_BYTES)

    def _scope(self) -> None:
        unsaved = partial(late.load(_SAVING).unsaved, self._interpreter.namespace)
        self._interpreter.scope(late.load(_TEMPORARY), unsaved)

    def serve(self) -> int:
        """Answer requests until the host is gone, or until the runner is no longer what it was; the exit status."""
        try:
            return self._serve()
        except BaseException:
            self._only_main_goes_on()
            raise

    def _serve(self) -> int:
        source, interrupted = "", None
        killed: Children = {}
        while self._is_ready(source):
            try:
                self._leave_checkpoint()
                received = self._next()
            except Broken:
                return exits.CHANGED_BETWEEN
            if received is None:
                return 0
            number, request = received
            source = request.source if isinstance(request, Run) else ""
            self._kept = ()  # the host has read them
            if interrupted is not None:
                killed |= begun(interrupted)
            if killed:
                killed = reap(killed)
            if not isinstance(request, REPLIES):  # to a call of a cell that has ended meanwhile
                self._voice.speak(self._carry_out(number, request))
            interrupted = self._meter.began() if was_interrupted() else None
        return exits.CHANGED_BETWEEN

    def _leave_checkpoint(self) -> None:
        """After the reply: leave a frozen copy behind, if the host wants one. Returns in the copy too, once woken."""
        interval = getswitchinterval()
        self._standing = {"switch": interval, "collector": collects()}, sys.unraisablehook
        setswitchinterval(_BRISK_SECONDS)  # each call of the system gives threads of the cells their turn
        try:
            while (end := self._channel.take_checkpoint()) is not None:
                self._channel.wait_a_moment()
                woken = self._freeze(end)
                if woken is None:
                    end.close()
                    self._rehearse()
                    reap_copies()
                    return
                self._wake(end, woken)
        finally:
            setswitchinterval(max(interval, _LEAST_SECONDS))

    def _freeze(self, end: socket) -> Woken | None:
        """None in this process; what it found in the copy, once that is woken. `Broken` if it cannot be made at all."""
        ours = (0, *self._streams.descriptors, *self._meter.descriptors, self._channel.connection.fileno())
        try:
            return self._freeze_soon(end, ours)
        except (OSError, MemoryError):  # no more processes, or no memory
            self._only_main_goes_on()
            with suppress(OSError):
                end.send(control.FAILED)  # others may hold the end, and a close would tell nothing
            return None
        except Exception as error:
            self._only_main_goes_on()
            raise Broken from error

    def _freeze_soon(self, end: socket, ours: tuple[int, ...]) -> Woken | None:
        """Leave a copy. Where cells have taken all the processes they may have, init makes room for one more, once
        told to."""
        for _ in range(_TRIES):
            with suppress(BlockingIOError):
                return freeze(end, ours, self._streams.descriptors, self._write_down, self._written)
            if self._channel.pending:  # which the host sends after it was said
                break
            sleep(_PAUSE_SECONDS)
        return freeze(end, ours, self._streams.descriptors, self._write_down, self._written)

    def _rehearse(self) -> None:
        """Go through the motions of a cell, so that its pages are this process's own again before the next one.

        After a fork the first write to each page copies it: about a thousand pages, which take longer than the cell.
        """
        if self._channel.pending:
            return
        try:
            stage = self._channel.stage(self._rehearsal or b"")
        except OSError:
            return
        try:
            received = stage.receive()
            self._meter.start()
            if received is not None:
                self._perform(received[1])
            self._names.look()
            Voice(stage, self._streams).speak(Finished(number=0, failure=None, **self._meter.stop()))
            self._make_ready()
        finally:
            stage.let_go()

    def _wake(self, end: socket, woken: Woken) -> None:
        """This process was a checkpoint and is the worker now. Whoever it was copied from is gone."""
        if not self._integrity.holds():  # the host then goes back further
            raise Broken
        if (branch := woken.branch) is None:
            self._channel.succeed(end, woken.next)
        else:
            end.close()
            self._channel.succeed(socket(fileno=branch.connection), woken.next)
            self._streams.move(branch.nonce)
            self.begin(value_bytes=self._value_bytes, beside=False)  # nobody can look into a branch
            if self._tools is not None:
                self._tools.send_all()
            sow(branch.seed)
        self._pid = getpid()
        self._meter.move()
        self._voice.move()
        self._integrity.renew()
        renewed = self._interpreter.rebuild_loop()
        rows = losses(self._interpreter.namespace, woken, renewed)
        self._voice.speak(Awake(lost=rows, left=self._leaves(woken)))

    def _next(self) -> tuple[int, Request] | None:
        """The next request. When there is none for a while, what a cell may have hidden is looked for."""
        for hurried in (True, False):
            try:
                return self._channel.receive(hurried=hurried)
            except Quiet:
                reap_copies()  # what was let go meanwhile
                if not self._integrity.holds():
                    break
        raise Broken

    def _is_ready(self, source: str) -> bool:
        """Between requests, when nobody waits: put right what the last one may have broken, if that can be done."""
        try:
            self._make_ready()
            self._only_main_goes_on()
            return self._integrity.holds_after(source)
        except BaseException:
            self._only_main_goes_on()
            return False

    def _make_ready(self) -> None:
        repair()
        self._streams.begin()
        self._meter.reset_peak()

    def _carry_out(self, number: int, request: Request) -> Finished:
        """Security border: whatever the cell's code does or raises becomes a `Finished`."""
        self._meter.start()
        value, failure = NO_VALUE, None
        if self._tools is not None:
            self._tools.begin(number)
        if not isinstance(request, _BEFORE_CELLS):
            self._meter.hold()
        try:
            value = self._meter.within_limits(self._perform, request)
        except Broken:
            raise
        except BaseException as error:
            failure = None if self._changed else self._failure(error)
        self._changed = False
        self._only_main_goes_on()
        if self._tools is not None:
            self._tools.forget()
        self._kept = value if type(value) is Packed else ()
        buffers, places = leave(self._kept) if self._beside and self._kept else (self._kept, ())
        gained, dropped = self._names.news()
        cost = self._meter.stop()
        return Finished(
            number=number,
            failure=failure,
            gained=gained,
            dropped=dropped,
            unsaved=self._unsaved(gained) if gained and self._at_once is not None else {},
            left=self._leaves(),
            buffers=buffers,
            beside=places,
            **cost,
        )

    def _leaves(self, woken: Woken | None = None) -> bool:
        """True if something goes on that may change a state which is saved; in a `woken` copy, or has done so."""
        return self._at_once is not None and (are_left() or (woken is not None and woken.timed))

    def _unsaved(self, gained: Mapping[str, str]) -> dict[str, str]:
        """Of names, those whose values no commit can hold, each with the type that tells why."""
        namespace, tell = self._interpreter.namespace, self._at_once
        assert tell is not None
        return {name: kind for name in gained if (kind := tell(namespace.get(name))) is not None}

    def _perform(self, request: Request) -> object:
        reserved, self._reserved = self._reserved, ()
        if self._sealed:
            return self._unseal(request)
        match request:
            case Run():
                self._max_text = request.max_text
                value = self._interpreter.run(request.source, request.filename)
                self._only_main_goes_on()
                if value is not NO_VALUE:
                    ours(self._voice.show, ours(bundle, value, self._max_text), True)
                    close_shown(value)
                self._show_figures()
                self._streams.flush()
                told = NO_VALUE if value is NO_VALUE else ours(self._encode, value)
                if type(value) is CoroutineType and getrefcount(value) == _ITS_OWN:
                    value.close()  # nobody can await it any more, which was said
                return told
            case Shell():
                return ours(self._encode, ours(shell.run, request.command, cells=_OF_COMMANDS))
            case Bind():
                data, *large = request.buffers
                buffers = reserved if request.is_stored else [bytearray(one) for one in large]
                whole(self._change, self._interpreter.namespace.__setitem__, request.name, copy_of(data, buffers))
            case Reserve():
                self._reserved = reserve(request.lengths)
                return Packed(self._reserved)
            case Fetch():
                return ours(self._encode, self._interpreter.bound(request.name))
            case Survey():
                wanted = self._interpreter, request.max_names, request.max_preview
                if request.apart:
                    return ours(self._encode, ours(apart.names, *wanted, request.apart))
                return ours(self._encode, ours(survey.names, *wanted))
            case Clear():
                whole(self._change, self._interpreter.clear)
            case Sow():
                sow(request.seed)
            case Equip():
                self._equip(request)
            case Restore():
                rows = self._restore(bytes(request.buffers[0]))
                self._meter.hold()
                self._meter.require_room()
                return ours(self._encode, rows)
            case ToolReply() | ToolRoom() | Supplied() | Restrict():
                raise RuntimeError("a reply to no call, or a policy for a session that has none")
        return NO_VALUE

    def _change(self, change: Callable[..., None], *args: object) -> None:
        """Carry out a change of the host to the namespace: an interrupt that comes with its end is no failure of it.
        """
        change(*args)
        self._changed = True

    def _unseal(self, request: Request) -> object:
        if not isinstance(request, Restrict):
            raise RuntimeError("this session's policy has not come")
        self._use(late.load(late.GUARD).lay(request.policy))
        self._sealed = False
        return NO_VALUE

    def _encode(self, value: object) -> Packed:
        """The portable form of a value, or of an `Opaque` that stands for it."""
        return Packed(portable.pack_or_opaque(value, self._value_bytes))

    def _equip(self, request: Equip) -> None:
        """Host functions are called by name from everywhere, as Python's own are, and are no names of the session's."""
        portably = partial(portable.encode, max_bytes=self._value_bytes)
        self._tools = tools = Tools(
            self._channel, self._voice.speak, self._streams.place_of_call, encode=portably, beside=self._beside
        )
        for spec in request.tools:
            name = str(spec["name"])
            self._interpreter.offer(name, refer(name, tools.stub(spec)))

    def _restore(self, told: bytes) -> list[list[str]]:
        """Bind what a record says; the names that could not be. Of one by another Python, run the definitions again."""
        record: Any = late.load("cellblock.wire.saving").unpack_record(told)
        lead_to_packages(layout.PACKAGES, door=False)  # the files of what is restored are there by now
        supplies = late.load("cellblock.worker.supplies")
        supply = supplies.Supplies(self._channel, self._voice.speak, supplies.needed(record), beside=self._beside)
        saving, namespace = late.load(_SAVING), self._interpreter.namespace
        rows: list[list[str]]
        sys.meta_path.insert(0, supply)
        try:
            rows = saving.load(namespace, record, get=supply.get, fill=supply.fill, announce=supply.announce)
        except saving.WrongVersion:
            rows = saving.replay(namespace, record, get=supply.get)
        finally:
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not supply]
        self._interpreter.recall()
        return rows

    def _write_down(self, end: int, message: Mapping[str, object]) -> None:
        """In a copy of a frozen copy."""
        walls: list[str] | Exception
        try:
            walls = wall_in(end, int(str(message["seconds"])))
        except Exception as error:  # told to the host
            walls = error
        scribe = late.load("cellblock.worker.saving.scribe")
        standing, sys.unraisablehook = self._standing
        scribe.write(end, walls, self._interpreter.namespace, self._written, standing)

    def _failure(self, error: BaseException) -> Failure | None:
        """A failure from what was raised; leaving with `sys.exit()` or `sys.exit(0)` is none."""
        self._only_main_goes_on()
        self._streams.flush()
        if isinstance(error, shell.CommandFailed):
            return Failure(type="CommandFailed", message=str(error), traceback="", kind="raised", status=error.status)
        ended = isinstance(error, SystemExit) and error.code in (None, 0)
        failure = None if ended else self._interpreter.describe(error, self._max_text)
        for held in ("__traceback__", "__context__"):  # their frames would keep the cell's objects alive
            BaseException.__setattr__(error, held, None)  # past a class that lets nothing be set, a frozen one say
        if isinstance(error, MemoryError):
            collect()
        try:  # what was drawn before the failure, if it can be shown
            self._meter.within_limits(self._show_figures)
        except BaseException:
            return failure
        return failure

    def _only_main_goes_on(self) -> None:
        """A child that the cell forked and that came back here ends: it must not speak for the session."""
        if getpid() != self._pid:
            _exit(0)

    def _displaying(self) -> Callable[..., None]:
        """The `display` of cells; Jupyter's options for how to show mean nothing here."""

        def display(*values: object, **_options: object) -> None:
            sheltered(self._show_values, values)
            raise_postponed()

        display.__qualname__ = "display"
        return display

    def _show_values(self, values: tuple[object, ...]) -> None:
        for value in values:
            self._voice.show(bundle(value, self._max_text))
            close_shown(value)

    def _show_figures(self) -> None:
        for figure in open_figures():
            ours(self._voice.show, figure)

    def _take_over_display(self, module: Any) -> None:
        """Have IPython's `display` show things here; without its shell it would print their reprs."""
        module.display = self._shows

    def _take_over_pictures(self, module: Any) -> None:
        """Have `image.show()` of PIL show here; it would look for a program with a window."""

        def show(image: object, *_: object, **_options: object) -> bool:
            self._shows(image)
            return True

        replace(module, "show", show)


_ITS_OWN = 2
"""References to a value that nothing else has: by a name here, and as an argument."""
_OF_COMMANDS = (shell.CommandFailed, OSError, ValueError)
"""Errors of a command by itself: no room for a process, no workspace, a null byte."""


class Packed(tuple[portable.Buffer, ...]):
    """A packed portable value, told from a cell's own tuple by its type."""

    __slots__ = ()
