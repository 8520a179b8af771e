"""What an engine is asked for, and what is said where it fails: by a program in its place that writes down its words.

Containers for real are in `tests/containers`.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from cellblock import Container, ExecutionLimits, IsolationUnavailable, Session
from cellblock.executors.container.engine import engine_of

_PODMAN = {
    "host": {"cgroupManager": "cgroupfs", "ociRuntime": {"name": "runc"}, "security": {"rootless": False}},
    "version": {"Version": "4.3.1"},
}
_DOCKER = {"ServerVersion": "28.2.2", "DefaultRuntime": "runc", "SecurityOptions": ["name=seccomp,profile=builtin"]}
_ENGINE = """\
#!{python} -IS
import json, sys
from pathlib import Path
here, words = Path({here!r}), sys.argv[1:]
with (here / "words").open("a") as log: log.write(json.dumps(words) + "\\n")
if words == ["--version"]: print({version!r})
elif "info" in words:
    if (here / "gone").exists(): sys.exit("Cannot connect to the daemon")
    print({info!r})
elif "inspect" in words: sys.exit(not (here / "image").exists())
elif "--detach" in words:
    if (here / "leaving").exists(): (here / "gone").touch()
    sys.exit("Error: OCI runtime error: no")
elif "--version" in words: print("Python 3.9.2")
"""


class _Engine:
    """A program that answers as an engine does, and starts nothing."""

    def __init__(self, here: Path, kind: str) -> None:
        self.here = here
        here.mkdir()
        version, info = ("podman version 4.3.1", _PODMAN) if kind == "podman" else ("Docker version 28.2.2", _DOCKER)
        self.program = here / kind
        self.program.write_text(
            _ENGINE.format(python=sys.executable, here=str(here), version=version, info=json.dumps(info))
        )
        self.program.chmod(0o755)

    def has(self, what: str) -> None:
        (self.here / what).touch()

    def refused(self, **container: object) -> IsolationUnavailable:
        """The error of a session with it."""
        with pytest.raises(IsolationUnavailable) as caught:
            Session(
                trust_level="sandboxed",
                container=Container(image="some/image", engine=str(self.program), **container),  # type: ignore[arg-type]
                limits=ExecutionLimits(max_memory_mb=64, max_disk_mb=16, max_processes=10),
            )
        return caught.value

    @property
    def started(self) -> list[list[str]]:
        """The words of every container that was to be started."""
        lines = map(json.loads, (self.here / "words").read_text().splitlines())
        return [line for line in lines if "--detach" in line]


@pytest.fixture(params=["podman", "docker"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> _Engine:
    return _Engine(tmp_path / "engine", request.param)


@pytest.mark.sampled(1)
def test_every_wall_is_asked_for(engine: _Engine) -> None:
    engine.refused(cpus=0.5)
    words = engine.started[0]
    pairs = list(pairwise(words))
    assert {"--rm", "--read-only"} <= set(words)
    assert {("--network", "none"), ("--cap-drop", "ALL"), ("--pull", "never"), ("--ipc", "private")} <= set(pairs)
    options = [value for option, value in pairs if option == "--security-opt"]
    assert "no-new-privileges" in options
    assert any(option.startswith("seccomp=") and option.endswith("seccomp.json") for option in options)
    assert not any("privileged" in word for word in words if word != "no-new-privileges")
    given = {option: value for option, value in pairs if option.startswith("--")}
    assert int(given["--memory"]) == int(given["--memory-swap"]) < 2**32
    assert 0 < int(given["--pids-limit"]) < 200
    assert given["--cpus"] == "0.5"
    mounts = [value for option, value in pairs if option == "--mount"]
    assert len(mounts) == 2
    assert all(mount.endswith((",ro=true", ",readonly")) for mount in mounts)
    assert not {"-v", "--volume", "--device", "--privileged", "--pid", "--cap-add"} & set(words)


@pytest.mark.sampled(1)
def test_runtime_is_named_where_the_engine_wants_it(engine: _Engine) -> None:
    error = engine.refused(runtime="crun")
    (words,) = engine.started
    at = words.index("--runtime")
    assert words[at + 1] == "crun"
    assert (at < words.index("run")) == (engine.program.name == "podman")
    assert error.mechanism == "image"


@pytest.mark.sampled(0)
def test_image_that_is_missing_is_told_from_a_container_that_fails(engine: _Engine) -> None:
    missing = engine.refused()
    assert (missing.mechanism, "cellblock image build" in missing.hint) == ("image", True)
    engine.has("image")
    old = engine.refused()
    assert (old.mechanism, "Python 3.9.2" in str(old)) == ("python", True)


@pytest.mark.sampled(1)
def test_engine_that_has_gone_meanwhile_is_what_is_told(engine: _Engine) -> None:
    engine.has("leaving")
    error = engine.refused()
    assert (error.mechanism, "Cannot connect to the daemon" in str(error)) == ("engine", True)


def test_engine_that_does_not_answer_is_told_with_what_it_says(engine: _Engine) -> None:
    engine.has("gone")
    error = engine.refused()
    assert (error.mechanism, "Cannot connect to the daemon" in str(error)) == ("engine", True)


def test_no_engine_at_all_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(IsolationUnavailable, match="podman is not installed; docker is not installed") as caught:
        engine_of()
    assert "apt-get install podman" in caught.value.hint


def test_program_that_is_no_engine_is_named() -> None:
    with pytest.raises(IsolationUnavailable, match="/true says"):
        engine_of("/bin/true")


@pytest.mark.parametrize(
    "wrong",
    [{"image": "--privileged"}, {"engine": "-x"}, {"runtime": "a b"}, {"image": "a\n"}, {"cpus": 0}, {"cpus": True}],
)
def test_container_that_names_options_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="Container"):
        Container(**wrong)  # type: ignore[arg-type]


def test_container_is_for_sandboxed_sessions() -> None:
    with pytest.raises(ValueError, match="sandboxed"):
        Session(container="some/image")
    with pytest.raises(TypeError):
        Session(trust_level="sandboxed", container=3)  # type: ignore[arg-type]
