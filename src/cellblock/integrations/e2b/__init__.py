"""E2B's interface: `Sandbox` of `e2b_code_interpreter`, over a session on this machine. It needs no package of theirs.

`from cellblock.integrations.e2b import Sandbox` instead of `from e2b_code_interpreter import Sandbox`.
"""

from __future__ import annotations

from cellblock.integrations.e2b.commands import CommandExitException, CommandResult, Commands
from cellblock.integrations.e2b.exceptions import (
    InvalidArgumentException,
    NotFoundException,
    SandboxException,
    TimeoutException,
)
from cellblock.integrations.e2b.execution import Execution, ExecutionError, Logs, OutputMessage, Result
from cellblock.integrations.e2b.files import EntryInfo, Filesystem, FileType, WriteInfo
from cellblock.integrations.e2b.sandbox import Sandbox

__all__ = [
    "Sandbox",
    "Execution",
    "ExecutionError",
    "Logs",
    "OutputMessage",
    "Result",
    "Filesystem",
    "EntryInfo",
    "WriteInfo",
    "FileType",
    "Commands",
    "CommandResult",
    "CommandExitException",
    "SandboxException",
    "TimeoutException",
    "NotFoundException",
    "InvalidArgumentException",
]
