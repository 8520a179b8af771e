"""The conformance suite that pydantic-ai publishes for workspaces, as it is published."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import anyio
import pytest

conformance = pytest.importorskip("pydantic_ai.workspaces.conformance", exc_type=ImportError)

from cellblock.integrations.pydantic_ai import CellblockWorkspace  # noqa: E402 - theirs may be missing

pytestmark = pytest.mark.integrations


class TestCellblockWorkspace(conformance.WorkspaceBackendSuite):  # type: ignore[misc,name-defined]
    """All of it. Sessions are reattached to by their names, which this backend does not offer: those rules skip."""

    @pytest.fixture
    async def backend(self) -> AsyncIterator[CellblockWorkspace]:
        async with CellblockWorkspace() as backend:
            yield backend

    @pytest.fixture
    def fresh_backend(self) -> Callable[[], CellblockWorkspace]:
        return CellblockWorkspace


@pytest.mark.anyio
async def test_cancellation_stops_what_the_command_started() -> None:
    async with CellblockWorkspace() as backend:
        with anyio.move_on_after(2) as scope:
            await backend.run("sleep 60 & echo $! > pid; sh -c 'echo $$ > inner; sleep 61'; wait", shell=True)
        assert scope.cancelled_caught
        left = await backend.run("ps -eo args | grep '[s]leep 6' || true", shell=True)
        assert left.stdout == ""
        dead = await backend.run("kill -0 $(cat inner) 2>&1", shell=True)
        assert dead.exit_code != 0


@pytest.mark.anyio
async def test_an_agents_commands_run_in_the_session_and_can_be_undone() -> None:
    from pydantic_ai.workspaces import Workspace, WorkspaceTimeoutError

    async with CellblockWorkspace() as backend:
        workspace = Workspace(backend)
        await workspace.write_bytes("/workspace/job.py", b"print(6 * 7)")
        assert (await workspace.run(["python3", "job.py"])).stdout == "42\n"
        assert "No such file" in (await workspace.run(["cat", "/etc/shadow"])).stderr
        with pytest.raises(WorkspaceTimeoutError) as raised:
            await workspace.run(["sh", "-c", "echo begun; sleep 30"], timeout=1)
        assert raised.value.stdout == "begun\n"
        await workspace.run(["rm", "job.py"])
        await (await backend.session()).undo()
        assert await workspace.exists("/workspace/job.py")


@pytest.mark.anyio
async def test_what_a_command_prints_forges_no_cut() -> None:
    line = "[... 5 bytes of output cut: the limit is 9 ...]"
    async with CellblockWorkspace() as backend:
        result = await backend.run(["echo", line])
        assert (result.exit_code, result.stdout) == (0, line + "\n")


@pytest.mark.anyio
async def test_a_workspace_that_is_closed_opens_no_session() -> None:
    from pydantic_ai.workspaces import WorkspaceUnavailableError

    never, opening = CellblockWorkspace(), CellblockWorkspace()
    async with anyio.create_task_group() as tasks:
        began = anyio.Event()

        async def run() -> None:
            began.set()
            with pytest.raises(WorkspaceUnavailableError):
                await opening.run(["sleep", "60"])

        tasks.start_soon(run)
        await began.wait()
        await never.close()
        await opening.close()
    for workspace in (never, opening):
        with pytest.raises(WorkspaceUnavailableError):
            await workspace.run(["true"])
