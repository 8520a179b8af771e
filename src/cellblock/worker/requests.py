"""Carries out the host's requests, one after the other, and reports each before it does what can wait."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # its Python face makes enum members, at many times the cost
import contextlib
import gc
import os
import pickle
import socket
import threading
from typing import TYPE_CHECKING, Any

from cellblock.values import portable
from cellblock.wire.messages import (
    Awake,
    Bind,
    Clear,
    Display,
    Equip,
    Event,
    Failure,
    Fetch,
    Finished,
    Request,
    Run,
    Shell,
    Survey,
    ToolReply,
)
from cellblock.wire.packed import pack_event, pack_request, unpack_request
from cellblock.worker import control, shell, survey
from cellblock.worker.channel import Channel
from cellblock.worker.display import Bundle, bundle
from cellblock.worker.figures import close_shown, install
from cellblock.worker.figures import flush as open_figures
from cellblock.worker.gone import losses
from cellblock.worker.import_hooks import on_import
from cellblock.worker.interpreter import NO_VALUE, Interpreter, describe
from cellblock.worker.meter import Meter, interrupt, whole
from cellblock.worker.names import Names
from cellblock.worker.reap import reap
from cellblock.worker.room import Room
from cellblock.worker.streams import Streams
from cellblock.worker.twin import Woken, freeze
from cellblock.worker.twin import reap as reap_copies

if TYPE_CHECKING:
    from cellblock.worker.tools import Tools

MAX_VALUE_BYTES = 64 * 2**20


_REHEARSAL = pack_request(Run(source="", filename="<rehearsal>", max_text=10_000), 0) or b""


class Worker:
    """Carries out requests in one interpreter. Every reply leaves before what can wait is done."""

    def __init__(self, channel: Channel, streams: Streams, meter: Meter, room: Room) -> None:
        self._channel = channel
        self._streams = streams
        self._interpreter = Interpreter()
        self._names = Names(self._interpreter)
        self._pid = os.getpid()
        self._voice = threading.RLock()  # threads of the cell's show things too, and live on between requests
        self._speaking = False
        self._tools: Tools | None = None
        self._meter = meter
        self._room = room
        meter.adopt_limits()
        self._max_text = 10_000
        install(self._show)
        self._interpreter.builtins.__dict__["display"] = self._display
        on_import("IPython.display", self._take_over_display)
        on_import("PIL.ImageShow", self._take_over_pictures)

    def serve(self) -> None:
        """Answer requests until the host is gone."""
        self._make_ready()
        interrupted = None
        while (received := self._channel.receive()) is not None:
            number, request = received
            if isinstance(request, ToolReply):  # to a call of a cell that has ended meanwhile
                continue
            if interrupted is not None:
                reap(interrupted)
            reap_copies()
            self._speak(self._carry_out(number, request))
            interrupted = self._meter.interrupted()
            self._make_ready()
            self._leave_checkpoint()

    def _leave_checkpoint(self) -> None:
        """After the reply: leave a frozen copy behind, if the host wants one. Returns in the copy too, once woken."""
        while (end := self._channel.take_checkpoint()) is not None:
            ours = (0, *self._streams.descriptors, *self._meter.descriptors, self._channel.connection.fileno())
            try:
                with self._room.for_a_copy():
                    woken = freeze(end, ours)
            except OSError:  # no more processes, or no memory
                with contextlib.suppress(OSError):
                    end.send(control.FAILED)  # others may hold the end, and a close would tell nothing
                woken = None
            if woken is None:
                end.close()
                self._rehearse()
                return
            self._wake(end, woken)

    def _rehearse(self) -> None:
        """Go through the motions of a cell, so that its pages are this process's own again before the next one.

        After a fork the first write to each page copies it: about a thousand pages, which take longer than the cell.
        """
        if not self._channel.pending:
            self._meter.start()
            request = unpack_request(_REHEARSAL)
            if request is not None:
                self._perform(request[1])
            self._names.look()
            pack_event(Finished(number=0, failure=None, **self._meter.stop()))
            self._make_ready()

    def _wake(self, end: socket.socket, woken: Woken) -> None:
        """This process was a checkpoint and is the worker now. Whoever it was copied from is gone."""
        self._channel.succeed(end, woken.next)
        self._pid = os.getpid()
        self._meter.move()
        renewed = self._interpreter.rebuild_loop()
        rows = losses(self._interpreter.namespace, woken, renewed)
        self._speak(Awake(lost=rows))

    def _make_ready(self) -> None:
        """Between requests, when nobody waits: put right what the last one may have broken, for the next."""
        if signal.getsignal(signal.SIGINT) is not interrupt:
            signal.signal(signal.SIGINT, interrupt)
        self._streams.begin()
        self._meter.reset_peak()

    def _carry_out(self, number: int, request: Request) -> Finished:
        """Security border: whatever the cell's code does or raises becomes a `Finished`."""
        self._meter.start()
        value, failure = NO_VALUE, None
        try:
            value = self._meter.within_limits(self._perform, request)
        except BaseException as error:
            failure = self._failure(error)
        self._only_main_goes_on()
        if self._tools is not None:
            self._tools.forget()
        buffers = value if type(value) is Packed else ()
        gained, dropped = self._names.news()
        cost = self._meter.stop()
        return Finished(number=number, failure=failure, gained=gained, dropped=dropped, buffers=buffers, **cost)

    def _perform(self, request: Request) -> object:
        match request:
            case Run():
                self._max_text = request.max_text
                value = self._interpreter.run(request.source, request.filename)
                self._only_main_goes_on()
                if value is not NO_VALUE:
                    self._show_value(value, is_result=True)
                self._show_figures()
                self._streams.flush()
                return NO_VALUE if value is NO_VALUE else _encode(value)
            case Shell():
                return _encode(shell.run(request.command))
            case Bind():
                self._interpreter.namespace[request.name] = pickle.loads(request.buffers[0])
            case Fetch():
                return _encode(self._interpreter.namespace[request.name])
            case Survey():
                return _encode(survey.names(self._interpreter, request.max_names, request.max_preview))
            case Clear():
                self._interpreter.clear()
            case Equip():
                self._equip(request)
            case ToolReply():
                raise RuntimeError("a reply to no call")
        return NO_VALUE

    def _equip(self, request: Equip) -> None:
        """Host functions are called by name from everywhere, as Python's own are, and are no names of the session's."""
        from cellblock.worker.tools import Tools

        self._tools = tools = Tools(self._channel, self._speak, self._streams.place)
        for spec in request.tools:
            self._interpreter.builtins.__dict__[str(spec["name"])] = tools.stub(spec)

    def _failure(self, error: BaseException) -> Failure | None:
        """A failure from what was raised; leaving with `sys.exit()` or `sys.exit(0)` is none."""
        self._only_main_goes_on()
        self._streams.flush()
        if isinstance(error, shell.CommandFailed):
            return Failure(type="CommandFailed", message=str(error), traceback="", kind="raised")
        ended = isinstance(error, SystemExit) and error.code in (None, 0)
        failure = None if ended else describe(error, self._max_text)
        for held in ("__traceback__", "__context__"):  # their frames would keep the cell's objects alive
            BaseException.__setattr__(error, held, None)  # past a class that lets nothing be set, a frozen one say
        if isinstance(error, MemoryError):
            gc.collect()
        with contextlib.suppress(BaseException):  # what was drawn before the failure, if it can be shown
            self._meter.within_limits(self._show_figures)
        return failure

    def _only_main_goes_on(self) -> None:
        """A child that the cell forked and that came back here ends: it must not speak for the session."""
        if os.getpid() != self._pid:
            os._exit(0)

    def _display(self, *values: object, **_options: object) -> None:
        """The `display` of cells; Jupyter's options for how to show mean nothing here."""
        for value in values:
            self._show_value(value)

    def _show_value(self, value: object, *, is_result: bool = False) -> None:
        """Show a value now, as the last expression of a cell is shown."""
        self._show(bundle(value, max_text=self._max_text), is_result=is_result)
        close_shown(value)

    def _show_figures(self) -> None:
        for figure in open_figures():
            self._show(figure)

    def _take_over_display(self, module: Any) -> None:
        """Have IPython's `display` show things here; without its shell it would print their reprs."""
        module.display = self._display

    def _take_over_pictures(self, module: Any) -> None:
        """Have `image.show()` of PIL show here; it would look for a program with a window."""

        def show(image: object, *_: object, **_options: object) -> bool:
            self._show_value(image)
            return True

        module.show = show

    def _show(self, shown: Bundle, is_result: bool = False) -> None:
        if os.getpid() != self._pid:  # the host takes no messages of a child's
            return
        event = Display(
            data=shown.data,
            mimes=tuple(shown.buffers),
            buffers=tuple(shown.buffers.values()),
            is_result=is_result,
            mark=self._streams.place(),
        )
        whole(self._speak, event)

    def _speak(self, event: Event) -> None:
        """Send one event whole: not between another thread's packets, and not left by an interrupt."""
        with self._voice:
            if self._speaking:  # a finalizer that shows something ran in the middle of a message
                return
            self._speaking = True
            try:
                self._channel.send(event)
            finally:
                self._speaking = False


class Packed(tuple[portable.Buffer, ...]):
    """A packed portable value, told from a cell's own tuple by its type."""

    __slots__ = ()


def _encode(value: object) -> Packed:
    """The portable form of a value, or of an `Opaque` that stands for it."""
    try:
        return Packed(portable.pack(portable.encode(value, max_bytes=MAX_VALUE_BYTES)))
    except (portable.NotPortable, MemoryError):
        return Packed(portable.pack(portable.encode(portable.opaque(value))))
