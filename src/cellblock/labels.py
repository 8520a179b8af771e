"""Labels of what a record holds beside the names: what surrounds them, and what the session's own modules hold."""

from __future__ import annotations

IMPORT = "@import:"
"""Begins the label of such a module."""
HELD = "@held:"
"""Begins the label of what such a module holds: see `label_of`."""
DUNDER = "@name:"
"""Begins the label of a name such as `__version__` that cells have bound."""
DECLARED = "@type:"
"""Begins the label of what `__annotations__` holds for a name."""
LAST = "@last"
"""The label of the value that the last cell showed."""


def label_of(module: str, name: str) -> str:
    """The label of what a module of the session's own holds under a name."""
    return f"{HELD}{module}:{name}"


def place_of(label: str) -> tuple[str, str]:
    """The module and the name that such a label is of."""
    module, _, name = label.removeprefix(HELD).partition(":")
    return module, name


def called(label: str) -> str:
    """The name under which a loss is told, of a name or of what surrounds the names."""
    if label == LAST:
        return "_"
    if label.startswith(DUNDER):
        return label.removeprefix(DUNDER)
    if label.startswith(DECLARED):
        return f"__annotations__[{label.removeprefix(DECLARED)!r}]"
    return label.removeprefix("@").removeprefix("patch:").removeprefix("held:").replace(":", ".")


def is_around(label: str) -> bool:
    """True if it is of what surrounds the names: of no name itself, and of nothing in a module of the session's own."""
    return label.startswith("@") and not label.startswith((HELD, DUNDER, DECLARED))
