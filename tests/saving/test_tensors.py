"""Tensors of PyTorch, where it is installed: what shares a storage shares it afterwards, and gradients stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellblock import ExecutionLimits, Session, Versioned

pytest.importorskip("torch", reason="PyTorch is not installed")

MADE = """
import torch
grid = torch.arange(12.0).reshape(3, 4)
row, turned, held = grid[1], grid.T, {"row": grid[2]}
layer = torch.nn.Linear(2, 2)
tied = torch.nn.Linear(2, 2)
tied.weight = layer.weight
steps = torch.optim.Adam(layer.parameters())
layer(torch.ones(1, 2)).sum().backward()
steps.step()
layer.weight.mark = "mine"
small, sparse = torch.ones(2, dtype=torch.bfloat16), torch.eye(3).to_sparse()
grown = torch.ones(2, requires_grad=True) * 2
torch.manual_seed(5)
torch.rand(3)
"""
LOOKED_AT = """
grid[1, 0], grid[2, 0] = 99, 77
[
    float(row[0]), float(turned[0, 1]), float(held["row"][0]),
    tied.weight is layer.weight, steps.param_groups[0]["params"][0] is layer.weight, layer.weight.mark,
    layer.weight.grad.tolist(), len(steps.state), small.dtype == torch.bfloat16, grown.tolist(),
    float(sparse.to_dense().sum()), torch.rand(2).tolist(),
]
"""


def test_tensors_are_after_a_resume_what_they_were(tmp_path: Path) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    limits = ExecutionLimits(max_memory_mb=2_000, timeout_seconds=100)
    with Session("tensors", state=state, limits=limits) as session:
        assert session.run(MADE).ok
        session.flush()
        assert session.unsaved == ()
        branch = session.branch("live")
        expected = branch.run(LOOKED_AT.replace("torch.rand(2).tolist()", "None")).value
        branch.close()
        drawn = session.run("torch.rand(2).tolist()").value
        session.undo()
    with Session("tensors", state=state) as session:
        assert session.resumed is not None
        assert session.resumed.lost == ()
        found = session.run(LOOKED_AT).value
        assert isinstance(found, list)
        assert isinstance(expected, list)
        assert found[:-1] == expected[:-1]
        assert found[-1] == drawn
