"""Finds the audit of a module: one file each, or one for a few that are alike."""

from __future__ import annotations

import importlib
from functools import cache

from cellblock.guard.tables import ModuleAudit

_HOMES = {
    "cellblock.guard.stdlib.numbers": "math cmath statistics decimal fractions random numbers",
    "cellblock.guard.stdlib.text": "string re textwrap unicodedata difflib",
    "cellblock.guard.stdlib.structures": "collections collections.abc heapq bisect copy enum dataclasses",
    "cellblock.guard.stdlib.functions": "functools itertools operator contextlib abc typing types",
    "cellblock.guard.stdlib.times": "datetime time calendar zoneinfo",
    "cellblock.guard.stdlib.formats": "json json.decoder json.encoder base64 binascii hashlib hmac uuid csv io "
    "struct pprint zlib",
    "cellblock.guard.stdlib.system": "sys warnings",
    "cellblock.guard.stdlib.tasks": "asyncio",
    "cellblock.guard.stdlib.queues": "queue graphlib contextvars weakref array secrets keyword reprlib ast",
    "cellblock.guard.stdlib.web": "urllib urllib.parse html html.parser shlex fnmatch colorsys ipaddress codecs xml "
    "xml.etree xml.etree.ElementTree",
    "cellblock.guard.stdlib.reports": "logging traceback inspect timeit",
    "cellblock.guard.stdlib.examples": "doctest",
    "cellblock.guard.stdlib.paths": "pathlib",
    "cellblock.guard.stdlib.arguments": "argparse",
}
STANDARD = frozenset(name for names in _HOMES.values() for name in names.split())
"""Modules of the standard library that have an audit."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def audited(name: str) -> bool:
    """True if there is an audit of a module."""
    return name in _HOME_OF and audit_of(name) is not None


@cache
def audit_of(name: str) -> ModuleAudit | None:
    """The audit of a module, None where there is none."""
    home = _HOME_OF.get(name)
    if home is None:
        return None
    audits: tuple[ModuleAudit, ...] = importlib.import_module(home).AUDITS
    return next((audit for audit in audits if audit.name == name), None)
