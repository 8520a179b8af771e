"""Runs the attacks of `cellblock_attacks` as the user of the tests and, where that is root, as an ordinary user too."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from accounts import Account, ordinary, own, why_no_other_user
from seeds import mark_of

from cellblock_attacks import protocol, runner_insides, shown

HERE = Path(__file__).parent

_SECONDS = 400
"""How long all attacks may take together, on a machine that does more; alone they take a fifth of that."""

SELF, ORDINARY = "self", "ordinary-user"
_OF_THE_MESSAGES = {attack.name for table in (protocol, runner_insides, shown) for attack in table.ATTACKS}
"""Attacks on what reads a session's messages, and from within what writes them."""


@dataclass(frozen=True)
class Run:
    """A program that runs attacks, and the attacks it runs."""

    process: subprocess.Popen[str]
    names: list[str]


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[str, Run | str]]:
    """The attacks that this run of the tests selected, under way as each user at once; or why not as one."""
    from cellblock_attacks.tables import ATTACKS

    def names(user: str) -> list[str]:
        wanted = _wanted(request.session, "outcomes", user)
        return [attack.name for attack in ATTACKS if attack.name in wanted]

    folder = Path(tempfile.mkdtemp(prefix="attackers-"))
    started: dict[str, Run | str] = {SELF: _start(own(HERE), names(SELF))}
    try:
        reason = why_no_other_user()
        started[ORDINARY] = reason or _start(ordinary(folder), names(ORDINARY))
        yield started
    finally:
        _end(started)
        shutil.rmtree(folder)


def _end(started: dict[str, Run | str]) -> None:
    for run in started.values():
        if isinstance(run, Run):
            run.process.kill()
            with run.process:  # closes its pipes, of which nobody may have read
                pass


@pytest.fixture(scope="session", params=[SELF, ORDINARY])
def outcomes(request: pytest.FixtureRequest, runs: dict[str, Run | str]) -> dict[str, dict[str, object]]:
    """What became of each attack, by name: as the tests' own user, and as one without privileges."""
    return _outcomes(runs[request.param])


def _outcomes(run: Run | str) -> dict[str, dict[str, object]]:
    if isinstance(run, str):
        pytest.skip(run)
    try:
        output, errors = run.process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.fail(f"the attacks took more than {_SECONDS} s", pytrace=False)
    found = {one["name"]: one for one in map(json.loads, output.splitlines())}
    missing = [name for name in run.names if name not in found]
    assert not missing, f"the attacks from {missing[0]} on did not run:\n{errors[-4000:]}"
    return found


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out of `make test` most attacks that meet the same wall once more: `make thorough` makes each on its day.

    As its own user it makes an attack of each class of threats on each wall. Another user and the lack of namespaces
    change what the kernel permits: one of twelve is made as a second user, and one of six without namespaces. Neither
    changes the host's reader or the insides of a session's process: one of sixteen is made there.
    """
    met: set[tuple[str, str]] = set()
    passed: Counter[tuple[str, str, int]] = Counter()
    for item in items:
        for fixture in ("outcomes", "reduced_outcomes"):
            if user := _user(item, fixture):
                attack = item.callspec.params["attack"]  # type: ignore[attr-defined]
                if (fixture, user) == ("outcomes", SELF):
                    left_out = (attack.threat, attack.wall) in met
                    met.add((attack.threat, attack.wall))
                else:
                    every = 16 if attack.name in _OF_THE_MESSAGES else 12 if user == ORDINARY else 6
                    left_out = passed[fixture, user, every] % every > 0
                    passed[fixture, user, every] += 1
                if left_out:
                    item.add_marker(mark_of(item.nodeid))


def _wanted(session: pytest.Session, fixture: str, user: str) -> set[str]:
    """The attacks that tests want the outcomes of, by name."""
    return {item.callspec.params["attack"].name for item in session.items if _user(item, fixture) == user}


def _user(item: pytest.Item, fixture: str) -> str:
    """As whom an item's attack is made; "" for what makes none."""
    return str(item.callspec.params[fixture]) if fixture in _fixtures(item) else ""


def _fixtures(item: pytest.Item) -> tuple[str, ...]:
    return tuple(getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def reduced_runs(request: pytest.FixtureRequest) -> Iterator[dict[str, Run | str]]:
    """As `runs`, in sessions without namespaces, from copies that the sessions of a host that is root can read too."""
    wanted = _wanted(request.session, "reduced_outcomes", SELF)
    wanted_of_others = _wanted(request.session, "reduced_outcomes", ORDINARY)
    folder = Path(tempfile.mkdtemp(prefix="attackers-"))
    started: dict[str, Run | str] = {}
    try:
        reason = why_no_other_user()
        if os.getuid() != 0:
            started[SELF] = _start(own(HERE), sorted(wanted), "reduced")
            started[ORDINARY] = reason
        elif reason:
            started = {SELF: reason, ORDINARY: reason}
        else:
            other = ordinary(folder)
            started[ORDINARY] = _start(other, sorted(wanted_of_others), "reduced")
            started[SELF] = _start(replace(other, home="/root", uid=None), sorted(wanted), "reduced")
        yield started
    finally:
        _end(started)
        shutil.rmtree(folder)


@pytest.fixture(scope="session", params=[SELF, ORDINARY])
def reduced_outcomes(
    request: pytest.FixtureRequest, reduced_runs: dict[str, Run | str]
) -> dict[str, dict[str, object]]:
    """What became of each attack on a session without namespaces."""
    return _outcomes(reduced_runs[request.param])


def _start(account: Account, names: list[str], walls: str = "full") -> Run:
    canary = f"canary-{secrets.token_hex(16)}"
    process = account.start("-m", "cellblock_attacks", canary, *names, env={"SECRET": canary, "ATTACKED_WALLS": walls})
    return Run(process, names)
