"""`cellblock image` up to the engine: a stand-in for podman answers, and writes down what it is asked.

That images are made, and what is in them, is tried with podman itself in `tests/containers/test_image.py`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from cellblock.executors.container.recipe import BASE, STACK
from cellblock.executors.container.steps import Failed, Line, run

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]

DIGEST = "sha256:" + "0123456789abcdef" * 4
INFORMED = {
    "host": {"cgroupManager": "cgroupfs", "ociRuntime": {"name": "crun"}, "security": {"rootless": False}},
    "version": {"Version": "4.9.0"},
}
IMAGE = {
    "Id": "ab" * 32, "RepoTags": ["localhost/cellblock:latest"], "Size": 114_000_000, "Created": "2026-11-22T10:00:00Z",
    "Config": {"Labels": {"cellblock.image": "plain", "org.opencontainers.image.base.name": "debian:trixie"}},
}  # fmt: skip
UNREACHABLE = 'pinging container registry registry-1.docker.io: Get "https://x/v2/": dial tcp: lookup x: no such host'
_PODMAN = """\
#!/bin/sh
here=${0%/*}
echo "$@" >> $here/asked
case "$*" in
--version) echo podman version 4.9.0;;
info*) cat $here/informed;;
pull*) test -e $here/slow && echo half way && sleep 1000; cat $here/refused >&2; test ! -s $here/refused;;
images*) cat $here/ids;;
"image inspect"*docker.io*) test -s $here/base && cat $here/base;;
"image inspect"*) test -s $here/image && cat $here/image;;
*build*) cp $here/made $here/image;;
*) exit 1;;
esac
"""


@dataclass(frozen=True)
class Podman:
    """The stand-in's folder. What it answers is in files there."""

    folder: Path

    def write(self, **answers: object) -> None:
        for name, answer in answers.items():
            (self.folder / name).write_text(answer if isinstance(answer, str) else json.dumps(answer))

    @property
    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}:/usr/bin:/bin", "TMPDIR": str(self.folder)}


@pytest.fixture
def podman(tmp_path: Path) -> Podman:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "podman").write_text(_PODMAN)
    (folder / "podman").chmod(0o755)
    stand_in = Podman(folder)
    base = {
        "Id": "cd" * 32,
        "RepoDigests": [f"docker.io/library/python@{DIGEST}"],
        "Config": {"Env": []},
        "Architecture": "arm64",
    }
    stand_in.write(informed=INFORMED, refused="", ids="", image="", base=[base], made=[IMAGE])
    return stand_in


def test_no_engine_is_named_with_what_to_install(cellblock: Cellblock, tmp_path: Path) -> None:
    done = cellblock("image", "build", environment={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.decode() == (
        "cellblock: no container engine: podman is not installed; docker is not installed "
        "(install podman (Debian, Ubuntu: apt-get install podman runc) or docker)\n"
    )


def test_registry_out_of_reach_gives_the_command_for_debian(cellblock: Cellblock, podman: Podman) -> None:
    podman.write(refused=UNREACHABLE, base="")
    done = cellblock("image", "build", "--data", "--tag", "localhost/mine", environment=podman.environment)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        f"cellblock: the registry of {BASE} cannot be reached: {UNREACHABLE} (make it of Debian's packages instead: "
        "cellblock image build --debian --engine podman --data --tag localhost/mine)\n"
    )


def test_image_that_the_registry_has_not_is_told_as_that(cellblock: Cellblock, podman: Podman) -> None:
    podman.write(refused="Error: manifest unknown")
    done = cellblock("image", "build", "--base", "docker.io/library/python:9", environment=podman.environment)
    assert done.returncode == 1
    expected = "cellblock: podman 4.9.0 cannot pull docker.io/library/python:9: Error: manifest unknown\n"
    assert done.stderr.decode() == expected


@pytest.mark.sampled(0)
def test_base_is_built_from_by_the_digest_that_was_pulled(cellblock: Cellblock, podman: Podman) -> None:
    done = cellblock("image", "build", "--python", "3.12", environment=podman.environment)
    assert (done.returncode, done.stdout) == (0, b"localhost/cellblock\n"), done.stderr.decode()
    assert "pull docker.io/library/python:3.12-slim-trixie" in podman.asked
    (built,) = [line for line in podman.asked if " build " in f" {line}"]
    assert f"--build-arg BASE=docker.io/library/python@{DIGEST} " in built
    assert f"--label org.opencontainers.image.base.digest={DIGEST} " in built
    assert "--label org.opencontainers.image.base.name=docker.io/library/python:3.12-slim-trixie " in built
    assert "--network none --tag localhost/cellblock " in built
    assert [path.name for path in podman.folder.glob("cellblock-image-*")] == []


def test_base_that_does_not_tell_its_python_is_asked_for_it(cellblock: Cellblock, podman: Podman) -> None:
    words = ("image", "build", "--data", "--base", "docker.io/library/mine:1")
    done = cellblock(*words, environment=podman.environment)
    assert done.returncode == 1
    expected = "cellblock: docker.io/library/mine:1 does not tell its Python's version (add --python X.Y)\n"
    assert done.stderr.decode() == expected


def test_packages_are_fetched_for_the_base_and_not_for_this_machine(cellblock: Cellblock, podman: Podman) -> None:
    (podman.folder / "pip3").write_text('#!/bin/sh\necho "$@" > ${0%/*}/fetched\necho no way out\nexit 1\n')
    (podman.folder / "pip3").chmod(0o755)
    without = "import sys; sys.modules['pip'] = None; sys.argv[0] = 'cellblock'; from cellblock.cli import main; main()"
    words = ["image", "build", "--data", "--base", "docker.io/library/mine:1", "--python", "3.12"]
    done = subprocess.run(
        [sys.executable, "-c", without, *words],
        env={**os.environ, **podman.environment},
        capture_output=True,
        text=True,
    )
    assert done.stderr.splitlines()[-1] == (
        "cellblock: pip could not fetch the image's packages: no way out "
        "(it needs PyPI, or an index with the same files: PIP_INDEX_URL)"
    )
    fetched = (podman.folder / "fetched").read_text()
    assert "--require-hashes --only-binary :all: --implementation cp --python-version 3.12 " in fetched
    assert " --platform manylinux_2_28_aarch64 " in fetched


def test_debian_without_a_program_that_makes_roots(cellblock: Cellblock, podman: Podman, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("sh", "cat"):
        (bare / name).symlink_to(f"/bin/{name}")
    done = cellblock("image", "build", "--debian", environment={"PATH": f"{podman.folder}:{bare}"})
    assert done.returncode == 1
    expected = "cellblock: neither mmdebstrap nor debootstrap is installed (apt-get install mmdebstrap)\n"
    assert done.stderr.decode() == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["build", "--debian", "bookworm", "--python", "3.12"], "--python 3.12: Debian bookworm has Python 3.11"),
        (["build", "--python", "3.10"], "'3.10' is not one of 3.11 to 3.14"),
        (["build", "--debian", "--base", "x"], "not allowed with argument --debian"),
        (["build", "--debian", "sid"], "invalid choice: 'sid'"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(cellblock: Cellblock, words: list[str], said: str) -> None:
    done = cellblock("image", *words)
    assert (done.returncode, said in done.stderr.decode()) == (2, True), done.stderr.decode()


@pytest.mark.sampled(0)
def test_images_that_were_made_here_are_listed(cellblock: Cellblock, podman: Podman) -> None:
    podman.write(ids=f"{IMAGE['Id']}\n{IMAGE['Id']}\n", image=[IMAGE])
    done = cellblock("image", "list", environment=podman.environment)
    assert done.stdout.decode().splitlines() == [
        "IMAGE                       MADE        SIZE    FROM",
        "localhost/cellblock:latest  2026-11-22  114 MB  debian:trixie",
    ]
    assert "images --filter label=cellblock.image --format {{.ID}} --no-trunc" in podman.asked
    (told,) = json.loads(cellblock("image", "list", "--json", environment=podman.environment).stdout)
    assert (told["id"], told["data"], told["base"]) == (IMAGE["Id"], False, "debian:trixie")


def test_image_that_was_not_made_here_is_not_removed(cellblock: Cellblock, podman: Podman) -> None:
    podman.write(image=[IMAGE | {"Config": {"Labels": None}}])
    done = cellblock("image", "remove", "somebody/elses", environment=podman.environment)
    assert done.returncode == 2
    assert "no image 'somebody/elses' that was made here" in done.stderr.decode()
    assert not any(line.startswith("image rm") for line in podman.asked)


def test_interrupt_at_a_terminal_ends_the_line_and_leaves_nothing(
    repl: Callable[..., Any], podman: Podman, monkeypatch: pytest.MonkeyPatch
) -> None:
    podman.write(base="", slow="")
    for name, value in podman.environment.items():
        monkeypatch.setenv(name, value)
    typed = repl("build", command="image")
    typed.expect("have the base .* half way")
    typed.type("\x03")
    assert typed.end() == 130
    assert typed.screen.endswith("half way^C\ncellblock: interrupted\n")
    assert list(podman.folder.glob("cellblock-image-*")) == []


def test_every_package_of_the_stack_is_pinned_by_hash() -> None:
    text = re.sub(r"^#.*\n", "", STACK.read_text(), flags=re.M).replace("\\\n", " ")
    for line in text.splitlines():
        assert re.fullmatch(r"[a-z-]+==[\d.]+( +--hash=sha256:[0-9a-f]{64})+", line), line


def test_cancelled_step_ends_all_it_started(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    child = f"trap '' TERM; sleep 1000 > {held} & trap exit TERM; echo started; wait"

    async def cancel() -> None:
        line = Line()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, ["sh", "-c", child], line)
            while not line.doing():
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    ours = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    try:
        anyio.run(cancel)
        os.set_blocking(ours, True)
        assert os.read(ours, 1) == b""  # nobody holds its other end any more
    finally:
        os.close(ours)


def test_failed_step_has_the_last_lines_that_were_said() -> None:
    with pytest.raises(Failed, match=r"\Alast\nwords\Z"):
        anyio.run(run, ["sh", "-c", "echo last; echo words >&2; exit 3"], Line())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "answer",
    ["", "null", "5", "{}", "[5]", "[[]]", "[{}]", "[" * 5000, "not JSON", '[{"Id": 5}]', "9" * 5000,
     *(json.dumps([IMAGE | {name: value}]) for name in ("Id", "RepoTags", "Size", "Created", "Config")
       for value in (5.5, "x", [5], {"Labels": []}, {"Labels": {"a": 1}}, {"a": "\ud800"}))],
)  # fmt: skip
def test_whatever_an_engine_tells_is_taken_or_named(cellblock: Cellblock, podman: Podman, answer: str) -> None:
    podman.write(ids="ab", image=answer)
    done = cellblock("image", "list", environment=podman.environment)
    if done.returncode:
        assert re.fullmatch(rb"cellblock: (what )?podman 4\.9\.0.*\n", done.stderr), done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.sampled(1)
@pytest.mark.parametrize("answer", ["[]", "5", "{", "[" * 5000, *(json.dumps(INFORMED | {name: value})
                                    for name in ("host", "version") for value in (5, None, [], {}))])  # fmt: skip
def test_engine_that_tells_nothing_of_itself_is_named(cellblock: Cellblock, podman: Podman, answer: str) -> None:
    podman.write(informed=answer)
    done = cellblock("image", "list", environment=podman.environment)
    assert (done.returncode, done.stdout) == (3, b"")
    assert re.fullmatch(rb"cellblock: .*podman.*\n", done.stderr)
