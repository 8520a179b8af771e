"""Opens sessions of the level `local`, once there are any."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from cellblock import ExecutionLimits, Policy, Session
from cellblock.policy import RARE

PATIENT = ExecutionLimits(timeout_seconds=20, max_output_bytes=1_000_000)
"""For programs that end by themselves, on a machine that does more."""


@cache
def why_not_local() -> str:
    """Why there is no level `local` here; "" where there is."""
    if find_spec("cellblock.executors.local") is None:
        return "the level `local` does not exist yet"
    return ""


def local_session(**options: Any) -> Session:
    """A session in this process, with all of the audited standard library and of the language."""
    return Session(**{"trust_level": "local", "limits": PATIENT, "policy": Policy(also=RARE), **options})
