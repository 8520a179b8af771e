"""Images for sessions of the level `sandboxed`: building, listing and removing them.

An image has CPython and nothing of cellblock, which the host mounts. An engine that reaches a registry builds it from
Python's own image. Where none can be reached, it is made of Debian's packages.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellblock.documents import fits, reading
from cellblock.errors import ImageNotBuilt
from cellblock.executors.container import debian
from cellblock.executors.container.engine import Engine, ask, reason_in
from cellblock.executors.container.recipe import CONTAINERFILE, FINISH, PIP, STACK, SUITES, Recipe
from cellblock.executors.container.steps import Failed, Line, Step, run
from cellblock.hosting.machine import MACHINE
from cellblock.text import read_json

LABEL = "cellblock.image"
"""Its value is `plain`, or `data` with the data stack."""

_STAGE_LABEL = "cellblock.stage"
_BASE_LABEL, _DIGEST_LABEL = "org.opencontainers.image.base.name", "org.opencontainers.image.base.digest"
_CONFIGURED = (
    "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "ENV LANG=C.UTF-8",
    "USER 1000:1000",
    'CMD ["python3"]',
)
_NOT_STARTED = "creating container"
_UNREACHABLE = (
    "no such host", "dial tcp", "i/o timeout", "connection refused", "network is unreachable", "handshake timeout",
    "Client.Timeout", "context deadline exceeded", "name resolution", "pinging container registry",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image made here, in an engine's storage. `size` in bytes; no `names` once another image took them."""

    id: str
    names: tuple[str, ...]
    size: int
    created: str
    data: bool
    base: str
    digest: str
    """Digest of the base, "" where it has none."""


async def build(engine: Engine, recipe: Recipe, step: Step) -> Image:
    """Make it, in a minute or so. ImageNotBuilt says what failed. When cancelled it leaves nothing behind."""
    before = find(engine, recipe.name)
    place = os.environ.get("TMPDIR", "/var/tmp")  # with room for a root
    with tempfile.TemporaryDirectory(prefix="cellblock-image-", dir=place) as name:
        folder = Path(name)
        folder.chmod(0o711)  # an engine's or maker's own users may pass through it
        if recipe.suite:
            await _of_debian(engine, recipe, step, folder)
        else:
            await _of_base(engine, recipe, step, folder)
    made = find(engine, recipe.name)
    if made is None:
        raise ImageNotBuilt(f"{engine.title} has no {recipe.name} after it was made")
    if before is not None and before.id != made.id and before.names == made.names:
        ask(engine.words("image", "rm", before.id))  # refused while containers run from it: `images` lists it then
    return made


def images(engine: Engine) -> list[Image]:
    """Images that were made here, newest first."""
    listed = _ask(engine, "images", "--filter", f"label={LABEL}", "--format", "{{.ID}}", "--no-trunc")
    ids = list(dict.fromkeys(listed.split()))
    found = _inspected(engine, _ask(engine, "image", "inspect", *ids)) if ids else []
    return sorted(map(_image, found), key=lambda image: image.created, reverse=True)


def find(engine: Engine, name: str) -> Image | None:
    """The image of this name; None where there is none, or one that was not made here."""
    done = ask(engine.words("image", "inspect", name))
    if done.returncode:
        return None
    told = _inspected(engine, done.stdout)
    return _image(told[0]) if told and LABEL in told[0]["Config"]["Labels"] else None


def remove(engine: Engine, name: str) -> None:
    """Remove an image from the engine's storage; ImageNotBuilt where a container uses it."""
    _ask(engine, "image", "rm", name)


async def _of_base(engine: Engine, recipe: Recipe, step: Step, folder: Path) -> None:
    """Build by the engine, from an image that has Python."""
    async with step("have the base") as line:
        base = await _pinned(engine, recipe, line)
        line.outcome = recipe.base.partition("@")[0]
    contents = _contents(folder)
    if recipe.data:
        await fetch(contents / "packages", base.python, [STACK], step, machine=base.machine)
    labels = [word for label in _labels(recipe, recipe.base, base.digest) for word in ("--label", label)]
    tidy = ("--layers=false", "--force-rm", *engine.limits()) if engine.kind == "podman" else ("--force-rm",)
    words = ["build", *tidy, "--network", "none", "--tag", recipe.name, "--build-arg", f"BASE={base.name}", *labels]
    words += ["--file", str(CONTAINERFILE), str(folder)]
    async with step("build") as line:
        await _built(engine, words, line)
        if engine.kind == "docker":  # whose older builder keeps what it made on the way
            _ask(engine, "image", "prune", "--force", "--filter", f"label={_STAGE_LABEL}")
        line.outcome = engine.title


async def _built(engine: Engine, words: list[str], line: Line) -> None:
    """Build with the first runtime that can start what the recipe runs."""
    failure = None
    for runtime in engine.runtimes("") if engine.kind == "podman" else ("",):
        try:
            await run(engine.words(*words, runtime=runtime), line)
            return
        except Failed as failed:
            failure = failed
            if _NOT_STARTED not in str(failed):
                break
    raise ImageNotBuilt(f"{engine.title} could not build the image: {failure}")


@dataclass(frozen=True, slots=True)
class _Base:
    """An image to start from, by a name that cannot come to mean another."""

    name: str
    digest: str
    python: str
    machine: str


