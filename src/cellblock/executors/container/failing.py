"""Why a container could not be started, looked into now that there is time."""

from __future__ import annotations

from cellblock.errors import IsolationUnavailable
from cellblock.executors.container.engine import Engine, answering, ask


def not_started(engine: Engine, image: str, python: str, failures: list[tuple[str, str]]) -> IsolationUnavailable:
    """What no runtime could start a container for. Raises where the engine is gone by now."""
    answering(engine.program)
    if not engine.has_image(image):
        return IsolationUnavailable(
            f"{engine.said} has no image {image}",
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
        f"{engine.said} cannot start a container of {image}: {told}",
        mechanism="container",
        hint="name another runtime that is installed: container=Container(runtime='runc'), say",
    )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split()[1].split(".")[:2] if part.isdecimal())
