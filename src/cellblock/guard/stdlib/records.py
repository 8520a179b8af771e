"""`dataclasses` behind the gates: fields are names, and are read and written as attributes of their objects are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard.names import names
from cellblock.guard.refusal import denied
from cellblock.guard.tables import ModuleAudit

if TYPE_CHECKING:
    from cellblock.guard.world import World

def general_replace(world: World) -> Callable[..., Any]:
    """`copy.replace`."""

    def replaced(obj: Any, /, **changes: Any) -> Any:
        if hasattr(type(obj), "__dataclass_fields__"):
            return world.library.module("dataclasses")["replace"](obj, **changes)
        if not world.classes.own(type(obj)) and type(obj) in world.host_types:
            raise denied(f"{type(obj).__name__} cannot be copied")
        function: Any = vars(copy)["replace"]
        return function(obj, **changes)

    return replaced


AUDIT = ModuleAudit(
    name="dataclasses",
    written=True,
    members=names("asdict astuple dataclass field fields is_dataclass make_dataclass replace KW_ONLY InitVar MISSING")
    | names("Field FrozenInstanceError"),
    note="fields are names before they are written into source; those of the host's objects are read through the gates",
)
