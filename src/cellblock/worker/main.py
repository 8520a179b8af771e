"""The worker's life: wall itself in, say hello, then carry out requests one after the other."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import random
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from cellblock.values import portable
from cellblock.walls import Applied, Unavailable
from cellblock.wire.messages import (
    Bind,
    Clear,
    Display,
    Failure,
    Fetch,
    Finished,
    Hello,
    Request,
    Run,
    Settled,
    Shell,
    Survey,
    ToolReply,
)
from cellblock.worker import display, figures, shell, survey
from cellblock.worker.channel import Channel
from cellblock.worker.confine import capabilities, landlock, layout, rlimits, seccomp
from cellblock.worker.interpreter import NO_VALUE, Interpreter, describe
from cellblock.worker.streams import Streams

ENVIRONMENT = {
    "HOME": layout.WORKSPACE,
    "LANG": "C.UTF-8",
    "LOGNAME": "user",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": layout.TMP,
    "PATH": os.path.dirname(sys.executable) + ":/usr/local/bin:/usr/bin:/bin",
    "PYTHONHASHSEED": "0",
    "TMPDIR": "/tmp",
    "USER": "user",
    # One thread a pool: sessions share the machine, and forking next to idle pool threads is fragile.
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""The whole environment of a session; nothing of the host's is passed on."""

MAX_VALUE_BYTES = 64 * 2**20

_filter = b""


def prepare() -> None:
    """In the zygote: what every worker needs and can share."""
    global _filter
    _filter = seccomp.build()


def run(setup: dict[str, Any], connection: int, stdout: int, stderr: int) -> None:
    """In a new session's process: take the descriptors, wall in, serve. Never returns."""
    _take_descriptors(stdout, stderr)
    os.umask(0o022)
    os.setsid()
    os.chdir(layout.WORKSPACE)
    os.environ.clear()
    os.environ.update(ENVIRONMENT)
    sys.argv[:] = [""]
    sys.path.append(layout.WORKSPACE)
    _seed(setup["seed"])
    channel = Channel(socket.socket(fileno=connection))
    walls = _confine(setup["limits"])
    channel.send(
        Hello(
            python=sys.version.split()[0],
            walls=tuple((wall.mechanism, wall.detail) for wall in walls if isinstance(wall, Applied)),
            missing=tuple(
                (wall.mechanism, wall.reason, wall.remedy) for wall in walls if isinstance(wall, Unavailable)
            ),
        )
    )
    Worker(channel, Streams(bytes.fromhex(setup["nonce"]))).serve()
    os._exit(0)


def _take_descriptors(stdout: int, stderr: int) -> None:
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for wanted, number in enumerate((null, stdout, stderr)):
        os.dup2(number, wanted)
        os.close(number)


def _seed(seed: int) -> None:
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def _confine(limits: dict[str, int]) -> list[Applied | Unavailable]:
    """Every wall that a process can put around itself; the system call filter last, since it forbids the rest."""
    return [
        rlimits.apply(
            data_bytes=limits["memory_bytes"],
            processes=limits["processes"],
            file_bytes=limits["file_bytes"],
            open_files=limits["open_files"],
        ),
        capabilities.apply(),
        landlock.apply(
            read_only=["/"],
            read_write=[layout.HOME],
            files=[path for path in ("/dev/full", "/dev/null", "/dev/zero", "/proc") if os.path.exists(path)],
            connect_ports=None,  # a session may run servers for itself: its network namespace holds nothing else
        ),
        seccomp.apply(_filter),
    ]


