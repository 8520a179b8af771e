"""The audit of `argparse`."""

from __future__ import annotations

from cellblock.guard.names import names
from cellblock.guard.tables import ModuleAudit

AUDITS = (
    ModuleAudit(
        name="argparse",
        written=True,
        members=names(
            "ArgumentParser Namespace Action BooleanOptionalAction ArgumentError ArgumentTypeError HelpFormatter "
            "RawDescriptionHelpFormatter RawTextHelpFormatter ArgumentDefaultsHelpFormatter MetavarTypeHelpFormatter "
            "SUPPRESS OPTIONAL ZERO_OR_MORE ONE_OR_MORE REMAINDER PARSER"
        ),
        note="no files, and no words but those of the code's own `sys.argv`",
    ),
)
