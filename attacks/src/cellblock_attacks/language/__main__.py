"""A program: makes every attempt of a file to get out, and prints what became of each as JSON lines.

    python -m cellblock_attacks.language guard FILE
        behind the guard, at the level `local`, but for those that are known to succeed (`open`)
    python -m cellblock_attacks.language plain FILE
        in plain CPython, with nothing in the way: which shows that the attempt is one

Each is made in a process of its own, which is killed if it does not answer.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import gc
import importlib.util
import inspect
import io
import json
import os
import re
import resource
import secrets
import select
import signal
import sys
import tempfile
import threading
import time
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cellblock import ExecutionLimits, Session
from cellblock_attacks.language.programs import GIVEN, Program, policy_for, programs

RULE = re.compile(r"\[([a-z]+)\]")
LIMIT_SECONDS, PATIENCE = float(os.environ.get("LIMIT", "0.4")), float(os.environ.get("PATIENCE", "6"))
MEMORY_MB = 64
WATCHED = ("builtins", "math", "json", "re", "random", "string", "collections", "datetime", "functools", "itertools",
           "decimal", "copy", "enum", "typing")  # fmt: skip


def attempt(program: Program, how: str) -> dict[str, object]:
    """Make one attempt, in this process."""
    import toolbox
    import vaults

    canary = vaults.CANARY
    given = {"vault": vaults.Vault(), "rows": [1, [2, 3], {"k": "v"}], "greet": vaults.greet}
    before = _state(given, toolbox, vaults)
    found = _plainly(program.source, given) if how == "plain" else _guarded(program, given)
    if program.keys["threat"] == "L7":
        gc.collect()  # what a session left is dropped by the host's thread
    after = _state(given, toolbox, vaults)
    changed = sorted(key for key in before if before[key] != after.get(key)) + sorted(after.keys() - before.keys())
    shown = found.pop("shown")
    return {"canary": canary in shown or canary[::-1] in shown, "changed": changed, **found}


def _plainly(source: str, given: dict[str, Any]) -> dict[str, Any]:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    vars(module).update(given)
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = compile(source, "<cell 1>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            begun = eval(code, vars(module))
            if code.co_flags & inspect.CO_COROUTINE:
                _drive(begun)
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
        shown = printed.getvalue() + _text(vars(module).get("result")) + (error or "")
    return {"ended": "raised" if error else "completed", "error": error, "shown": shown}


def _drive(coroutine: Any) -> None:
    with contextlib.suppress(StopIteration):
        while True:
            coroutine.send(None)


def _recorded(rules: list[str]) -> None:
    """Have each refusal of running code note its rule, though the code should catch it."""
    from cellblock.guard import refusal

    def noted(self: Any, text: str) -> None:
        AttributeError.__init__(self, text)
        rules.append(RULE.findall(text)[-1])

    refusal.Denied.__init__ = noted  # type: ignore[method-assign, assignment]


def _guarded(program: Program, given: dict[str, Any]) -> dict[str, Any]:
    import toolbox
    import vaults

    policy = policy_for(program, vaults, toolbox)
    rules: list[str] = []
    _recorded(rules)
    ends = program.keys["proves"] in ("canary", "mutates")  # by itself, on a machine that does more as well
    seconds = max(LIMIT_SECONDS, PATIENCE - 1) if ends else LIMIT_SECONDS
    limits = ExecutionLimits(timeout_seconds=seconds, max_memory_mb=MEMORY_MB, max_output_bytes=20_000)
    with Session(trust_level="local", policy=policy, limits=limits) as session:
        session["vault"], session["rows"] = given["vault"], given["rows"]
        cell = session.run(program.source)
        shown = cell.text + _text(cell.error) + _text(cell.value)
        ended: str = cell.error.kind if cell.error else "completed"
        message = f"{cell.error.type}: {cell.error.message}" if cell.error else None
        rules += RULE.findall(cell.error.message)[:1] if cell.error else ()
        rules += [ended] if ended in ("timeout", "memory") else ()
        with contextlib.suppress(Exception):  # a session that is dead, or a name that is not bound
            shown += _text(session["result"])
        if ended != "timeout":
            after = session.run("1 + 1")
            ended = ended if after.value == 2 else f"{ended}, then {after.error}"
    return {"ended": ended, "error": message, "shown": shown, "left": _left(), "rules": list(dict.fromkeys(rules))}


def _left() -> int:
    """Number of threads that still run the cell's code, a moment after its session was closed."""
    for _ in range(20):
        stacks = [_files(frame) for frame in sys._current_frames().values()]
        running = sum("<cell 1>" in stack for stack in stacks)
        if not running:
            break
        time.sleep(0.05)
    return running


