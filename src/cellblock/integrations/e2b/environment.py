"""Variables of the environment: for good, or for one run. Their values are in no cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cellblock.errors import CellblockError, SessionClosed
from cellblock.integrations.e2b.exceptions import InvalidArgumentException
from cellblock.session.blocking import Session

_PROGRAM = """
def _cellblock_inside(given, for_good):
    import json, os
    for name, value in json.loads(os.environ.pop("_CELLBLOCK_BEFORE", "{{}}")).items():
        os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
    if not for_good:
        os.environ["_CELLBLOCK_BEFORE"] = json.dumps({{name: os.environ.get(name) for name in given}})
    os.environ.update(given)
globals().pop("_cellblock_inside")({given!r}, {for_good!r})
"""
"""First ends what an earlier run had: where the run was undone, its variables are there still, and beside them, in the
environment since a session that is opened again has that, what was before."""

_ASKED = "'_CELLBLOCK_BEFORE' in __import__('os').environ"


class Environment:
    """The environment of a session's code."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._may_have = session.resumed is not None

    def set(self, variables: Mapping[str, str], *, for_good: bool = True) -> None:
        """Set variables, and unset those of an earlier run."""
        given = {str.__str__(name): str.__str__(value) for name, value in variables.items()}  # of an enum, too
        self._aside(_PROGRAM.format(given=given, for_good=for_good))

    def _aside(self, source: str, *, reads: bool = False) -> object:
        try:
            return self._session.aside(source, reads=reads)
        except SessionClosed:
            raise
        except CellblockError as error:
            what = "the sandbox could not set the variables of its environment"
            raise InvalidArgumentException(f"{what}: {error}", hint=error.hint) from None

    @contextmanager
    def once(self, variables: Mapping[str, str] | None) -> Iterator[None]:
        """Have variables for what is run within."""
        if not variables:
            if self._may_have and self._aside(_ASKED, reads=True):
                self.set({})
            yield
            return
        self._may_have = True
        try:
            self.set(variables, for_good=False)
            yield
        finally:
            self.set({})
