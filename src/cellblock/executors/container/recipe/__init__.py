"""Recipe of an image for sessions. The files beside this one go into an image, or list what does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cellblock.container import IMAGE

BASE = (
    "docker.io/library/python:3.13.15-slim-trixie"
    "@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285"
)
"""Python's own image, for every architecture. An engine that pulls by digest takes nothing else for it."""

SUITES = {"trixie": "3.13", "bookworm": "3.11"}
"""Debian's releases, and the Python of each."""

CONTAINERFILE, FINISH, STACK, PIP = (
    Path(__file__).parent / name for name in ("Containerfile", "finish.py", "data.txt", "pip.txt")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Description of an image to make. With `suite` it is made of that Debian's packages, and `base` is not looked at.

    `python` is the version of the base's, `3.13` say, for bases that do not tell by PYTHON_VERSION; only `data` asks.
    """

    data: bool = False
    tag: str = ""
    base: str = BASE
    python: str = ""
    suite: str = ""

    @property
    def name(self) -> str:
        return self.tag or (f"{IMAGE}-data" if self.data else IMAGE)
