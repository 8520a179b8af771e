"""Runs the attacks of `arena` as the user of the tests and, where that is root, as an ordinary user too."""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.append(str(HERE))  # for `arena`, which is a program of its own as well

SELF, ORDINARY = "self", "ordinary-user"
SYSTEM_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True)
class Account:
    """Whom attacks run as: their Python, where their modules are, their home."""

    python: str
    path: str
    home: str
    uid: int | None


@dataclass(frozen=True)
class Run:
    """A program that runs attacks, and the attacks it runs."""

    process: subprocess.Popen[str]
    names: list[str]


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[str, Run | str]]:
    """The attacks that this run of the tests selected, under way as each user at once; or why not as one."""
    from arena.tables import ATTACKS

    wanted = {item.callspec.params["attack"].name for item in request.session.items if "outcomes" in _fixtures(item)}
    names = [attack.name for attack in ATTACKS if attack.name in wanted]
    folder = Path(tempfile.mkdtemp(prefix="attackers-"))
    started: dict[str, Run | str] = {SELF: _start(_self(), names)}
    try:
        reason = _why_no_other_user()
        started[ORDINARY] = reason or _start(_ordinary(folder), names)
        yield started
    finally:
        for run in started.values():
            if isinstance(run, Run):
                run.process.kill()
                run.process.wait()
        shutil.rmtree(folder)


@pytest.fixture(scope="session", params=[SELF, ORDINARY])
def outcomes(request: pytest.FixtureRequest, runs: dict[str, Run | str]) -> dict[str, dict[str, object]]:
    """What became of each attack, by name: as the tests' own user, and as one without privileges."""
    run = runs[request.param]
    if isinstance(run, str):
        pytest.skip(run)
    output, errors = run.process.communicate(timeout=115)
    found = {one["name"]: one for one in map(json.loads, output.splitlines())}
    missing = [name for name in run.names if name not in found]
    assert not missing, f"the attacks from {missing[0]} on did not run:\n{errors[-4000:]}"
    return found


def _fixtures(item: pytest.Item) -> tuple[str, ...]:
    return tuple(getattr(item, "fixturenames", ()))


def _start(account: Account, names: list[str]) -> Run:
    canary = f"canary-{secrets.token_hex(16)}"
    process = subprocess.Popen(
        [account.python, "-B", "-m", "arena", canary, *names],
        env={"PYTHONPATH": account.path, "HOME": account.home, "PATH": os.environ["PATH"], "SECRET": canary},
        cwd=account.home,
        user=account.uid,
        group=None if account.uid is None else pwd.getpwuid(account.uid).pw_gid,
        extra_groups=None if account.uid is None else [],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Run(process, names)


def _self() -> Account:
    path = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    return Account(sys.executable, path, os.environ.get("HOME", "/tmp"), None)


def _why_no_other_user() -> str:
    if os.getuid() != 0:
        return "the tests already run as an ordinary user"
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    if not Path(SYSTEM_PYTHON).exists() or subprocess.run([SYSTEM_PYTHON, "-c", check], check=False).returncode:
        return f"{SYSTEM_PYTHON}, which an ordinary user can reach, is missing or older than 3.11"
    return ""


def _ordinary(folder: Path) -> Account:
    """An account that can reach no file of the tests' user: it gets copies, and the system's Python."""
    account = pwd.getpwnam("nobody")
    home, modules = folder / "home", folder / "modules"
    home.mkdir()
    os.chown(home, account.pw_uid, account.pw_gid)
    for name in ("cellblock", "anyio", "idna", "sniffio", "typing_extensions"):
        _copy(name, modules)
    shutil.copytree(HERE / "arena", modules / "arena", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    return Account(SYSTEM_PYTHON, str(modules), str(home), account.pw_uid)


def _copy(name: str, folder: Path) -> None:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return
    folder.mkdir(exist_ok=True)
    if spec.submodule_search_locations:
        source = Path(spec.origin).parent
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(spec.origin, folder)
