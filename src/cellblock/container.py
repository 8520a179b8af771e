"""The container that a session of the level `sandboxed` runs in."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

IMAGE = "localhost/cellblock"
"""The image that `cellblock image build` makes. Nothing of cellblock's is in it, so it serves every version."""
IMAGE_VARIABLE = "CELLBLOCK_IMAGE"
_NAME = re.compile(r"[A-Za-z0-9_./][\w./:@+-]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """An image, and what runs it.

    `image` needs CPython 3.11 or newer and nothing of cellblock's. By default that is what the variable
    CELLBLOCK_IMAGE names, or else the one that `cellblock image build` makes. It is never pulled.
    `engine` is `podman` or `docker`, by name or path: by default the first of them that is there.
    `runtime` is an OCI runtime by a name the engine knows: `runc`, `crun`, `runsc` (gVisor), `kata`. By default the
    engine's own, or where that cannot start a container here, the next that can.
    `cpus` bounds its processor time, in processors, as 1.5; None sets no bound.
    """

    image: str = ""
    engine: str = ""
    runtime: str = ""
    cpus: float | None = None

    def __post_init__(self) -> None:
        for what in ("image", "engine", "runtime"):
            value = getattr(self, what)
            if not isinstance(value, str) or (value and not _NAME.match(value)):
                raise ValueError(f"Container.{what} must be a name, not {value!r}")
        cpus: object = self.cpus
        if cpus is not None and (isinstance(cpus, bool) or not isinstance(cpus, (int, float)) or not 0 < cpus < 1e4):
            raise ValueError(f"Container.cpus must be a number above 0, not {cpus!r}")


def default_image() -> str:
    """The image of a container that names none."""
    return os.environ.get(IMAGE_VARIABLE) or IMAGE
