"""What code gets of the data that a host's modules and classes hold: copies, which it may change."""

from __future__ import annotations

from collections import ChainMap, OrderedDict, UserDict, defaultdict
from collections.abc import Mapping, MutableMapping, MutableSequence, MutableSet
from copy import deepcopy
from types import MappingProxyType
from typing import Any

_CONTAINERS = (MutableMapping, MutableSequence, MutableSet)
_PLAIN = (dict, OrderedDict, defaultdict, ChainMap, UserDict)
_PACKAGES = frozenset(("numpy", "pandas"))
"""Whose arrays and tables are changed by assigning to their items."""


def is_data(value: object) -> bool:
    """Whether code could change a value, or what it holds, without an attribute of it."""
    kind = type(value)
    if isinstance(value, tuple):
        return any(map(is_data, tuple.__iter__(value)))
    return (
        isinstance(value, _CONTAINERS)
        or kind is MappingProxyType
        or (kind.__module__.partition(".")[0] in _PACKAGES and hasattr(kind, "__setitem__"))
    )


def copy_of_data(value: Any) -> Any:
    """A copy of a value that code could change; anything else as it is.

    A read-only view of a dict is one of a copy: comparing it hands the dict to the other side's `__eq__`. Of a mapping
    that stands for something else, such as the environment, it is a dict.
    """
    if not is_data(value):
        return value
    if type(value) is MappingProxyType:
        return MappingProxyType(deepcopy(dict(value)))
    if isinstance(value, Mapping) and not isinstance(value, _PLAIN):
        return deepcopy(dict(value))
    return deepcopy(value)
