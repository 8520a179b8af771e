"""W9: a cell that changes the runner under itself. The session answers again, with or without its names."""

from __future__ import annotations

import time
from typing import cast

from cellblock import ExecutionLimits, Session
from cellblock_attacks.attack import Attack, Holds, Table, beginning, host_later, one_of
from cellblock_attacks.host import LIMITS, Host, outcome_of
from cellblock_attacks.resources import BRIEF, TIMEOUT

_KEPT = "the worker keeps what it needs for itself"
_MADE_ANEW = "a checkpoint takes the place of the process"
_NOTICED = "a runner that is not as it was ends itself, and another process is started"
_EVER = Holds(lambda answer: True, "any answer")


_TABLE = Table("insides", "W9")
_host = _TABLE.host


def _lives(name: str, expect: object, cell: str) -> Attack:
    """The worker survives, names and all."""
    return _TABLE.cell(name, _KEPT, expect, cell, lasting=True)


def _dies(name: str, expect: object, cell: str) -> Attack:
    return _TABLE.cell(name, _MADE_ANEW, expect, cell, dies=True)


@host_later
def _recovers(host: Host, *cells: str) -> object:
    """Answers of the last of some cells, and then of `1+1` up to three times until it is right, answer.

    A state that has ended two cells is undone, as their hint says.
    """
    with Session(limits=BRIEF) as session:
        for cell in cells:
            outcome_of(session, cell)
        answers = []
        for _ in range(3):
            answers.append(outcome_of(session, "1+1"))
            if answers[-1] == 2:
                return "recovers"
            if (error := session.notebook.cells[-1].error) is not None and "undo()" in error.hint:
                session.undo()
        return answers


@host_later
def _answers(host: Host, *cells: str, then: str = "1+1") -> object:
    """Answers of some cells in a session of their own, and of an honest one after them."""
    with Session(limits=BRIEF) as session:
        return [outcome_of(session, cell) for cell in (*cells, then)]


@host_later
def _keeps(host: Host, *cells: str, pause: float = 0.0, limits: ExecutionLimits = BRIEF) -> object:
    """Answers of some cells, and whether an honest one after them, and a pause, finds the names of the first."""
    with Session(limits=limits) as session:
        answers = [outcome_of(session, cell) for cell in ("kept = 'kept'", *cells)][1:]
        time.sleep(pause)
        return [*answers, outcome_of(session, "kept")]


@host_later
def _lives_on(host: Host, cell: str) -> object:
    """Answers of honest cells after one, and the value of a name that was bound before it."""
    with Session(limits=BRIEF) as session:
        session.run("kept = 'kept'")
        outcome_of(session, cell)
        time.sleep(0.1)
        return [*_honest(session), outcome_of(session, "kept")]


@host_later
def _forks(host: Host, cell: str) -> object:
    """A name, and what honest cells answer, after a cell that leaves a copy of the process in the runner."""
    with Session(limits=BRIEF) as session:
        session.run("import ctypes, gc, multiprocessing, os, signal, sys, threading, time\nkept = 'kept'")
        outcome_of(session, cell)
        outcome_of(session, "held = None\ntime.sleep(0.05)")
        return [outcome_of(session, one) for one in ("kept", "1+1", "1+1", "1+1")]


@host_later
def _after_a_while(host: Host, cell: str) -> object:
    """Answer of `1+1` a second after a cell."""
    with Session(limits=BRIEF) as session:
        outcome_of(session, cell)
        time.sleep(1)
        return outcome_of(session, "1+1")


_AGAIN = Holds(lambda answers: isinstance(answers, list) and answers[-1] == 2, "a session that answers again")
_FIND_WIRE = """
import os
def is_wire(number):
    try: return os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
    except OSError: return False
wire = next(number for number in map(int, os.listdir("/proc/self/fd")) if is_wire(number))
"""
_OBJECTS = """
import sys
frame = sys._getframe()
while not hasattr(frame.f_locals.get("self"), "_integrity"): frame = frame.f_back
worker = frame.f_locals["self"]
"""


def _each_builtin(host: Host) -> object:
    """Builtins replaced one by one by a function that raises; those after which no session came back."""
    stuck = {}
    for name in sorted({*dir(object), *_BUILTINS}):
        if name.startswith("_") and name != "__import__" and name != "__build_class__":
            continue
        answer = _recovers(
            f"import builtins\ndef broken(*args, **options): raise RuntimeError('broken')\nbuiltins.{name} = broken",
            "print('x')",
            "1/0",
            "'a value'",
        )(host)
        if answer != "recovers":
            stuck[name] = answer
    return stuck


