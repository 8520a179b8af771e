"""Searches of a session's files, by a program that runs where cells may change what it calls."""

from __future__ import annotations

import pytest

from cellblock import AsyncSession
from cellblock.integrations.langgraph.searching import Search, search


@pytest.mark.anyio
@pytest.mark.threat("W11")
async def test_rows_are_bounded_whatever_a_cell_makes_of_the_program() -> None:
    async with AsyncSession() as session:
        await session.run("def exec(_, space): space['told'] = ['found', ['x' * 20_000] * 3_000, False]")
        found = await search(session, Search(most=50))
    assert (len(found.rows), {len(row) for row in found.rows}, found.more) == (50, {10_000}, True)
