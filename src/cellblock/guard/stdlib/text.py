"""Audits of modules about text."""

from __future__ import annotations

import string
import unicodedata

from cellblock.guard.tables import ModuleAudit, names

AUDITS = (
    ModuleAudit(
        name="string",
        members=frozenset(string.__all__) - {"Formatter", "Template"},
        note="Formatter reads attributes by text; Template compiles patterns of its subclasses",
    ),
    ModuleAudit(name="textwrap", members=names("wrap fill shorten dedent indent")),
    ModuleAudit(
        name="unicodedata",
        members=frozenset(name for name in dir(unicodedata) if name.islower() and not name.startswith("_"))
        - {"ucd_3_2_0"},
    ),
)
