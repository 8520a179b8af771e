"""A module of the host: a class with something to hide. Code is given one instance of it, and `greet`."""

import os

CANARY = os.environ["CANARY"]


class Vault:
    """Its name is public."""

    opened = 0

    def __init__(self, name="the vault"):
        self._name = name
        self._secret = CANARY

    def name(self):
        """Its name."""
        return self._name

    @property
    def label(self):
        """The name, in capitals."""
        return self._name.upper()


def greet(name, punctuation="!"):
    """A greeting."""
    return f"hello {name}{punctuation}"
