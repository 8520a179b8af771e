"""All targets."""

from __future__ import annotations

from fuzzer import shown, turns, values, wire
from fuzzer.target import Target

TARGETS: tuple[Target, ...] = (*wire.TARGETS, *turns.TARGETS, *values.TARGETS, *shown.TARGETS)
BY_NAME = {target.name: target for target in TARGETS}
