"""A module of the host that is granted whole. It holds more than it means to give."""

import os
from collections import OrderedDict
from types import MappingProxyType
from typing import ClassVar

_hidden = os.environ["CANARY"]
WHERE = os.environ["CANARY_FILE"]
environ = os.environ
SIZES = ["small", "large"]
SHELVES = (["nails"], ["screws"])
PRICES = OrderedDict(hammer=3)
PLACES = MappingProxyType({"wall": ["hook"]})


class Tool:
    """A thing with a name."""

    kinds: ClassVar = ["hammer"]

    def __init__(self, name):
        self.name = name
        self._maker = _hidden

    def use(self, times=1):
        """Do something."""
        return f"{self.name} " * times


class ToolError(Exception):
    """A tool that broke."""


def shout(text):
    """The text in capitals."""
    return str(text).upper()


def measure(things, key=len):
    """The key of each."""
    return [key(thing) for thing in things]


def fail():
    """Raises."""
    hidden = _hidden
    raise ToolError("broke", len(hidden))


def parts():
    """A generator of the host's."""
    hidden = _hidden
    yield "handle"
    yield "head" if hidden else "none"
