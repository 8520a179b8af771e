"""The corpora once more, with the policy laid over `isolated`: the guard inside the walls is the guard.

Every so many programs in each run of the tests, all of them with `-m slow`.
"""

from __future__ import annotations

import contextlib
import importlib
import sys

import corpus
import pytest
import test_escapes
import test_parity

from cellblock import CellblockError, ExecutionLimits, Policy, Session
from cellblock.policy import RARE

EVERY_PARITY, EVERY_ESCAPE = 30, 30
CANARY = "c4n4ry-of-the-walls"
HASTY = ExecutionLimits(timeout_seconds=0.4, interrupt_grace_seconds=0.3, max_memory_mb=128, max_output_bytes=20_000)
PATIENT = ExecutionLimits(timeout_seconds=20, max_output_bytes=1_000_000)


def _sampled(cases, every):
    for number, (file, program) in enumerate(cases):
        marks = [] if number % every == 0 else [pytest.mark.slow]
        yield pytest.param(file, program, id=f"{file}-{program.name}", marks=marks)


PARITY = [case for case in test_parity.CASES if f"{case[0]}/{case[1].name}" not in test_parity.DIFFERS]
ESCAPES = [
    (file, attempt)
    for file, path in test_escapes.FILES.items()
    for attempt in corpus.programs(path)
    if attempt.runs_here
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("theme", "program"), list(_sampled(PARITY, EVERY_PARITY)))
def test_programs_behave_as_under_cpython(theme, program):
    want = test_parity.expected(theme)[program.name]
    with Session(policy=Policy(also=RARE), limits=PATIENT) as session:
        cell = session.run(program.source + "pass\n")
    assert corpus.outcome(cell) == {"stdout": want["stdout"], "error": want["error"]}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """The modules that the attempts are given, on the host and, by way of mounts, inside; with the canary in them."""
    place = tmp_path_factory.mktemp("given")
    place.chmod(0o755)
    for path in corpus.GIVEN.glob("*.py"):
        text = path.read_text().replace('os.environ["CANARY"]', repr(CANARY))
        (place / path.name).write_text(text.replace('os.environ["CANARY_FILE"]', "'/workspace/canary'"))
    before = {name: sys.modules.pop(name, None) for name in ("vaults", "toolbox")}
    sys.path.insert(0, str(place))
    yield place, importlib.import_module("vaults"), importlib.import_module("toolbox")
    sys.path.remove(str(place))
    for name, module in before.items():
        sys.modules.pop(name)
        if module is not None:
            sys.modules[name] = module


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("file", "attempt"), list(_sampled(ESCAPES, EVERY_ESCAPE)))
def test_attempts_reach_nothing(given, file, attempt):
    place, vaults, toolbox = given
    policy = corpus.policy_for(attempt, vaults, toolbox)
    mounts = {f"{name}.py": str(place / f"{name}.py") for name in ("vaults", "toolbox")}
    with Session(policy=policy, limits=HASTY, mounts=mounts, preload=attempt.grants) as session:
        session.files.write("canary", CANARY)
        session["vault"], session["rows"] = vaults.Vault(), [1, [2, 3], {"k": "v"}]
        cell = session.run(attempt.source)
        shown = f"{cell.text} {cell.error}"
        with contextlib.suppress(ValueError):  # an integer that is longer than any is written
            shown += f" {cell.value!r} {cell.value}"
        with contextlib.suppress(KeyError, CellblockError):  # not bound, or too large to be looked at in time
            shown += str(session["result"])
        assert CANARY not in shown
        assert CANARY[::-1] not in shown
        assert cell.error is None or cell.error.kind in ("raised", "refused", "timeout", "memory"), cell.error
        assert session.run("1 + 1").value == 2
        left = session.run("import os")
        assert left.error is not None
        assert left.error.kind == "refused"