_BUILTINS = (
    "BaseException",
    "Exception",
    "KeyboardInterrupt",
    "MemoryError",
    "OSError",
    "RuntimeError",
    "SyntaxError",
    "SystemExit",
    "ValueError",
    "__build_class__",
    "__import__",
    "all",
    "any",
    "bool",
    "bytes",
    "callable",
    "compile",
    "dict",
    "display",
    "eval",
    "exec",
    "frozenset",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "id",
    "int",
    "isinstance",
    "iter",
    "len",
    "list",
    "map",
    "max",
    "min",
    "next",
    "object",
    "open",
    "print",
    "property",
    "range",
    "repr",
    "set",
    "setattr",
    "sorted",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
)

_MODULES = (
    "_signal",
    "ast",
    "asyncio",
    "builtins",
    "codecs",
    "contextlib",
    "dataclasses",
    "enum",
    "functools",
    "gc",
    "inspect",
    "io",
    "json",
    "json.decoder",
    "json.encoder",
    "linecache",
    "os",
    "pickle",
    "posix",
    "random",
    "re",
    "resource",
    "select",
    "signal",
    "socket",
    "struct",
    "subprocess",
    "sys",
    "textwrap",
    "threading",
    "time",
    "traceback",
    "types",
    "typing",
    "warnings",
)

_BREAK = """
def broken(*args, **options): raise RuntimeError("broken")
for name, value in list(space.items()):
    if callable(value) and not (isinstance(value, type) and issubclass(value, BaseException)):
        space[name] = broken
"""


def _honest(session: Session) -> list[object]:
    """Answers of cells that do ordinary things."""
    printed = session.run("print('x')")
    if printed.error is not None or [output.text for output in printed.outputs] != ["x\n"]:
        return [printed.text]
    return [outcome_of(session, "1/0"), outcome_of(session, "'a value'"), outcome_of(session, "len([1])")]


_HONEST = ["raised: ZeroDivisionError: division by zero", "a value", 1]
_CHANGED = (
    "crashed: ProcessDied: the session's process ended itself: its runner failed, as it does when a cell has changed it"
)


def _each_module(host: Host) -> object:
    """Every function of a module replaced, a module at a time; those after which an honest cell is not answered so."""
    stuck = {}
    for module in _MODULES:
        with Session(limits=BRIEF) as session:
            outcome_of(session, f"import importlib\nspace = vars(importlib.import_module({module!r}))\n{_BREAK}")
            answers = _honest(session)
            if answers != _HONEST and _honest(session) != _HONEST:  # a module of the cells' own may take one cell along
                stuck[module] = answers
    return stuck


_REACH = """
import sys
spaces, pending, frame = {}, [], sys._getframe()
while frame is not None:
    pending.append(frame.f_globals)
    frame = frame.f_back
pending.append(display.__globals__)
while pending:
    space = pending.pop()
    name = str(space.get("__name__")) if type(space) is dict else ""
    if not name.startswith("cellblock.") or name in spaces: continue
    spaces[name] = space
    for value in list(space.values()):
        pending += [vars(value)] if isinstance(value, type(sys)) else []
        pending += [value.__globals__] if hasattr(value, "__globals__") else []
        if isinstance(value, type):
            pending += [one.__globals__ for one in vars(value).values() if hasattr(one, "__globals__")]
"""
"""The runner's modules, as frames lead to them."""


def _each_of_the_runners(host: Host) -> object:
    """Every function of a module of the runner's replaced: what is left is one answer, and then another process."""
    found = {}
    with Session(limits=BRIEF) as session:
        names = outcome_of(session, _REACH + "sorted(spaces)")
        assert isinstance(names, list)
        for name in names:
            session.run("kept = 1")
            answer = outcome_of(session, _REACH + f"space = spaces.get({name!r}, {{}})\n{_BREAK}")
            after = _honest(session)
            if answer not in (None, _CHANGED) or after != _HONEST:
                found[name] = [answer, after]
    return {"modules": len(names) > 20, "stuck": found}


_LIE = """
def lie(event):
    if type(event).__name__ != "Finished": return event
    return type(event)(**{name: getattr(event, name) for name in type(event).__slots__} | {"buffers": (b"42",)})
"""
_LIARS = {
    "channel": """
class Liar:
    def __init__(self, channel): self.channel = channel
    def __getattr__(self, name): return getattr(self.channel, name)
    def send(self, event): self.channel.send(lie(event))
worker._voice._channel = Liar(worker._channel)
""",
    "class": """
Voice = type(worker._voice)
space = {"__slots__": Voice.__slots__, **{name: value for name, value in vars(Voice).items() if callable(value)}}
space["speak"] = lambda self, event: Voice.speak.__get__(self)(lie(event))
space["__class__"] = property(lambda self: Voice)
worker._voice.__class__ = type("Voice", (), space)
""",
    "initialiser": """
kind = type(worker)._carry_out.__globals__["Finished"]
before = kind.__init__
def begin(self, **given): before(self, **given | {"buffers": (b"42",)})
kind.__init__ = begin
""",
    "table": """
tables = [table for table in type(worker)._carry_out.__globals__["portable"].encode.__globals__.values()
    if type(table) is dict and id(tuple) in table]
for table in tables: table[id(tuple)] = lambda *_: 42
""",
}
"""Changes that a cell can make to the runner so that it answers 42 for the cells after it."""


