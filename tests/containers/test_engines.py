"""The other engines and runtimes: docker, crun, and podman of an ordinary user."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from accounts import Account, ordinary, why_no_other_user

from cellblock import Container, IsolationUnavailable
from cellblock.executors.container.engine import engine_of
from cellblock.executors.container.launcher import ContainerLauncher, Pool
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.protocol import KernelSpec, Launcher
from cellblock.testing import ExecutorConformance

pytestmark = pytest.mark.containers

_CRUN = """\
#!/bin/sh
# crun 1.8 refuses the machine when version 2 of control groups is mounted beside version 1: here it is not
exec unshare --mount sh -c 'umount /sys/fs/cgroup/unified; exec podman --cgroup-manager cgroupfs "$@"' sh "$@"
"""
_ROOTLESS = """
import json, sys
from cellblock import Container, Session
from cellblock.walls import Applied
with Session(trust_level="sandboxed", container=Container(engine="podman", image=sys.argv[1])) as session:
    walls = {wall.mechanism: isinstance(wall, Applied) for wall in session.capabilities.walls}
    session.run("x = 1")
    session.run("x = 2")
    session.undo()
    with session.branch() as other:
        other.run("x += 10")
        print(json.dumps([walls, session.capabilities.walls[0].detail, session.run("x").value, other.run("x").value]))
"""


class _Of(ContainerLauncher):
    """Opens kernels in containers of one kind."""

    def __init__(self, container: Container) -> None:
        super().__init__(Pool())
        self._container = container

    async def open(self, spec: KernelSpec) -> ProcessKernel:
        kernel = await super().open(replace(spec, container=self._container))
        assert isinstance(kernel, ProcessKernel)
        return kernel


class _Conformance(ExecutorConformance):
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"


class TestDocker(_Conformance):
    @pytest.fixture
    def launcher(self, in_docker: str) -> Launcher:
        return _Of(Container(engine="docker", image=in_docker))


class TestCrun(_Conformance):
    @pytest.fixture
    def launcher(self, image: str, with_crun: str) -> Launcher:
        return _Of(Container(engine=with_crun, runtime="crun", image=image))


@pytest.mark.parametrize(
    "account", [(), ("--user", "1234", "--cap-drop", "ALL"), ("--user", "1234", "--read-only", "--tmpfs", "/tmp")]
)
def test_every_attempt_of_doctor_is_refused_in_docker_with_the_shipped_profile(
    in_docker: str, modules: Path, account: tuple[str, ...]
) -> None:
    profile = files("cellblock") / "cli" / "profiles" / "seccomp.json"
    report, status = _doctor_in_docker(in_docker, modules, f"--security-opt=seccomp={profile}", *account)
    assert (status, report["ok"]) == (0, True)


def test_dockers_own_profile_is_refused_with_the_line_that_starts_it_right(in_docker: str, modules: Path) -> None:
    report, status = _doctor_in_docker(in_docker, modules)
    assert (status, report["ok"], report["machine"]["container"]) == (3, False, "docker")
    assert report["reduced"] == {"ok": True, "failure": ""}
    assert report["remedies"][0]["commands"] == [
        "cellblock doctor --profile seccomp > cellblock-seccomp.json",
        "docker run --security-opt seccomp=cellblock-seccomp.json ...",
    ]


def test_ordinary_user_opens_sessions_in_containers_of_their_own(image: str, user: Account) -> None:
    archive = Path(user.home, "image.tar")
    with archive.open("wb") as file:
        subprocess.run(["podman", "save", image], stdout=file, stderr=subprocess.DEVNULL, check=True)
    done = _podman(user, "load", "--quiet", "--input", str(archive))
    assert done.returncode == 0, done.stderr
    done = _as(user, _ROOTLESS, image)
    assert done.returncode == 0, done.stderr
    walls, container, mine, others = json.loads(done.stdout)
    assert "rootless" in container
    assert (mine, others) == (1, 11)
    bounded = walls.pop("cgroup")
    assert bounded or Path("/sys/fs/cgroup/memory").exists()  # version 1 is root's alone
    assert walls == dict.fromkeys(
        ["container", "namespaces", "root", "rlimits", "capabilities", "landlock", "seccomp"], True
    )


@pytest.fixture(scope="module")
def in_docker(image: str) -> str:
    """The tests' image in docker's storage."""
    try:
        docker = engine_of("docker")
    except IsolationUnavailable as error:
        pytest.skip(str(error))
    if not docker.has_image(image):
        words = ["podman", "save", image]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as saving:
            subprocess.run(docker.words("load", "--quiet"), stdin=saving.stdout, check=True, capture_output=True)
        assert saving.returncode == 0
    return image


@pytest.fixture(scope="module")
def with_crun(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A podman that can start containers with crun."""
    if shutil.which("crun") is None:
        pytest.skip("needs crun (Debian: apt-get install crun)")
    if not os.path.isdir("/sys/fs/cgroup/unified"):
        return "podman"
    wrapper = tmp_path_factory.mktemp("crun") / "podman"
    wrapper.write_text(_CRUN)
    wrapper.chmod(0o755)
    return str(wrapper)


