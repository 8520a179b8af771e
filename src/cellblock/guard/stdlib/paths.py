"""`pathlib` behind the guard: paths as names, which are taken apart and joined. What touches files is refused."""

from __future__ import annotations

import pathlib
from typing import Any

from cellblock.guard.names import names
from cellblock.guard.refusal import denied
from cellblock.guard.tables import ModuleAudit, TypeAudit

_PURE = names(
    "anchor as_posix as_uri drive full_match is_absolute is_relative_to is_reserved joinpath match name parent parents "
    "parts relative_to root stem suffix suffixes with_name with_segments with_stem with_suffix"
)


class PosixPath(pathlib.PurePosixPath):
    """`Path`: a pure one, whose other methods say that there are no files."""

    __slots__ = ()


def _refusing(name: str) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise denied(f"Path.{name}(): there are no files here", "builtin")

    refuse.__name__ = refuse.__qualname__ = name
    return staticmethod(refuse)


_TOUCHING = frozenset(
    name for name in dir(pathlib.Path) if not name.startswith("_") and name not in dir(pathlib.PurePath)
)
for _name in _TOUCHING:
    setattr(PosixPath, _name, _refusing(_name))
PosixPath.__module__ = "pathlib"

_PATHS = (pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath)

AUDITS = (
    ModuleAudit(
        name="pathlib",
        members=names("PurePath PurePosixPath PureWindowsPath"),
        instead={"Path": PosixPath, "PosixPath": PosixPath},
        types=(
            *(TypeAudit(type=kind, reads=_PURE, statics=_PURE) for kind in _PATHS),
            TypeAudit(type=PosixPath, reads=_PURE | _TOUCHING, statics=_PURE | _TOUCHING),
            TypeAudit(type=type(pathlib.PurePosixPath("a").parents), reads=names("count index"), constructable=False),
        ),
        note="paths as names: what touches files is refused when it is called",
    ),
)
