"""Interpreters of the versions that cellblock supports, as far as this machine has them.

`CELLBLOCK_PYTHONS` names some, divided by colons; others are looked for on PATH and where pyenv and uv put them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13")
_HOMES = (
    ("~/.pyenv/versions", "{version}.*/bin/python3"),
    ("~/.local/share/uv/python", "cpython-{version}.*/bin/python3"),
    ("/usr/bin", "python{version}"),
    ("/usr/local/bin", "python{version}"),
)


@cache
def interpreters() -> dict[str, str]:
    """An interpreter of each version, of those that are found and start."""
    found: dict[str, str] = {}
    given = [Path(one) for one in os.environ.get("CELLBLOCK_PYTHONS", "").split(":") if one]
    for version in VERSIONS:
        named = [Path(path) for path in [shutil.which(f"python{version}")] if path]
        places = [one for home, pattern in _HOMES for one in _in(home, pattern.format(version=version))]
        for path in (*given, *places, *named):
            if version not in found and _version(path) == version:
                found[version] = str(path)
    return found


def _in(home: str, pattern: str) -> list[Path]:
    folder = Path(home).expanduser()
    return sorted(folder.glob(pattern), reverse=True) if folder.is_dir() else []


def _version(path: Path) -> str:
    ask = "import sys; print(sys.version_info[:2])"
    try:
        told = subprocess.run([path, "-I", "-c", ask], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ".".join(re.findall(r"\d+", told))
