"""Options of the engine's `run`: a container's walls, user, limits and mounts."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from cellblock.container import Container
from cellblock.executors.container.engine import Engine
from cellblock.hosting.account import SANDBOX_UID
from cellblock.hosting.unique import unique_word

_PACKAGE = Path(__file__).resolve().parents[2]
INSIDE = "/opt/cellblock/cellblock"
"""Path of this package in containers."""
PYTHON = "python3"
"""The interpreter of an image, unless another is named."""

_WALLS = (
    "--rm", "--pull", "never", "--network", "none", "--read-only", "--cap-drop", "ALL", "--ipc", "private",
    "--cgroupns", "private",
    "--security-opt", "no-new-privileges", "--hostname", "cellblock", "--log-driver", "none", "--label", "cellblock",
    "--env", "PYTHONHASHSEED=0", "--env", "LANG=C.UTF-8", "--workdir", "/",
)  # fmt: skip
_OF_PODMAN = ("--read-only-tmpfs=false", "--no-hosts")
"""Without these there are places to write to that nothing bounds but the container's memory."""


def options_of(container: Container, engine: Engine, *, memory_bytes: int, processes: int) -> list[str]:
    """Options of every container: its walls, its user, its limits, and this package as a read-only mount."""
    options = [*_WALLS, *(_OF_PODMAN if engine.kind == "podman" else ())]
    if os.path.exists("/sys/fs/selinux/enforce"):  # whose policy denies access to mounts, and so to the socket
        options += ("--security-opt", "label=disable")
    options += _user_of(engine)
    options += ("--memory", str(memory_bytes), "--memory-swap", str(memory_bytes), "--pids-limit", str(processes))
    if container.cpus is not None:
        options += ("--cpus", str(container.cpus))
    return [*options, *engine.limits(), *mount(_readable_package(), INSIDE, engine)]


def program(python: str, image: str, *words: str) -> list[str]:
    """Words after the options: the image, and the worker's program in it with its arguments."""
    return ["--entrypoint", python, image, "-s", "-P", "-S", f"{INSIDE}/worker/__main__.py", *words]


def new_name() -> str:
    """A name for a container of this process."""
    return f"cellblock-{os.getpid()}-{unique_word(6)}"


def nesting(engine: Engine) -> Iterator[str]:
    """Options that let a session build its own walls inside: calls that make namespaces, and a `/proc` without masks.
    """
    profile = files("cellblock") / "cli" / "profiles" / "seccomp.json"
    yield from ("--security-opt", f"seccomp={profile}")
    yield from ("--security-opt", "unmask=ALL" if engine.kind == "podman" else "systempaths=unconfined")
    if os.path.exists("/sys/module/apparmor/parameters/enabled"):  # whose profile denies every mount
        yield from ("--security-opt", "apparmor=unconfined")


def mount(source: Path, target: str, engine: Engine) -> tuple[str, ...]:
    """Option that mounts a directory of the host, read-only."""
    read_only = "readonly" if engine.kind == "docker" else "ro=true"
    return "--mount", f"type=bind,source={source},target={target},{read_only}"


def private_directory(place: str | None = None) -> Path:
    """A new directory for this user alone, whatever the umask is."""
    private = Path(tempfile.mkdtemp(prefix="cellblock-", dir=place))
    private.chmod(0o700)
    return private


@functools.cache
def _readable_package() -> Path:
    """A path of this package that anybody can read: a copy, where its own place is for its owner alone."""
    if all(_is_for_all(path) for path in (_PACKAGE, _PACKAGE / "worker", _PACKAGE / "worker" / "__main__.py")):
        return _PACKAGE
    private = private_directory()
    atexit.register(_remove, private, os.getpid())
    copy = private / "cellblock"
    shutil.copytree(_PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copy


def _user_of(engine: Engine) -> tuple[str, ...]:
    """User of a container: root's run as an account that owns nothing, an ordinary user's as that user."""
    if os.getuid() == 0:
        return ("--user", f"{SANDBOX_UID}:{SANDBOX_UID}")
    own = f"{os.getuid()}:{os.getgid()}"
    if engine.kind == "podman":
        return ("--userns", "keep-id", "--user", own)
    return ("--user", "0:0" if engine.rootless else own)


def _remove(directory: Path, owner: int) -> None:
    if os.getpid() == owner:  # and no copy of it
        shutil.rmtree(directory, ignore_errors=True)


def _is_for_all(path: Path) -> bool:
    mode = path.stat().st_mode
    return bool(mode & stat.S_IROTH) and (not stat.S_ISDIR(mode) or bool(mode & stat.S_IXOTH))
