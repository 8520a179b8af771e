"""An integration without its package says which extra has it, and `import cellblock` needs none."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("deepagents", "deepagents"),
        ("inspect_ai", "inspect"),
        ("langgraph", "langgraph"),
        ("mcp", "mcp"),
        ("pydantic_ai", "pydantic-ai"),
        ("smolagents", "smolagents"),
    ],
)
def test_an_integration_without_its_package_names_the_extra(name: str, extra: str) -> None:
    program = f"""
import sys
sys.modules[{name!r}] = None
from cellblock import CellblockError
try:
    import cellblock.integrations.{name}
except CellblockError as error:
    print(error.hint)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f'pip install "cellblock[{extra}]"\n'


def test_no_integration_is_imported_with_cellblock() -> None:
    program = (
        "import sys, cellblock\nprint([name for name in sys.modules if name.startswith('cellblock.integrations')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
