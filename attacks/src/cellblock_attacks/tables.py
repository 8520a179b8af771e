"""Every attack, by name."""

from __future__ import annotations

from importlib import import_module

from cellblock_attacks.attack import Attack

_NAMES = (
    "files host_files mounts processes network door privileges secrecy resources protocol shown runner_insides "
    "checkpoints branches"
)
ATTACKS: tuple[Attack, ...] = tuple(
    attack for name in _NAMES.split() for attack in import_module(f"cellblock_attacks.{name}").ATTACKS
)
BY_NAME = {attack.name: attack for attack in ATTACKS}
assert len(BY_NAME) == len(ATTACKS), "two attacks have one name"
