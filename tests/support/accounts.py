"""Whom tests run programs as: themselves and, where they are root, an ordinary user too."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

SYSTEM_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True)
class Account:
    """Their Python, where their modules are, their home; `uid` None is that of the tests."""

    python: str
    path: str
    home: str
    uid: int | None

    def start(self, *words: str, env: dict[str, str] | None = None, **options: object) -> subprocess.Popen[str]:
        """Start their Python in their home, with an environment of its own and pipes for stdout and stderr."""
        return subprocess.Popen(
            [self.python, "-B", *words],
            env={"PYTHONPATH": self.path, "HOME": self.home, "PATH": os.environ["PATH"], **(env or {})},
            cwd=self.home,
            user=self.uid,
            group=None if self.uid is None else pwd.getpwuid(self.uid).pw_gid,
            extra_groups=None if self.uid is None else [],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,  # type: ignore[call-overload]
        )


def own(programs: Path) -> Account:
    """The tests' user. `programs` is a directory of modules to run."""
    path = os.pathsep.join([str(programs), *filter(None, sys.path)])
    return Account(sys.executable, path, os.environ.get("HOME", "/tmp"), None)


def why_no_other_user() -> str:
    """Why nothing can be run as another user; "" if it can."""
    if os.getuid() != 0:
        return "the tests already run as an ordinary user"
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    if not Path(SYSTEM_PYTHON).exists() or subprocess.run([SYSTEM_PYTHON, "-c", check], check=False).returncode:
        return f"{SYSTEM_PYTHON}, which an ordinary user can reach, is missing or older than 3.11"
    return ""


def ordinary(folder: Path, program: Path | None = None) -> Account:
    """An account that can reach no file of the tests' user: it gets copies below `folder`, and the system's Python.

    `program` is a module to run, beside cellblock and what that needs.
    """
    account = pwd.getpwnam("nobody")
    home, modules = folder / "home", folder / "modules"
    home.mkdir()
    os.chown(home, account.pw_uid, account.pw_gid)
    for name in ("cellblock", "cellblock_attacks", "anyio", "backports.zstd", "idna", "sniffio", "typing_extensions"):
        _copy(name, modules)
    if program is not None:
        shutil.copy(program, modules)
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    return Account(SYSTEM_PYTHON, str(modules), str(home), account.pw_uid)


def _copy(name: str, folder: Path) -> None:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return
    folder.mkdir(exist_ok=True)
    if spec.submodule_search_locations:
        source = Path(spec.origin).parent
        shutil.copytree(source, folder.joinpath(*name.split(".")), ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(spec.origin, folder)
