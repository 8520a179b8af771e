"""Every attack, by name."""

from __future__ import annotations

from cellblock.attacks import (
    branches,
    checkpoints,
    door,
    files,
    host_files,
    mounts,
    network,
    privileges,
    processes,
    protocol,
    resources,
    runner_insides,
    secrecy,
    shown,
)
from cellblock.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = tuple(
    attack
    for table in (
        files,
        host_files,
        mounts,
        processes,
        network,
        door,
        privileges,
        secrecy,
        resources,
        protocol,
        shown,
        runner_insides,
        checkpoints,
        branches,
    )
    for attack in table.ATTACKS
)
BY_NAME = {attack.name: attack for attack in ATTACKS}
assert len(BY_NAME) == len(ATTACKS), "two attacks have one name"