class Worker:
    """Carries out requests in one interpreter. Every reply leaves before what can wait is done."""

    def __init__(self, channel: Channel, streams: Streams) -> None:
        self._channel = channel
        self._streams = streams
        self._interpreter = Interpreter()
        self._known: dict[str, type] = {}
        self._pid = os.getpid()
        self._meter = Meter()
        self._max_text = 10_000
        figures.install(self._show)
        import builtins

        builtins.display = self._display  # type: ignore[attr-defined]

    def serve(self) -> None:
        """Answer requests until the host is gone."""
        signal.signal(signal.SIGINT, _interrupt)
        while (request := self._channel.receive()) is not None:
            self._channel.send(self._carry_out(request))
            self._channel.send(self._settle())

    def _carry_out(self, request: Request) -> Finished:
        """Security border: whatever the cell's code does or raises becomes a `Finished`."""
        signal.signal(signal.SIGINT, _interrupt)
        self._streams.begin()
        self._meter.start()
        value, failure = NO_VALUE, None
        try:
            value = interruptible(self._perform, request)
        except BaseException as error:
            with self._meter.headroom(isinstance(error, MemoryError)):
                failure = self._failure(error)
        self._only_main_goes_on()
        encoded = value if isinstance(value, portable.Encoded) else None
        return Finished(
            failure=failure,
            has_value=encoded is not None,
            tree=None if encoded is None else encoded.tree,
            buffers=() if encoded is None else encoded.buffers,
            **self._meter.stop(),
        )

    def _perform(self, request: Request) -> object:
        match request:
            case Run():
                self._max_text = request.max_text
                value = self._interpreter.run(request.source, request.filename)
                self._only_main_goes_on()
                if value is not NO_VALUE:
                    self._display(value, is_result=True)
                for bundle in figures.flush():
                    self._show(bundle)
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
            case ToolReply():
                raise RuntimeError("a reply to no call")
        return NO_VALUE

    def _failure(self, error: BaseException) -> Failure | None:
        """A failure from what was raised; leaving with `sys.exit()` or `sys.exit(0)` is none."""
        self._only_main_goes_on()
        self._streams.flush()
        if isinstance(error, shell.CommandFailed):
            return Failure(type="CommandFailed", message=str(error), traceback="", kind="raised")
        ended = isinstance(error, SystemExit) and error.code in (None, 0)
        failure = None if ended else describe(error, self._max_text)
        error.__traceback__ = error.__context__ = None  # their frames would keep the cell's objects alive
        return failure

    def _only_main_goes_on(self) -> None:
        """A child that the cell forked and that came back here ends: it must not speak for the session."""
        if os.getpid() != self._pid:
            os._exit(0)

    def _display(self, value: object, *, is_result: bool = False) -> None:
        self._show(display.bundle(value, max_text=self._max_text), is_result=is_result)
        figures.close_shown(value)

    def _show(self, bundle: display.Bundle, is_result: bool = False) -> None:
        self._channel.send(
            Display(
                data=bundle.data,
                mimes=tuple(bundle.buffers),
                buffers=tuple(bundle.buffers.values()),
                is_result=is_result,
                mark=self._streams.place(),
            )
        )

    def _settle(self) -> Settled:
        """What names came and went; types by identity, so an unchanged name costs one look-up."""
        known, now = self._known, {}
        gained = {}
        for name in self._interpreter.names():
            kind = now[name] = type(self._interpreter.namespace[name])
            if known.get(name) is not kind:
                gained[name] = survey.type_name(kind)
        self._known = now
        return Settled(gained=gained, dropped=tuple(known.keys() - now.keys()))


def _encode(value: object) -> portable.Encoded:
    """The portable form of a value, or of an `Opaque` that stands for it."""
    try:
        return portable.encode(value, max_bytes=MAX_VALUE_BYTES)
    except portable.NotPortable:
        return portable.encode(portable.opaque(value))


def interruptible(function: Callable[..., object], *args: object) -> object:
    """Call a function during which an interrupt may raise; outside of it interrupts are ignored."""
    return function(*args)


_INTERRUPTIBLE: CodeType = interruptible.__code__


def _interrupt(_number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code is _INTERRUPTIBLE:
            raise KeyboardInterrupt
        frame = frame.f_back


class Meter:
    """What a request costs this process: wall and CPU time, and the peak of its memory."""

    def __init__(self) -> None:
        try:
            self._reset: int | None = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            self._reset = None
        self._baseline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._began = 0.0
        self._cpu = 0.0

    def start(self) -> None:
        if self._reset is not None:
            with contextlib.suppress(OSError):  # the cell may have closed every descriptor
                os.pwrite(self._reset, b"5", 0)  # 5: the peak starts again from here
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self._cpu = usage.ru_utime + usage.ru_stime
        self._began = time.monotonic()

    def stop(self) -> dict[str, Any]:
        duration = time.monotonic() - self._began
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "duration_ms": duration * 1e3,
            "cpu_ms": max(0.0, usage.ru_utime + usage.ru_stime - self._cpu) * 1e3,
            "memory_peak": max(0, usage.ru_maxrss - self._baseline) * 1024,
        }

    @contextlib.contextmanager
    def headroom(self, wanted: bool) -> Any:
        """Room above the memory limit in which to report that it was met."""
        if not wanted:
            yield
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        try:
            yield
        finally:
            gc.collect()
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
