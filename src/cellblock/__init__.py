"""Runs the code that LLM agents write: statefully, behind kernel walls, reversibly.

Public names load on first use, so that `import cellblock` stays cheap.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know it by its name; `typing` is most of what importing us would cost

if TYPE_CHECKING:
    from cellblock.agent.code import CodeAgent as CodeAgent
    from cellblock.agent.memory import AgentMemory as AgentMemory
    from cellblock.agent.prompts import Prompts as Prompts
    from cellblock.agent.react import ReactAgent as ReactAgent
    from cellblock.agent.result import RunResult as RunResult
    from cellblock.cell import Cell as Cell
    from cellblock.cell import CellError as CellError
    from cellblock.cell import CellState as CellState
    from cellblock.cell import Lost as Lost
    from cellblock.container import Container as Container
    from cellblock.errors import Busy as Busy
    from cellblock.errors import CaptureFailed as CaptureFailed
    from cellblock.errors import CellblockError as CellblockError
    from cellblock.errors import FileRefused as FileRefused
    from cellblock.errors import ImageNotBuilt as ImageNotBuilt
    from cellblock.errors import IsolationUnavailable as IsolationUnavailable
    from cellblock.errors import LeaseLost as LeaseLost
    from cellblock.errors import LogError as LogError
    from cellblock.errors import MergeConflict as MergeConflict
    from cellblock.errors import ModelError as ModelError
    from cellblock.errors import MountRefused as MountRefused
    from cellblock.errors import PreloadFailed as PreloadFailed
    from cellblock.errors import QuotaReached as QuotaReached
    from cellblock.errors import RestoreFailed as RestoreFailed
    from cellblock.errors import SecurityError as SecurityError
    from cellblock.errors import SessionBusy as SessionBusy
    from cellblock.errors import SessionClosed as SessionClosed
    from cellblock.errors import SessionHeld as SessionHeld
    from cellblock.errors import SourceRejected as SourceRejected
    from cellblock.errors import StepLimitReached as StepLimitReached
    from cellblock.errors import StoreDamaged as StoreDamaged
    from cellblock.errors import StoreError as StoreError
    from cellblock.errors import TaskFailed as TaskFailed
    from cellblock.errors import UnknownCell as UnknownCell
    from cellblock.errors import UnknownCommit as UnknownCommit
    from cellblock.errors import UnknownSession as UnknownSession
    from cellblock.errors import UnpicklableError as UnpicklableError
    from cellblock.events import Done as Done
    from cellblock.events import ToolCall as ToolCall
    from cellblock.guard.lint import lint as lint
    from cellblock.limits import ExecutionLimits as ExecutionLimits
    from cellblock.limits import Usage as Usage
    from cellblock.models.scripted import ScriptedModel as ScriptedModel
    from cellblock.outputs import Output as Output
    from cellblock.outputs import OutputType as OutputType
    from cellblock.policy import Policy as Policy
    from cellblock.pool import SessionPool as SessionPool
    from cellblock.session.blocking import Session as Session
    from cellblock.session.notebook import Notebook as Notebook
    from cellblock.session.privacy import Private as Private
    from cellblock.session.ready import keep_ready as keep_ready
    from cellblock.session.session import AsyncSession as AsyncSession
    from cellblock.state import Live as Live
    from cellblock.state import Resumed as Resumed
    from cellblock.state import Versioned as Versioned
    from cellblock.tools.tool import tool as tool
    from cellblock.values.portable import Opaque as Opaque

    TinyCodeAgent = CodeAgent

__version__ = "0.1.0.dev0"

_ERRORS = (
    "Busy",
    "CaptureFailed",
    "CellblockError",
    "FileRefused",
    "ImageNotBuilt",
    "IsolationUnavailable",
    "LeaseLost",
    "LogError",
    "MergeConflict",
    "ModelError",
    "MountRefused",
    "PreloadFailed",
    "QuotaReached",
    "RestoreFailed",
    "SecurityError",
    "SessionBusy",
    "SessionClosed",
    "SessionHeld",
    "SourceRejected",
    "StepLimitReached",
    "StoreDamaged",
    "StoreError",
    "TaskFailed",
    "UnknownCell",
    "UnknownCommit",
    "UnknownSession",
    "UnpicklableError",
)

_HOME = {
    **dict.fromkeys(_ERRORS, "cellblock.errors"),
    "AgentMemory": "cellblock.agent.memory",
    "CodeAgent": "cellblock.agent.code",
    "Prompts": "cellblock.agent.prompts",
    "ReactAgent": "cellblock.agent.react",
    "RunResult": "cellblock.agent.result",
    "TinyCodeAgent": "cellblock.agent.code",
    "tool": "cellblock.tools.tool",
    "AsyncSession": "cellblock.session.session",
    "Cell": "cellblock.cell",
    "CellError": "cellblock.cell",
    "CellState": "cellblock.cell",
    "Container": "cellblock.container",
    "Done": "cellblock.events",
    "ExecutionLimits": "cellblock.limits",
    "Live": "cellblock.state",
    "Lost": "cellblock.cell",
    "Notebook": "cellblock.session.notebook",
    "Opaque": "cellblock.values.portable",
    "Output": "cellblock.outputs",
    "OutputType": "cellblock.outputs",
    "Policy": "cellblock.policy",
    "Private": "cellblock.session.privacy",
    "Resumed": "cellblock.state",
    "ScriptedModel": "cellblock.models.scripted",
    "Session": "cellblock.session.blocking",
    "SessionPool": "cellblock.pool",
    "ToolCall": "cellblock.events",
    "Usage": "cellblock.limits",
    "Versioned": "cellblock.state",
    "keep_ready": "cellblock.session.ready",
    "lint": "cellblock.guard.lint",
}

_ALIASES = {"TinyCodeAgent": "CodeAgent"}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> object:
    try:
        module = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'cellblock' has no attribute {name!r}") from None
    from importlib import import_module

    value = getattr(import_module(module), _ALIASES.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
