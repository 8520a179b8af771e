"""W9: a cell that changes the runner under itself. The session answers again, with or without its names."""

from __future__ import annotations

from collections.abc import Callable

from arena.attack import Attack, Holds, beginning, one_of
from arena.host import Host, outcome_of
from arena.resources import BRIEF
from cellblock import Session

_KEPT = "the worker keeps what it needs for itself"
_MADE_ANEW = "a checkpoint takes the place of the process"
_NOTICED = "a runner that is not as it was ends itself, and another process is started"
_EVER = Holds(lambda answer: True, "any answer")


def _lives(name: str, expect: object, cell: str, *, hole: str = "") -> Attack:
    """The worker survives, names and all."""
    return Attack(name=f"insides-{name}", threat="W9", wall=_KEPT, expect=expect, cell=cell, lasting=True, hole=hole)


def _dies(name: str, expect: object, cell: str) -> Attack:
    return Attack(name=f"insides-{name}", threat="W9", wall=_MADE_ANEW, expect=expect, cell=cell, dies=True)


def _host(name: str, wall: str, expect: object, host: Callable[[Host], object], *, hole: str = "") -> Attack:
    return Attack(name=f"insides-{name}", threat="W9", wall=wall, expect=expect, host=host, hole=hole)


def _recovers(*cells: str) -> Callable[[Host], object]:
    """What the last of some cells, and then `1+1` up to three times until it is right, answer."""

    def run(host: Host) -> object:
        with Session(limits=BRIEF) as session:
            for cell in cells:
                outcome_of(session, cell)
            answers = []
            for _ in range(3):
                answers.append(outcome_of(session, "1+1"))
                if answers[-1] == 2:
                    return "recovers"
            return answers

    return run


def _each_builtin(host: Host) -> object:
    """Builtins replaced one by one by a function that raises; those after which no session came back."""
    stuck = {}
    for name in sorted(set(dir(__builtins__ if not isinstance(__builtins__, dict) else object)) | set(_BUILTINS)):
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
    """What cells that do ordinary things answer."""
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
pending.append(display.__func__.__globals__)
while pending:
    space = pending.pop()
    if not str(space.get("__name__")).startswith("cellblock.") or space["__name__"] in spaces: continue
    spaces[space["__name__"]] = space
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
            answer = outcome_of(session, _REACH + f"space = spaces[{name!r}]\n{_BREAK}")
            after = _honest(session)
            if answer not in (None, _CHANGED) or after != _HONEST:
                found[name] = [answer, after]
    return {"modules": len(names) > 20, "stuck": found}


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
    _dies(
        "stack-overflow",
        one_of(
            "crashed: ProcessDied: the session's process was killed by SIGSEGV",
            "crashed: ProcessDied: the session's process was killed by SIGBUS",
        ),
        """
import sys
sys.setrecursionlimit(10**9)
class Deep:
    def __repr__(self): return repr(self)
repr(Deep())
""",
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
)