@host_later
def _lies_for_the_next(host: Host, cell: str) -> object:
    """The answers of a cell and of two after it, and why names were lost."""
    with Session(limits=BRIEF) as session:
        session.run("kept = 1")
        outcome_of(session, _OBJECTS + _LIE + cell)
        after = session.run("(1, 1)")
        reasons = {one.reason for one in after.lost}
        return [after.error or list(cast("tuple[int, int]", after.value)), *reasons, outcome_of(session, "1+1")]


_HOSTILE_OBJECTS = """
class Lies(type):
    __name__ = property(lambda self: 1 / 0)
    def __repr__(self): raise SystemExit("repr of a class")
    def __eq__(self, other): raise KeyboardInterrupt
    def __hash__(self): raise MemoryError
    def __instancecheck__(self, other): raise RecursionError
class Hostile(metaclass=Lies):
    def __repr__(self): raise KeyboardInterrupt("repr")
    def __str__(self): raise SystemExit("str")
    def __eq__(self, other): raise ValueError("eq")
    def __hash__(self): raise ValueError("hash")
    def __bool__(self): raise ValueError("bool")
    def __len__(self): return -1
    def __sizeof__(self): raise MemoryError
    def __getattr__(self, name): raise KeyboardInterrupt(name)
    def __getattribute__(self, name): raise KeyboardInterrupt(name)
    def __reduce_ex__(self, protocol): raise SystemExit
    def __del__(self): raise ValueError("del")
    def __iter__(self): raise SystemExit
    def __call__(self): raise SystemExit
    def __class__(self): raise SystemExit
"""


def _survives_hostile_objects(host: Host) -> object:
    """A namespace full of objects that misbehave: looked at, displayed, fetched, deleted."""
    with Session(limits=BRIEF) as session:
        outcome_of(session, _HOSTILE_OBJECTS + "for n in range(50): globals()[f'hostile_{n}'] = Hostile()")
        named = session.names()
        found = {type(session["hostile_1"]).__name__, type(session.run("hostile_2").value).__name__}
        outcome_of(session, "display(hostile_3)")
        outcome_of(session, "for n in range(50): del globals()[f'hostile_{n}']")
        session.clear()
        return {
            "named": sum(name.startswith("hostile_") for name in named),
            "found": sorted(found),
            "then": outcome_of(session, "1+1"),
        }


