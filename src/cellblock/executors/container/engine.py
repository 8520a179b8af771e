"""A container engine by its command line, podman's or docker's, which take nearly the same words."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cellblock.documents import reading
from cellblock.errors import IsolationUnavailable
from cellblock.hosting.forks import Lock
from cellblock.hosting.paths import absolute
from cellblock.text import BadJson, read_json

ENGINES = ("podman", "docker")
_INSTALL = "install podman (Debian, Ubuntu: apt-get install podman runc) or docker"
_ASK_SECONDS = 30.0
_FLAGS = {"runsc": ("--runtime-flag", "network=none")}
"""Flags that podman gives a runtime: gVisor's refuses the network namespace that podman makes for `--network none`."""
_OPEN_FILES, _PROCESSES = 65_536, 32_768
_MOST_SAID = 600


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that has answered. `rootless`: its containers are the user's own, in a user namespace of the engine's.

    `apart`: they run in a virtual machine, as those of Docker Desktop do.
    """

    program: str
    kind: str
    version: str
    runtime: str
    """Its default runtime."""
    rootless: bool
    own: tuple[str, ...] = ()
    """Options that come before every command."""
    apart: bool = False

    @property
    def title(self) -> str:
        """Name and version, such as `podman 4.3.1, rootless`."""
        return f"{self.kind} {self.version}" + (", rootless" if self.rootless else "")

    def words(self, *words: str, runtime: str = "") -> list[str]:
        """Words of a command. podman takes the runtime before the command, docker after it."""
        if not runtime:
            return [self.program, *self.own, *words]
        if self.kind == "podman":
            flags = _FLAGS.get(os.path.basename(runtime), ())
            return [self.program, *self.own, "--runtime", runtime, *flags, *words]
        return [self.program, *self.own, words[0], "--runtime", runtime, *words[1:]]

    def runtimes(self, wanted: str) -> tuple[str, ...]:
        """Runtimes to try: the one that is wanted, or the engine's own and then others that are installed."""
        if wanted:
            return (wanted,)
        here = (name for name in ("crun", "runc") if self.kind == "podman" and shutil.which(name, path=_PATH))
        return (self.runtime, *(name for name in here if name != self.runtime))

    def has_image(self, image: str) -> bool:
        """True if an image is in its storage."""
        done = ask(self.words("image", "inspect", "--format", "{{.Id}}", image))
        return done.returncode == 0

    def limits(self) -> list[str]:
        """Options for resource limits within the hard limits of this process: an engine cannot start with more."""
        wanted = {"nofile": (resource.RLIMIT_NOFILE, _OPEN_FILES), "nproc": (resource.RLIMIT_NPROC, _PROCESSES)}
        words = []
        for name, (limit, most) in wanted.items():
            hard = resource.getrlimit(limit)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            words += ["--ulimit", f"{name}={most}:{most}"]
        return words


_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/local/sbin"))
"""Directories of runtimes; an ordinary user's own path leaves half of it out."""

_known: dict[tuple[str, str], Engine] = {}
_finding = Lock()


def engine_of(wanted: str = "") -> Engine:
    """The engine of a name or path, or the first installed one, asked once. Blocks; IsolationUnavailable for none."""
    key = wanted, os.environ.get("PATH", "")
    with _finding:
        if key not in _known:
            _known[key] = _found(wanted)
        return _known[key]


def _found(wanted: str) -> Engine:
    reasons = []
    for name in (wanted,) if wanted else ENGINES:
        program = shutil.which(name)
        if program is None:
            reasons.append(f"{name} is not installed")
            continue
        try:
            return probe(absolute(program))
        except IsolationUnavailable as error:
            if wanted:
                raise
            reasons.append(str(error))
    raise IsolationUnavailable(f"no container engine: {'; '.join(reasons)}", mechanism="engine", hint=_INSTALL)