def _files(frame: types.FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield frame.f_code.co_filename
        frame = frame.f_back


def _text(value: object) -> str:
    """A value as a host might show it, to look for the canary in."""
    try:
        return f"{value!r} {value}" if value is not None else ""
    except Exception as error:
        return repr(error)


def _state(given: dict[str, Any], toolbox: Any, vaults: Any) -> dict[str, str]:
    """State that no attempt may change."""
    import decimal
    import random

    rows = {"rows": repr(given["rows"]), "vault": repr(sorted(vars(given["vault"]).items()))}
    for owner in (
        toolbox,
        vaults,
        vaults.Vault,
        toolbox.Tool,
        toolbox.ToolError,
        int,
        str,
        list,
        dict,
        type,
        object,
        Exception,
    ):
        name = owner.__name__
        rows.update({f"{name}.{key}": _identity(value) for key, value in vars(owner).items()})
    for name in WATCHED:
        if name in sys.modules:
            rows.update({f"{name}.{key}": str(id(value)) for key, value in vars(sys.modules[name]).items()})
    rows["greet"] = repr((vaults.greet.__defaults__, vars(vaults.greet), vaults.greet.__kwdefaults__))
    rows["use"] = repr((toolbox.Tool.use.__defaults__, vars(toolbox.Tool.use)))
    rows["code"] = repr(
        [f and f.__code__.co_code for f in (vaults.greet, vars(vaults.Vault)["name"], vars(toolbox).get("shout"))]
    )
    rows["environment"] = repr(sorted(os.environ.items()))
    rows["streams"] = repr([id(sys.stdout), id(sys.stderr), id(sys.stdin), id(sys.excepthook), id(sys.displayhook)])
    rows["traces"] = repr([sys.gettrace(), sys.getprofile(), sys.getrecursionlimit(), sys.path, sys.flags])
    rows["signals"] = repr([signal.getsignal(number) for number in (2, 14, 15)])
    rows["warnings"] = repr(warnings.filters)
    rows["decimal"] = repr(decimal.getcontext().prec)
    rows["random"] = str(hash(random.getstate()))
    rows["threads"] = repr(sorted(thread.name for thread in threading.enumerate() if not thread.daemon))
    rows["where"] = os.getcwd()
    return rows


def _identity(value: object) -> str:
    plain = (str, int, list, dict, tuple, types.MappingProxyType)
    return repr(value) if isinstance(value, plain) else str(id(value))


# --- a process for each -------------------------------------------------------------------------------------


def main(how: str, path: Path) -> None:
    """Make the attempts of a file, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CANARY"] = secrets.token_hex(12)
        os.environ["CANARY_FILE"] = str(Path(folder) / "canary")
        Path(os.environ["CANARY_FILE"]).write_text(os.environ["CANARY"])
        found = programs(path)
        _warm(how, {name for program in found if program.runs_here for name in program.grants})
        for program in found:
            if program.runs_here and not ("plain" in program.keys if how == "plain" else "open" in program.keys):
                print(json.dumps({"name": program.name, **_apart(program, how)}), flush=True)


def _warm(how: str, trusted: set[str]) -> None:
    import toolbox
    import vaults

    assert toolbox.WHERE
    assert vaults.CANARY
    for name in (*WATCHED, *trusted):
        __import__(name)
    if importlib.util.find_spec("typing_extensions"):
        __import__("typing_extensions")  # puts functions of its own into `typing`
    if "pandas" in trusted:
        import pandas

        pandas.Series([1, 1]).groupby([0, 0]).filter(lambda one: True)  # imports what it does when it is first used
    copy.deepcopy(vaults.Vault())  # has Python note its slots in its class
    if how == "guard":
        import anyio._backends._asyncio  # noqa: F401 - what is imported beforehand is no change

        import cellblock.executors.local.kernel  # noqa: F401
        from cellblock import Policy
        from cellblock.guard.world import World
        from cellblock.policy import RARE

        World(
            Policy(trusted=trusted, also=RARE).module(toolbox), write=lambda stream, text: None
        )  # builds the audits of the standard library


def _apart(program: Program, how: str) -> dict[str, object]:
    told, tells = os.pipe()
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        os.close(told)
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            found = attempt(program, how)
            found["megabytes"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) // 1024
            os.write(tells, repr(found).encode())  # not JSON, whose module the attempt may have changed
        finally:
            os._exit(1)
    os.close(tells)
    try:
        ready, _, _ = select.select([told], [], [], PATIENCE)
        answer = os.read(told, 1 << 16) if ready else b""
    finally:
        os.close(told)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if answer:
        return dict(ast.literal_eval(answer.decode()))
    return {"canary": False, "changed": [], "ended": "hung" if not ready else f"died: {status}", "error": None}


if __name__ == "__main__":
    sys.path.insert(0, str(GIVEN))
    main(sys.argv[1], Path(sys.argv[2]))