ATTACKS: tuple[Attack, ...] = (
    _host("each-builtin", f"{_KEPT}, or {_MADE_ANEW}", {}, _each_builtin),
    _host("each-module", f"{_KEPT}, or {_MADE_ANEW}", {}, _each_module),
    _host("each-module-of-the-runner", _NOTICED, {"modules": True, "stuck": {}}, _each_of_the_runners),
    _lives("print", None, "import builtins\nbuiltins.print = None"),
    _lives("json", None, "import json, json.encoder\njson.dumps = json.loads = None\njson.JSONEncoder.encode = None"),
    _lives("stdout-is-none", None, "import sys\nsys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None"),
    _lives(
        "stdout-is-an-object",
        None,
        "import sys\nsys.stdout = sys.stderr = object()",
    ),
    _lives(
        "stdout-raises",
        None,
        """
import sys
class Raises:
    def __getattribute__(self, name): raise SystemExit(name)
sys.stdout = sys.stderr = Raises()
""",
    ),
    _lives("stdout-closed", None, "import sys\nsys.stdout.close(); sys.stderr.close()"),
    _lives("descriptors-of-text-closed", None, "os.close(1); os.close(2)"),
    _lives("exit-handlers", None, "import atexit\natexit.register(lambda: 1 / 0)\nNone"),
    _lives("excepthook", "raised: ZeroDivisionError: division by zero", "import sys\nsys.excepthook = None\n1 / 0"),
    _lives("displayhook", 7, "import sys\nsys.displayhook = None\n7"),
    _lives(
        "trace",
        one_of(None, "raised: ZeroDivisionError: division by zero"),
        "import sys\nsys.settrace(lambda *a: 1 / 0)",
    ),
    _lives("collector-callbacks", None, "import gc\ngc.callbacks.append(lambda *a: 1 / 0)\ngc.set_threshold(1)"),
    _lives(
        "import-hooks",
        None,
        """
import sys
class Finder:
    def find_spec(self, *args): raise SystemExit("found")
sys.meta_path.insert(0, Finder())
sys.path_hooks.insert(0, lambda path: 1 / 0)
""",
    ),
    _lives("path", None, "import sys\nsys.path[:] = [object(), '/absent', 3]"),
    _lives("modules-cleared", None, "import sys\nsys.modules.clear()"),
    _lives("warnings-as-errors", None, "import warnings\nwarnings.simplefilter('error')"),
    _lives("recursion-limit", None, "import sys\nsys.setrecursionlimit(60)"),
    _lives("switch-interval", None, "import sys\nsys.setswitchinterval(1e-9)"),
    _lives("working-directory", None, "os.chdir('/proc/self')"),
    _lives("environment", None, "os.environ.clear()"),
    _lives("umask", 0o22, "os.umask(0o777)"),
    _lives("main-module", None, "import sys\nsys.modules['__main__'] = None"),
    _lives("builtins-deleted", None, "del __builtins__"),
    _lives("builtins-replaced", None, "__builtins__ = {}"),
    _lives(
        "underscore", None, "class Bad:\n    def __del__(self): raise SystemExit\nimport builtins\nbuiltins._ = Bad()"
    ),
    _lives(
        "message-raises",
        beginning("raised: Bad: "),
        """
class Bad(Exception):
    def __str__(self): raise RuntimeError("no message")
    __repr__ = __str__
raise Bad()
""",
    ),
    _lives(
        "message-exits",
        beginning("raised: Bad: "),
        """
class Bad(Exception):
    def __str__(self): raise SystemExit
    __repr__ = __str__
raise Bad()
""",
    ),
    _lives(
        "exception-of-a-lying-class",
        beginning("raised: "),
        """
class Lies(type):
    def __getattribute__(self, name):
        if name in ("__name__", "__qualname__", "__module__"): raise SystemExit(name)
        return super().__getattribute__(name)
class Bad(Exception, metaclass=Lies): pass
raise Bad()
""",
    ),
    _lives(
        "exception-that-is-its-own-cause",
        "raised: ValueError: round",
        """
error = ValueError("round")
error.__cause__ = error.__context__ = error
raise error
""",
    ),
    _lives(
        "notes-that-lie",
        "raised: ValueError: noted",
        """
class Note(str):
    def split(self, *args): raise SystemExit
error = ValueError("noted")
error.__notes__ = [Note("x"), 3]
raise error
""",
    ),
    _lives("exit", beginning("raised: SystemExit"), "raise SystemExit(3)"),
    _lives("keyboard-interrupt", beginning("raised: KeyboardInterrupt"), "raise KeyboardInterrupt"),
    _lives("generator-exit", beginning("raised: GeneratorExit"), "raise GeneratorExit"),
    _lives(
        "thread-raises", None, "import threading\none = threading.Thread(target=lambda: 1 / 0)\none.start(); one.join()"
    ),
    _lives("recursion", beginning("raised: RecursionError"), "def f(): return f()\nf()"),
    _lives("source-of-a-lie", beginning("raised: SyntaxError"), "\x00"),
    _lives("deep-source", beginning("raised: "), "(" * 5000 + ")" * 5000),
    _lives(
        "deep-value",
        Holds(lambda answer: True, "an Opaque or the value"),
        "x = []\nfor _ in range(100_000): x = [x]\nx",
    ),
    _lives("value-that-is-its-own-part", Holds(lambda answer: True, "an Opaque"), "x = []\nx.append(x)\nx"),
    _host(
        "hostile-objects",
        _KEPT,
        {"named": 50, "found": ["Opaque"], "then": 2},
        _survives_hostile_objects,
    ),
    _dies("exit-at-once", "crashed: ProcessDied: the session's process left with status 3", "os._exit(3)"),
    _dies(
        "segmentation-fault", "crashed: ProcessDied: the session's process was killed by SIGSEGV", "ctypes.string_at(0)"
    ),
    _dies("abort", "crashed: ProcessDied: the session's process was killed by SIGABRT", "os.abort()"),
    _dies(
        "kills-itself", "crashed: ProcessDied: the session's process was killed by SIGKILL", "os.kill(os.getpid(), 9)"
    ),
    _dies("kills-its-group", "crashed: ProcessDied: the session's process was killed by SIGKILL", "os.killpg(0, 9)"),
    _host(
        "stack-overflow",
        f"the interpreter's own limit, or {_MADE_ANEW}",
        one_of(
            ["raised: RecursionError: maximum recursion depth exceeded", 2],  # from CPython 3.12 on
            ["crashed: ProcessDied: the session's process was killed by SIGSEGV", 2],
            ["crashed: ProcessDied: the session's process was killed by SIGBUS", 2],
        ),
        _answers(
            """
import sys
sys.setrecursionlimit(10**9)
class Deep:
    def __repr__(self): return repr(self)
repr(Deep())
"""
        ),
    ),
    _dies(
        "becomes-another-program",
        beginning("crashed: ProcessDied: the session's process left with status 0"),
        "os.execv('/bin/true', ['true'])",
    ),
    _host(
        "ignores-interrupts",
        "the kill after the time limit",
        "recovers",
        _recovers("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"),
    ),
    _host(
        "catches-everything",
        "the kill after the time limit",
        "recovers",
        _recovers("def spin():\n    while True: pass\nwhile True:\n    try: spin()\n    except BaseException: pass"),
    ),
    _host(
        "message-without-end",
        "the kill after the time limit",
        "recovers",
        _recovers("class Bad(Exception):\n    def __str__(self):\n        while True: pass\nraise Bad()"),
    ),
    _host(
        "deletion-without-end",
        "the kill after the time limit",
        "recovers",
        _recovers("class Bad:\n    def __del__(self):\n        while True: pass\nx = Bad()", "del x", "pass"),
    ),
    _host(
        "limits-lowered",
        _MADE_ANEW,
        "recovers",
        host=_recovers(
            "import resource\nfor number in (resource.RLIMIT_DATA, resource.RLIMIT_NOFILE, "
            "resource.RLIMIT_STACK, resource.RLIMIT_AS):\n"
            "    resource.setrlimit(number, (0, 0))"
        ),
    ),
    _host(
        "memory-limit-lowered",
        _MADE_ANEW,
        "recovers",
        host=_recovers(
            "import resource\nsoft, "
            "hard = resource.getrlimit(resource.RLIMIT_DATA)\nresource.setrlimit(resource.RLIMIT_DATA, (soft, soft))"
        ),
    ),
    _host(
        "time-limit-of-its-own",
        _MADE_ANEW,
        "recovers",
        _recovers("import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass"),
    ),
    _host(
        "workspace-removed",
        "the session's places are made again",
        "recovers",
        host=_recovers("import os, shutil\nshutil.rmtree(os.getcwd())", "import os; os._exit(1)"),
    ),
    _host(
        "workspace-moved",
        "the session's places are made again",
        "recovers",
        _recovers(
            "import os\nos.rename('/session/workspace', '/session/moved')\nos.symlink('/usr', '/session/workspace')",
            "import os; os._exit(1)",
        ),
    ),
    _host(
        "workspace-without-rights",
        "the session's places are made again",
        "recovers",
        _recovers("import os\nos.chmod('/session/workspace', 0); os.chmod('/session', 0)", "import os; os._exit(1)"),
    ),
    _host(
        "modules-planted-in-the-workspace",
        "the runner imports nothing from there",
        "recovers",
        _recovers(
            "for name in ('os', 'json', 'signal', 'traceback', 'asyncio', 'inspect', 'cellblock', 'encodings'):\n"
            "    open(name + '.py', 'w').write('raise SystemExit')",
            "import os; os._exit(1)",
            "await __import__('asyncio').sleep(0)",
            "1/0",
        ),
    ),
    # --- signals ------------------------------------------------------------------------------------------------
    _host(
        "handler-that-raises-between-cells",
        "what a cell's handler raises outside of a cell is dropped",
        [None, "kept"],
        _keeps(
            "import signal\nfired = []\ndef raises(*_):\n    fired.append(1)\n"
            "    if len(fired) == 10: signal.setitimer(signal.ITIMER_REAL, 0)\n"
            "    raise TimeoutError\nsignal.signal(signal.SIGALRM, raises)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.05, 0.01); None",
            pause=0.5,
        ),
    ),
    _host(
        "handler-that-raises-in-large-displays",
        "what a cell's handler raises while a message is sent waits for its end",
        ["raised: TimeoutError: alarm"] * 6 + ["kept"],
        _keeps(
            *(
                """
import signal
def raises(*_): raise TimeoutError("alarm")
class Large:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/png": b"\\x89PNG\\r\\n\\x1a\\n" + bytes(900_000)}
signal.signal(signal.SIGALRM, raises)
signal.setitimer(signal.ITIMER_REAL, 0.01)
while True: display(Large())
""",
            )
            * 6
        ),
    ),
    _host(
        "handler-that-exits-between-cells",
        "what a cell's handler raises outside of a cell is dropped",
        [None, "kept"],
        _keeps(
            "import signal, sys\nsignal.signal(signal.SIGALRM, lambda *_: sys.exit(3))\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.05); None",
            pause=0.2,
        ),
    ),
    _host(
        "handlers-are-what-was-set",
        "a cell's handlers are told as it set them",
        [True, "kept"],
        _keeps(
            "import signal\ndef mine(*_): pass\nbefore = signal.signal(signal.SIGUSR1, mine)\n"
            "(signal.getsignal(signal.SIGUSR1) is mine, before, signal.signal(signal.SIGUSR1, signal.SIG_IGN) is mine,"
            " signal.getsignal(signal.SIGUSR1)) == (True, signal.SIG_DFL, True, signal.SIG_IGN)"
        ),
    ),
    *(
        _host(
            f"interrupts-{name}-in-the-cell-before",
            "the host's interrupt is made whole between cells",
            [None, TIMEOUT, "kept"],
            _keeps(f"import signal, threading\n{cell}\nNone", "while True: pass"),
        )
        for name, cell in (
            ("blocked", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))"),
            ("ignored", "signal.signal(signal.SIGINT, signal.SIG_IGN)"),
            ("handled", "signal.signal(signal.SIGINT, lambda *_: None)"),
            ("made-default", "signal.signal(signal.SIGINT, signal.SIG_DFL)"),
        )
    ),
    # --- hooks --------------------------------------------------------------------------------------------------
    *(
        _host(f"hook-{name}", _KEPT, [*_HONEST, "kept"], _lives_on(cell))
        for name, cell in (
            (
                "unraisable",
                "import sys\nsys.unraisablehook = lambda *_: 1 / 0\nclass B:\n    def __del__(self): 1/0\nB()",
            ),
            (
                "of-threads",
                "import threading\nthreading.excepthook = None\nthreading.Thread(target=lambda: 1/0).start()",
            ),
            ("profile", "import sys\nsys.setprofile(lambda *_: 1 / 0)"),
            ("profile-that-leaves", "import sys\ndef leave(*_): raise SystemExit\nsys.setprofile(leave)"),
            (
                "of-weak-references",
                "import weakref\nclass A: pass\na = A(); w = weakref.ref(a, lambda _: 1 / 0); del a",
            ),
            ("codec-search", "import codecs\ncodecs.register(lambda name: 1 / 0)"),
            (
                "codec-errors",
                "import codecs\ndef fail(*_): raise SystemExit\n"
                "for name in ('strict', 'replace', 'backslashreplace', 'surrogatepass'):\n"
                "    codecs.register_error(name, fail)\n"
                "print('\\ud800')",
            ),
            ("warnings", "import warnings\nwarnings.showwarning = warnings._showwarnmsg = lambda *_: 1 / 0"),
            ("forks", "import os\nos.register_at_fork(before=lambda: 1 / 0, after_in_parent=lambda: 1 / 0)"),
            ("audit", "import sys\nsys.addaudithook(lambda *_: None)"),
            ("exit", "import atexit, os\natexit.register(os._exit, 5)"),
            ("lines-of-tracebacks", "import linecache\nlinecache.cache = None"),
            ("tracebacks", "import traceback\ntraceback.TracebackException = None"),
            ("modules", "import sys\nsys.modules = {}"),
            ("no-modules", "import sys\nsys.modules = None"),
            ("environment", "import os\nos.environ = None"),
            ("policy-of-loops", "import asyncio\nasyncio.set_event_loop_policy(None); asyncio.new_event_loop = None"),
            ("loop-closed", "import asyncio\nawait asyncio.sleep(0)\nasyncio.get_event_loop().stop()"),
            ("locale", "import locale\nlocale.setlocale(locale.LC_ALL, 'C'); locale.localeconv = None"),
            ("debugger", "import sys\nsys.breakpointhook = None\nsys.displayhook = None\nsys.ps1 = object()"),
            ("interrupt-at-the-end", "import _thread\n_thread.interrupt_main()"),
            (
                "key-that-raises",
                "class K(str):\n    def __hash__(self): return 1 / 0\n    def __eq__(self, o): return 1 / 0\n"
                "class H:\n    def __hash__(self): return hash('kept')\n    def __eq__(self, o): return False\n"
                "globals()[H()] = 1",
            ),
            (
                "imports-locked",
                "import _imp, threading\none = threading.Thread(target=_imp.acquire_lock); one.start(); one.join()",
            ),
        )
    ),
    _host(
        "tracer-of-one-cell-is-there-in-the-next",
        "a cell's tracer is laid aside outside of cells",
        [None, True, "kept"],
        _keeps(
            "import sys\nseen = []\ndef trace(*a): seen.append(a[1])\nsys.settrace(trace)", "sys.gettrace() is trace"
        ),
    ),
    _host(
        "recursion-limit-below-the-runner",
        "the runner has depth of its own",
        [*_HONEST, "kept"],
        _lives_on(
            """
import sys
for depth in range(1, 60):
    try: sys.setrecursionlimit(depth); break
    except RecursionError: pass
[[[[[[1]]]]]]
"""
        ),
    ),
    _host(
        "thread-that-keeps-the-interpreter",
        _MADE_ANEW,
        "recovers",
        _recovers(
            "import sys, threading, time\n"
            "def spin():\n    time.sleep(0.05); sys.setswitchinterval(1e6)\n    while True: pass\n"
            "threading.Thread(target=spin).start(); time.sleep(0.2)"
        ),
    ),
    _host(
        "threads-that-spin",
        _KEPT,
        [None, "kept"],
        _keeps(
            "import threading\ndef spin():\n    while True: pass\n"
            "for _ in range(3): threading.Thread(target=spin).start()",
            limits=LIMITS,
        ),
    ),
    # --- processes that come back --------------------------------------------------------------------------------
    *(
        _host(f"child-{name}", "a child never speaks nor listens for the session", ["kept", 2, 2, 2], _forks(cell))
        for name, cell in (
            ("goes-on", "os.fork()"),
            ("raises", "if os.fork() == 0: raise ValueError"),
            ("exits", "if os.fork() == 0: sys.exit()"),
            ("shows", "if os.fork() == 0: display('x'); 'y'"),
            ("in-a-finally", "try: 1 / 1\nfinally: os.fork()"),
            ("in-an-except", "try: 1 / 0\nexcept ZeroDivisionError: os.fork()"),
            (
                "in-a-generator",
                "def one():\n    try: yield\n    finally: os.fork()\nheld = one(); next(held); del held",
            ),
            (
                "in-a-generator-of-the-cell-before",
                "def one():\n    try: yield\n    finally: os.fork()\nheld = one(); next(held)",
            ),
            ("in-a-finalizer", "class F:\n    def __del__(self): os.fork()\nF()"),
            ("in-a-finalizer-later", "class F:\n    def __del__(self): os.fork()\nheld = F()"),
            ("in-a-repr", "class R:\n    def __repr__(self): os.fork(); return 'r'\nR()"),
            ("in-a-message", "class E(Exception):\n    def __str__(self): os.fork(); return 'e'\nraise E"),
            (
                "in-a-handler",
                "signal.signal(signal.SIGALRM, lambda *_: os.fork()); signal.setitimer(signal.ITIMER_REAL, 0.03)",
            ),
            (
                "in-a-collection",
                "gc.callbacks.append(lambda *_: gc.callbacks.clear() or os.fork()); gc.set_threshold(1)",
            ),
            ("in-a-thread", "one = threading.Thread(target=os.fork); one.start(); one.join()"),
            ("in-a-profile", "sys.setprofile(lambda *_: sys.setprofile(None) or os.fork())"),
            ("in-the-code-of-c", "ctypes.CDLL(None).fork()"),
            ("by-multiprocessing", "multiprocessing.get_context('fork').Process(target=sys.exit).start()"),
            ("in-a-child", "os.fork(); os.fork()"),
        )
    ),
    # --- descriptors, directories --------------------------------------------------------------------------------
    *(
        _host(
            f"wire-under-{name}",
            _MADE_ANEW,
            _AGAIN,
            _answers(_FIND_WIRE + cell, "1+1"),
        )
        for name, cell in (
            ("a-file", "os.dup2(os.open('/dev/null', os.O_RDWR), wire)"),
            ("a-pipe", "os.dup2(os.pipe()[1], wire)"),
            (
                "a-socket",
                "import socket\nends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                "os.dup2(ends[0].fileno(), wire)",
            ),
            ("nothing", "os.close(wire)"),
            ("no-waiting", "os.set_blocking(wire, False)"),
            ("a-shutdown", "import socket\nsocket.socket(fileno=os.dup(wire)).shutdown(2)"),
        )
    ),
    _host(
        "spare-descriptors-closed",
        _MADE_ANEW,
        _AGAIN,
        _answers(
            _FIND_WIRE + "for number in range(3, 64):\n    if number != wire:\n        try: os.close(number)\n"
            "        except OSError: pass\n'shown'"
        ),
    ),
    _host(
        "text-that-does-not-wait",
        _KEPT,
        [None, None, "kept"],
        _keeps(
            "import os\nos.set_blocking(1, False); os.set_blocking(2, False)", "for _ in range(2000): print('x' * 100)"
        ),
    ),
    _host(
        "working-directory-removed",
        _KEPT,
        [None, "raised: FileNotFoundError: [Errno 2] No such file or directory", "kept"],
        _keeps("import os\nos.mkdir('d'); os.chdir('d'); os.rmdir('../d')", "os.getcwd()"),
    ),
    # --- bombs ----------------------------------------------------------------------------------------------------
    _host(
        "finalizer-that-makes-another",
        _KEPT,
        "recovers",
        _recovers("class F:\n    def __del__(self): globals()['held'] = F()\nheld = F()", "del held", "held = None"),
    ),
    _host(
        "finalizers-in-each-other",
        f"{_KEPT}, or {_MADE_ANEW}",
        "recovers",
        _recovers("class F:\n    def __del__(self): F(); F()\nF()"),
    ),
    _host(
        "repr-of-shared-lists",
        "the time limit, the memory limit",
        "recovers",
        _recovers("a = []\nfor _ in range(60): a = [a, a]\na"),
    ),
    _host(
        "repr-that-grows",
        "a text has a largest size",
        [*_HONEST, "kept"],
        _lives_on("class R:\n    def __repr__(self): return 'x' * (60 << 20)\nR()"),
    ),
    _host(
        "repr-without-end",
        "the kill after the time limit",
        "recovers",
        _recovers("class R:\n    def __repr__(self):\n        while True: pass\nR()"),
    ),
    # --- what ends the process -------------------------------------------------------------------------------------
    _host(
        "faulthandler-exits-later",
        _MADE_ANEW,
        "recovers",
        _recovers(
            "import faulthandler, time\nfaulthandler.dump_traceback_later(0.05, exit=True)",
            "import time; time.sleep(0.2)",
        ),
    ),
    _host(
        "strict-filter-of-its-own",
        _MADE_ANEW,
        "recovers",
        _recovers("import ctypes\nctypes.CDLL(None).prctl(22, 1, 0, 0, 0)"),
    ),
    _host(
        "memory-overwritten",
        _MADE_ANEW,
        "recovers",
        _recovers("import ctypes\nctypes.memset(id(dict), 0, 200)"),
    ),
    _host(
        "exception-set-from-a-thread",
        _MADE_ANEW,
        "recovers",
        _recovers(
            "import ctypes, threading, time\nmain = threading.main_thread().ident\n"
            "def later():\n    time.sleep(0.05)\n"
            "    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(SystemExit))\n"
            "threading.Thread(target=later).start()"
        ),
    ),
    # --- the runner's own objects ----------------------------------------------------------------------------------
    *(
        _host(
            f"runner-{name}",
            _NOTICED,
            _AGAIN,
            _answers(_OBJECTS + cell, "1+1"),
        )
        for name, cell in (
            ("without-a-voice", "worker._voice = None"),
            ("without-an-interpreter", "worker._interpreter = None"),
            ("without-a-meter", "worker._meter = None"),
            ("of-another-pid", "worker._pid = 1"),
            ("without-streams", "vars(worker._streams).clear()"),
            ("without-names", "worker._names._told = None; worker._names._keys = []"),
            ("that-never-ends-a-request", "type(worker)._carry_out = lambda *_: __import__('time').sleep(60)"),
            ("that-answers-for-all", "type(worker._interpreter).run = lambda *_: 42"),
            ("of-other-code", "type(worker._interpreter).run.__code__ = (lambda self, source, name: 1 / 0).__code__"),
        )
    ),
    *(
        _host(
            f"lying-{name}",
            _NOTICED,
            [[1, 1], "between two cells the session's process ended itself: a cell had changed its runner", 2],
            _lies_for_the_next(cell),
        )
        for name, cell in _LIARS.items()
    ),
    _host(
        "runner-that-looks-away",
        "what a cell hid is looked for again while nothing runs",
        2,
        _after_a_while(
            _OBJECTS + "type(worker._integrity).holds_after = lambda *_: True\n"
            "type(worker._interpreter).run = lambda *_: 42"
        ),
    ),
    _host(
        "builtins-of-the-runner",
        _NOTICED,
        "recovers",
        _recovers(
            "for name in ('len', 'isinstance', 'type', 'map', 'list', 'compile', 'repr', 'getattr'):\n"
            "    setattr(print.__self__, name, None)"
        ),
    ),
    _host(
        "methods-of-built-in-types",
        _NOTICED,
        "recovers",
        _recovers(
            "import ctypes, gc\n"
            "for kind, name in ((str, 'removeprefix'), (str, 'encode'), (dict, 'get'), (list, 'append')):\n"
            "    gc.get_referents(kind.__dict__)[0][name] = None\n"
            "    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))"
        ),
    ),
)
