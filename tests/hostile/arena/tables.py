"""Every attack, by name."""

from __future__ import annotations

from arena import files, host_files, network, privileges, processes, secrecy
from arena.attack import Attack

ATTACKS: tuple[Attack, ...] = (
    *files.ATTACKS,
    *host_files.ATTACKS,
    *processes.ATTACKS,
    *network.ATTACKS,
    *privileges.ATTACKS,
    *secrecy.ATTACKS,
)
BY_NAME = {attack.name: attack for attack in ATTACKS}
assert len(BY_NAME) == len(ATTACKS), "two attacks have one name"
