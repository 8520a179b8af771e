"""Agents whose model's replies are written down: each text is code, put between fences."""

from __future__ import annotations

from typing import Any

from cellblock import CodeAgent, ScriptedModel

LEVELS = ("isolated", "local")


def fenced(code: str) -> str:
    return f"I try this.\n```python\n{code}\n```"


def scripted(*cells: str) -> ScriptedModel:
    return ScriptedModel([fenced(cell) for cell in cells])


def agent_of(*cells: str, **options: Any) -> CodeAgent:
    return CodeAgent(scripted(*cells), **options)


def decisions(result: Any) -> list[str]:
    """Of each step what was decided, or whether its code ran."""
    return [step.decision or ("ran" if step.ok else "failed") for step in result.steps]


def shown(agent: CodeAgent, call: int = -1) -> str:
    """The last message of a call of an agent's model."""
    text: str = agent.model.asked[call][-1]["content"]  # type: ignore[attr-defined]
    return text
