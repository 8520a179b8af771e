"""Profiles that ship with the package, for what surrounds a program: container engines, AppArmor, Kubernetes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent / "profiles"
FILES = {
    "seccomp": "seccomp.json",
    "apparmor": "apparmor",
    "apparmor-container": "apparmor-container",
    "kubernetes": "kubernetes.yaml",
}


def text(name: str) -> str:
    """A profile, with this interpreter's real path where one is named: AppArmor knows programs by it."""
    return (_FOLDER / FILES[name]).read_text(encoding="utf-8").replace("@PYTHON@", os.path.realpath(sys.executable))
