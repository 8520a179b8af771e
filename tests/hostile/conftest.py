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


@pytest.fixture(scope="session", params=[SELF, ORDINARY])
def as_user(request: pytest.FixtureRequest) -> Iterator[Account]:
    """The tests' own user; and, where that is root, one without privileges who has a copy of the package."""
    if request.param == SELF:
        path = os.pathsep.join([str(HERE), *filter(None, sys.path)])
        yield Account(sys.executable, path, os.environ.get("HOME", "/tmp"), None)
        return
    if os.getuid() != 0:
        pytest.skip("the tests already run as an ordinary user")
    if not _has_new_enough_python():
        pytest.skip(f"{SYSTEM_PYTHON}, which an ordinary user can reach, is missing or older than 3.11")
    account = pwd.getpwnam("nobody")
    folder = Path(tempfile.mkdtemp(prefix="attackers-"))
    try:
        home = folder / "home"
        home.mkdir()
        os.chown(home, account.pw_uid, account.pw_gid)
        for name in ("cellblock", "anyio", "idna", "sniffio", "typing_extensions"):
            _copy(name, folder / "modules")
        shutil.copytree(HERE / "arena", folder / "modules" / "arena", ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        yield Account(SYSTEM_PYTHON, str(folder / "modules"), str(home), account.pw_uid)
    finally:
        shutil.rmtree(folder)


def _has_new_enough_python() -> bool:
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    return Path(SYSTEM_PYTHON).exists() and subprocess.run([SYSTEM_PYTHON, "-c", check], check=False).returncode == 0


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


@pytest.fixture(scope="session")
def outcomes(as_user: Account, request: pytest.FixtureRequest) -> dict[str, dict[str, object]]:
    """What became of each attack that this run of the tests selected, by name."""
    wanted = {
        item.callspec.params["attack"].name  # type: ignore[attr-defined]
        for item in request.session.items
        if "outcomes" in getattr(item, "fixturenames", ())
    }
    from arena.tables import ATTACKS

    canary = f"canary-{secrets.token_hex(16)}"
    names = [attack.name for attack in ATTACKS if attack.name in wanted]
    done = subprocess.run(
        [as_user.python, "-B", "-m", "arena", canary, *names],
        env={"PYTHONPATH": as_user.path, "HOME": as_user.home, "PATH": os.environ["PATH"], "SECRET": canary},
        cwd=as_user.home,
        user=as_user.uid,
        group=as_user.uid and pwd.getpwuid(as_user.uid).pw_gid,
        extra_groups=None if as_user.uid is None else [],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    found = {one["name"]: one for one in map(json.loads, done.stdout.splitlines())}
    missing = [name for name in names if name not in found]
    assert not missing, f"the attacks from {missing[0]} on did not run:\n{done.stderr[-4000:]}"
    return found