def probe(program: str) -> Engine:
    """Ask a program which engine it is; IsolationUnavailable where it is none, or does not answer."""
    version = ask([program, "--version"]).stdout.split()
    kind = version[0].lower() if version else ""
    if kind not in ENGINES:
        said = " ".join(version) or "nothing"
        raise IsolationUnavailable(f"{program} says {said!r}", mechanism="engine", hint=_INSTALL)
    form = "json" if kind == "podman" else "{{json .}}"
    done = ask([program, "info", "--format", form])
    told: Any = {}
    with contextlib.suppress(BadJson):
        told = read_json(done.stdout or "{}")
    if not isinstance(told, dict):
        told = {}
    if done.returncode or not told or told.get("ServerErrors"):
        raise IsolationUnavailable(
            f"{program} does not answer: {reason_in(done.stderr or str(told.get('ServerErrors')))}",
            mechanism="engine",
            hint="start its daemon, and see that this user may talk to it" if kind == "docker" else f"try: {kind} info",
        )
    broken = partial(IsolationUnavailable, mechanism="engine")
    with reading(f"what {program} tells of itself is", broken, hint=_INSTALL):
        return _of_podman(program, told) if kind == "podman" else _of_docker(program, told)


def _of_podman(program: str, told: Mapping[str, Any]) -> Engine:
    host, version = told["host"], told["version"]["Version"]
    without_systemd = host.get("cgroupManager") == "systemd" and not os.path.isdir("/run/systemd/system")
    own = ("--cgroup-manager", "cgroupfs") if without_systemd else ()
    return Engine(
        program,
        "podman",
        version,
        host["ociRuntime"]["name"],
        bool(host["security"]["rootless"]),
        own,
        bool(host.get("serviceIsRemote")),
    )


def _of_docker(program: str, told: Mapping[str, Any]) -> Engine:
    rootless = any("rootless" in str(option) for option in told.get("SecurityOptions") or ())
    apart = told.get("OperatingSystem") == "Docker Desktop"
    return Engine(
        program, "docker", str(told["ServerVersion"]), str(told.get("DefaultRuntime", "")), rootless, apart=apart
    )


def working_directory() -> str:
    """Working directory for engines: a container that runs out of memory has its monitor leave a file `oom` there."""
    own = "/run" if os.getuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", os.path.expanduser("~"))
    return own if os.path.isdir(own) else "/"


def ask(words: Sequence[str], *, seconds: float = _ASK_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run a command of an engine to its end. IsolationUnavailable when it cannot be run, or does not answer."""
    try:
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            cwd=working_directory(),
        )
    except subprocess.TimeoutExpired:
        raise IsolationUnavailable(
            f"{words[0]} did not answer within {seconds:.0f} s", mechanism="engine", hint="see whether its daemon hangs"
        ) from None
    except OSError as error:
        raise IsolationUnavailable(f"{words[0]} cannot be run: {error}", mechanism="engine", hint=_INSTALL) from None


def reason_in(said: str) -> str:
    """An engine's error text as one line."""
    return " ".join(said.split())[-_MOST_SAID:] or "it says nothing"


def not_started(engine: Engine, image: str, python: str, failures: list[tuple[str, str]]) -> IsolationUnavailable:
    """Error that says why no runtime could start a container. Raises where the engine is gone by now."""
    probe(engine.program)
    if not engine.has_image(image):
        return IsolationUnavailable(
            f"{engine.title} has no image {image}",
            mechanism="image",
            hint=f"cellblock image build --engine {engine.kind}, or pull one with Python 3.11 or newer and name it: "
            "container=Container(image=…)",
        )
    runtime, _ = failures[-1]
    line = ["run", "--rm", "--pull", "never", "--network", "none", *engine.limits(), "--entrypoint", python, image]
    tried = ask(engine.words(*line, "--version", runtime=runtime))
    version = f"{tried.stdout} {tried.stderr}".strip()
    if tried.returncode in (126, 127) and python in version:
        return IsolationUnavailable(
            f"the image {image} has no {python}",
            mechanism="python",
            hint="use an image with CPython 3.11 or newer, or name the interpreter by its path there: python=…",
        )
    if tried.returncode == 0 and version.startswith("Python ") and _number(version) < (3, 11):
        return IsolationUnavailable(
            f"the image {image} has {version}", mechanism="python", hint="use an image with CPython 3.11 or newer"
        )
    told = "; ".join(f"{runtime or 'its runtime'}: {said}" for runtime, said in failures)
    return IsolationUnavailable(
        f"{engine.title} cannot start a container of {image}: {told}",
        mechanism="container",
        hint="name another runtime that is installed: container=Container(runtime='runc'), say",
    )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split()[1].split(".")[:2] if part.isdecimal())
