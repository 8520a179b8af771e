"""Containers of podman: an image with the system's Python, and this package mounted into it."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

IMAGE = os.environ.get("CELLBLOCK_TEST_IMAGE", "localhost/cellblock-test")
"""An image with Python 3.11 or newer as /usr/bin/python3; made with debootstrap where it is missing."""

MODULES = "/opt/modules"
_PODMAN = ("podman", "--cgroup-manager", "cgroupfs", "--runtime", "runc")
_MODULES = ("cellblock", "anyio", "idna", "sniffio", "typing_extensions")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def image() -> str:
    """The image's name; the test is skipped where there is neither podman nor a way to the image."""
    if os.getuid() != 0 or not all(map(shutil.which, ("podman", "runc"))):
        pytest.skip("needs root, podman and runc (Debian: apt-get install podman runc)")
    if subprocess.run([*_PODMAN, "image", "exists", IMAGE], check=False).returncode == 0:
        return IMAGE
    if shutil.which("debootstrap") is None:
        pytest.skip(f"no image {IMAGE}, and no debootstrap to make one (Debian: apt-get install debootstrap)")
    _make_image()
    return IMAGE


def _make_image() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        packages = "--include=python3,util-linux,procps"
        made = subprocess.run(["debootstrap", "--variant=minbase", packages, "bookworm", folder], check=False)
        if made.returncode:
            pytest.skip("debootstrap could not make an image")
        tar = subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE)
        subprocess.run([*_PODMAN, "import", "-", IMAGE], stdin=tar.stdout, check=True, capture_output=True)
        assert tar.wait() == 0


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that all may read, with what the program in the container imports."""
    folder = Path(f"/tmp/cellblock-containers-{os.getpid()}")
    folder.mkdir()
    try:
        for name in _MODULES:
            spec = find_spec(name)
            if spec is None or spec.origin is None:
                continue
            if spec.submodule_search_locations:
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(Path(spec.origin).parent, folder / name, ignore=ignored)
            else:
                shutil.copy(spec.origin, folder)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def podman(image: str, modules: Path) -> Run:
    """Runs a command in a new container, with podman's own options before it."""

    def run(*command: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        # podman asks for more than the hard limits where root may not raise them
        most = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
        limits = [f"{name}={_within(4096, limit)}" for name, limit in most.items()]
        ulimits = [word for limit in limits for word in ("--ulimit", limit)]
        mounts = ("-v", f"{modules}:{MODULES}:ro", "-e", f"PYTHONPATH={MODULES}", "-e", "PYTHONDONTWRITEBYTECODE=1")
        line = [*_PODMAN, "run", "--rm", "--network", "none", *ulimits, *mounts, *options, image, *command]
        return subprocess.run(line, capture_output=True, text=True, timeout=110, check=False)

    return run


def _within(wanted: int, limit: int) -> int:
    hard = resource.getrlimit(limit)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


@pytest.fixture
def cells(podman: Run) -> Callable[..., str]:
    """Opens a session in a container and runs a program over it; what it printed."""

    def run(program: str, *options: str) -> str:
        done = podman("python3", "-c", program, options=options)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    return run
