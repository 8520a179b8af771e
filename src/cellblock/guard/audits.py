"""Finds the audit of a module, in one file for some that are alike."""

from __future__ import annotations

import importlib
from functools import cache

from cellblock.guard.tables import ModuleAudit

_HOMES = {
    "stdlib.numbers": "math cmath statistics decimal fractions random numbers",
    "stdlib.text": "re unicodedata difflib",
    "stdlib.structures": "collections collections.abc heapq bisect enum",
    "stdlib.copies": "copy",
    "stdlib.functions": "itertools operator abc typing types",
    "stdlib.times": "datetime time calendar zoneinfo",
    "stdlib.formats": "json json.decoder json.encoder base64 binascii hashlib uuid csv io struct pprint zlib",
    "stdlib.system": "sys warnings",
    "stdlib.tasks": "asyncio",
    "stdlib.queues": "queue contextvars weakref array secrets keyword reprlib ast",
    "stdlib.web": "pathlib urllib html.parser codecs xml xml.etree xml.etree.ElementTree",
    "stdlib.reports": "traceback inspect timeit",
    "stdlib.examples": "doctest",
    "written.audits": "argparse colorsys contextlib dataclasses fnmatch functools graphlib hmac html ipaddress "
    "logging shlex string textwrap urllib.parse",
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
    audits: tuple[ModuleAudit, ...] = importlib.import_module(f"cellblock.guard.{home}").AUDITS
    return next((audit for audit in audits if audit.name == name), None)