async def _pinned(engine: Engine, recipe: Recipe, line: Line) -> _Base:
    """The base as it is now; pulled, but where it is one of this machine's or is here by its digest."""
    name, _, digest = recipe.base.partition("@")
    ours = name.startswith("localhost/")
    if not (ours or (digest and engine.has_image(recipe.base))):
        try:
            await run(engine.words("pull", recipe.base), line)
        except Failed as failure:
            raise _not_pulled(engine, recipe, str(failure)) from None
    (told,) = _inspected(engine, _ask(engine, "image", "inspect", recipe.base))
    python, machine = recipe.python or _python_of(told), told["Architecture"]
    if recipe.data and not python:
        raise ImageNotBuilt(f"{recipe.base} does not tell its Python's version", hint="add --python X.Y")
    if ours or digest:
        return _Base(recipe.base, digest, python, machine)
    known = [one.partition("@")[2] for one in told["RepoDigests"]]
    if not known:
        raise ImageNotBuilt(f"{engine.title} tells no digest of {recipe.base}", hint="name it by digest: NAME@sha256:…")
    head, slash, last = name.rpartition("/")
    return _Base(f"{head}{slash}{last.partition(':')[0]}@{known[0]}", known[0], python, machine)


def _python_of(told: dict[str, Any]) -> str:
    """Version of Python as its own images give it, "" where they do not."""
    values = [one.partition("=")[2] for one in told["Config"]["Env"] if one.startswith("PYTHON_VERSION=")]
    return ".".join(values[0].split(".")[:2]) if values else ""


def _not_pulled(engine: Engine, recipe: Recipe, said: str) -> ImageNotBuilt:
    if not any(sign in said for sign in _UNREACHABLE):
        return ImageNotBuilt(f"{engine.title} cannot pull {recipe.base}: {reason_in(said)}")
    words = ["cellblock", "image", "build", "--debian", "--engine", engine.kind]
    words += ["--data"] * recipe.data + (["--tag", recipe.tag] if recipe.tag else [])
    return ImageNotBuilt(
        f"the registry of {recipe.base} cannot be reached: {reason_in(said)}",
        hint=f"make it of Debian's packages instead: {' '.join(words)}",
    )


async def _of_debian(engine: Engine, recipe: Recipe, step: Step, folder: Path) -> None:
    """Make it of Debian's packages, without a registry."""
    program = debian.maker()
    contents = _contents(folder)
    requirements = [PIP, STACK] if recipe.data else [PIP]
    await fetch(contents / "packages", SUITES[recipe.suite], requirements, step)
    root = await debian.make_root(program, recipe.suite, contents, folder, step)
    labels = _labels(recipe, f"debian:{recipe.suite}", "")
    changes = [word for one in (*_CONFIGURED, *(f"LABEL {label}" for label in labels)) for word in ("--change", one)]
    async with step(f"import it into {engine.kind}") as line:
        try:
            await run(engine.words("import", *changes, str(root), recipe.name), line)
        except Failed as failure:
            raise ImageNotBuilt(f"{engine.title} could not import the image: {failure}") from None
        line.outcome = engine.title


def _contents(folder: Path) -> Path:
    """A new directory with what is copied into the root."""
    contents = folder / "build"
    contents.mkdir(mode=0o755)
    shutil.copyfile(FINISH, contents / FINISH.name)
    return contents


def _labels(recipe: Recipe, base: str, digest: str) -> list[str]:
    labels = {LABEL: "data" if recipe.data else "plain", _BASE_LABEL: base.partition("@")[0]}
    return [f"{name}={value}" for name, value in (labels | ({_DIGEST_LABEL: digest} if digest else {})).items()]


def _ask(engine: Engine, *words: str) -> str:
    done = ask(engine.words(*words))
    if done.returncode:
        raise ImageNotBuilt(f"{engine.title}: {reason_in(done.stderr)}")
    return done.stdout


def _image(told: dict[str, Any]) -> Image:
    labels = told["Config"]["Labels"]
    return Image(
        id=told["Id"].removeprefix("sha256:"),
        names=tuple(told["RepoTags"]),
        size=told["Size"],
        created=told["Created"],
        data=labels.get(LABEL) == "data",
        base=labels.get(_BASE_LABEL, ""),
        digest=labels.get(_DIGEST_LABEL, ""),
    )


_NO_CONFIG: dict[str, Any] = {"Labels": {}, "Env": []}
_NONE: dict[str, Any] = {
    "RepoTags": [], "RepoDigests": [], "Architecture": "", "Config": {}, "Size": 0, "Created": ""
}  # fmt: skip
_SHAPE = {
    "Id": str, "Size": int, "Created": str, "RepoTags": [str], "RepoDigests": [str], "Architecture": str,
    "Config": {"Labels": {...: str}, "Env": [str]},
}  # fmt: skip


def _inspected(engine: Engine, text: str) -> list[dict[str, Any]]:
    """The images that an engine describes, each field of its type; ImageNotBuilt for another answer."""
    with reading(f"what {engine.title} tells of images is", ImageNotBuilt, hint="try another engine: --engine"):
        told: Any = read_json(text)
        found = [{**_NONE, **_given(one)} for one in told]
        for one in found:
            one["Config"] = {**_NO_CONFIG, **_given(one["Config"])}
        if not fits(found, [_SHAPE]):
            raise ValueError("it is of another form")
        return found


def _given(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}


_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Names of wheels for the machines that engines and some systems name otherwise."""

_SETTINGS = {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
"""Settings of the user that do not go with `--target`, turned off."""

_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")


async def fetch(
    folder: Path, python: str, requirements: Sequence[Path], step: Step, *, machine: str = MACHINE or platform.machine()
) -> None:
    """Unpack wheels into a folder, for CPython `python` such as `3.13`, on `machine` such as `amd64`."""
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
        listed = "".join(path.read_text(encoding="utf-8") for path in requirements)
        line.outcome = ", ".join(re.findall(r"^(.+?)==", listed, re.MULTILINE))


def _pip() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    found = shutil.which("pip3") or shutil.which("pip")
    if found is None:
        raise ImageNotBuilt("there is no pip to fetch the image's packages with", hint=f"{sys.executable} -m ensurepip")
    return [found]
