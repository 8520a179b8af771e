"""Fetches the Python packages of an image, by hash, on the host: nothing that is built needs a network."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cellblock.errors import ImageNotBuilt
from cellblock.executors.container.steps import Failed, Step, run

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""As engines and some systems call what wheels are named after."""

_SETTINGS = {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
"""What cannot go together with a folder to put packages into, wherever this user has set it."""

_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")


async def fetch(
    folder: Path, python: str, requirements: Sequence[Path], step: Step, *, machine: str = platform.machine()
) -> None:
    """Unpack them into a folder, for CPython `python`, `3.13` say, on `machine`, `amd64` say. ImageNotBuilt."""
    machine = _MACHINES.get(machine.lower(), machine)
    wanted = [word for path in requirements for word in ("--requirement", str(path))]
    platforms = [word for one in _PLATFORMS for word in ("--platform", f"{one}_{machine}")]
    words = [
        *_pip(), "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps", "--require-hashes",
        "--only-binary", ":all:", "--implementation", "cp", "--python-version", python, *platforms,
        "--target", str(folder), *wanted,
    ]  # fmt: skip
    async with step(f"fetch packages for Python {python}") as line:
        try:
            await run(words, line, environment=_SETTINGS)
        except Failed as failure:
            raise ImageNotBuilt(
                f"pip could not fetch the image's packages: {failure}",
                hint="it needs PyPI, or an index with the same files: PIP_INDEX_URL",
            ) from None
        shutil.rmtree(folder / "bin", ignore_errors=True)  # scripts that name this machine's interpreter
        line.good, line.outcome = True, ", ".join(_named(requirements))


def _pip() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    found = shutil.which("pip3") or shutil.which("pip")
    if found is None:
        raise ImageNotBuilt("there is no pip to fetch the image's packages with", hint=f"{sys.executable} -m ensurepip")
    return [found]


def _named(requirements: Sequence[Path]) -> Iterator[str]:
    for path in requirements:
        for line in path.read_text(encoding="utf-8").splitlines():
            if "==" in line:
                yield line.partition("==")[0]
