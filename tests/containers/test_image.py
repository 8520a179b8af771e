"""Images are made for real: of Debian's packages, and from an image that is there; sessions open in them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cellblock import Container, Session

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

NAME = f"localhost/cellblock-trial-{os.getpid()}"
LOOKED_AT = """
import json, os, pathlib, stat, sys
found = [os.path.join(folder, name) for folder, _, names in os.walk("/usr") for name in names]
modes = [os.lstat(path).st_mode for path in found]
own = pathlib.Path(os.__file__).parent
print(json.dumps({
    "version": sys.version_info[:2], "uid": os.getuid(),
    "set": sum(bool(mode & (stat.S_ISUID | stat.S_ISGID)) for mode in modes if stat.S_ISREG(mode)),
    "uncompiled": sum(not list((own / "__pycache__").glob(path.stem + ".*.pyc")) for path in own.glob("*.py")),
    "manuals": len(list(pathlib.Path("/usr/share/man").iterdir())),
    "licences": os.path.exists("/usr/share/doc/bash/copyright"),
    "left": os.path.exists("/build"),
}))
"""

Look = Callable[..., str]


def image(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cellblock", "image", *words, "--engine", "podman"],
        capture_output=True, text=True, check=False, timeout=500, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def made() -> Iterator[str]:
    """An image that is made of Debian's packages."""
    if os.getuid() != 0 or not all(map(shutil.which, ("podman", "runc"))):
        pytest.skip("needs root, podman and runc (Debian: apt-get install podman runc)")
    if not (shutil.which("mmdebstrap") or shutil.which("debootstrap")):
        pytest.skip("needs mmdebstrap or debootstrap (Debian: apt-get install mmdebstrap)")
    done = image("build", "--debian", "--tag", NAME)
    if done.returncode and re.search(r"could not fetch|could not make a root of Debian", done.stderr):
        pytest.skip(f"no way to the packages: {done.stderr[-400:]}")
    assert (done.returncode, done.stdout) == (0, f"{NAME}\n"), done.stderr
    yield NAME
    assert image("remove", NAME).returncode == 0


@pytest.fixture
def look() -> Look:
    def look_at(name: str) -> str:
        options = ("--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
        line = ["podman", "--cgroup-manager", "cgroupfs", "--runtime", "runc", "run", "--rm", *options, name]
        done = subprocess.run([*line, "python3", "-c", LOOKED_AT], capture_output=True, text=True, check=True)
        return done.stdout

    return look_at


def test_image_is_small_and_ready_for_sessions(made: str, look: Look) -> None:
    (told,) = [one for one in json.loads(image("list", "--json").stdout) if f"{made}:latest" in one["names"]]
    assert told["size"] < 130e6
    assert (told["data"], told["base"]) == (False, "debian:trixie")
    assert json.loads(look(made)) == {
        "version": [3, 13], "uid": 1000, "set": 0, "uncompiled": 0, "manuals": 0, "licences": True, "left": False,
    }  # fmt: skip


def test_session_opens_in_it(made: str) -> None:
    container = Container(engine="podman", image=made)
    with Session(trust_level="sandboxed", container=container) as session:
        assert session.run("import sys; sys.version_info[:2]").value == (3, 13)
        session.run("x = 1")
        session.run("x = 2")
        session.undo()
        assert session.run("x").value == 1


def test_image_from_one_that_is_there(made: str, look: Look) -> None:
    name = f"{NAME}-from"
    done = image("build", "--base", made, "--tag", name)
    assert (done.returncode, done.stdout) == (0, f"{name}\n"), done.stderr
    assert json.loads(look(name))["uid"] == 1000
    again = image("build", "--base", made, "--tag", name)
    assert again.returncode == 0
    nameless = [one for one in json.loads(image("list", "--json").stdout) if not one["names"] and one["base"] == made]
    assert nameless == []  # what had the name before is gone
    assert image("remove", name).returncode == 0


def test_interrupted_build_leaves_nothing(made: str, tmp_path: Path) -> None:
    words = ["image", "build", "--debian", "--tag", f"{NAME}-never"]
    building = subprocess.Popen(
        [sys.executable, "-c", "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
         "from cellblock.cli import main; raise SystemExit(main(sys.argv[1:]))", *words],
        env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 100
    while not list(tmp_path.glob("cellblock-image-*/mmdebstrap.*/usr")) and not list(tmp_path.glob("*/root/usr")):
        assert building.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    building.send_signal(signal.SIGINT)
    said, _ = building.communicate(timeout=60)
    assert (building.returncode, said.splitlines()[-1]) == (130, "cellblock: interrupted")
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in running
    assert image("remove", f"{NAME}-never").returncode == 2