@pytest.fixture
def user() -> Iterator[Account]:
    """An ordinary user with a range of ids of their own, and a home where podman keeps what it has."""
    name = next((line.split(":")[0] for line in _lines("/etc/subuid") if _is_user(line.split(":")[0])), None)
    reason = why_no_other_user()
    if name is None or shutil.which("newuidmap") is None:
        reason = reason or "needs a user with a line in /etc/subuid, and newuidmap (Debian: apt-get install uidmap)"
    if reason:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="cellblock-rootless-"))
    try:
        account = replace(ordinary(folder, Path(__file__)), uid=pwd.getpwnam(str(name)).pw_uid)
        settings = Path(account.home, ".config/containers/storage.conf")
        settings.parent.mkdir(parents=True)
        settings.write_text('[storage]\ndriver = "overlay"\n')
        Path(account.home, "run").mkdir(mode=0o700)
        for path in (Path(account.home), *Path(account.home).rglob("*")):
            os.chown(path, account.uid or 0, -1)
        yield account
        ended = _podman(account, "system", "migrate")  # the process that holds the user's namespaces
        assert ended.returncode == 0, ended.stderr
    finally:
        shutil.rmtree(folder)


def _doctor_in_docker(image: str, modules: Path, *options: str) -> tuple[dict[str, Any], int]:
    """The words of doctor about a container that docker starts, and its exit status."""
    mount = ("-v", f"{modules}:/opt/modules:ro", "-e", "PYTHONPATH=/opt/modules", "-e", "PYTHONDONTWRITEBYTECODE=1")
    words = (
        "run",
        "--rm",
        "--network",
        "none",
        *mount,
        *options,
        image,
        "python3",
        "-m",
        "cellblock",
        "doctor",
        "--json",
    )
    done = subprocess.run(engine_of("docker").words(*words), capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout), done.returncode


def _as(user: Account, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Python as the user."""
    started = user.start("-c", program, *words, env={"XDG_RUNTIME_DIR": f"{user.home}/run", "USER": _name(user)})
    out, errors = started.communicate(timeout=110)
    return subprocess.CompletedProcess([], started.returncode, out, errors)


def _podman(user: Account, *words: str) -> subprocess.CompletedProcess[str]:
    program = "import subprocess, sys; sys.exit(subprocess.run(['podman', *sys.argv[1:]], check=False).returncode)"
    return _as(user, program, *words)


def _name(user: Account) -> str:
    return pwd.getpwuid(user.uid or 0).pw_name


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def _is_user(name: str) -> bool:
    try:
        return pwd.getpwnam(name).pw_uid > 0
    except KeyError:
        return False
