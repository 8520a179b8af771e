"""Inspect's sandbox beyond its own checks: limits, walls, settings, and an evaluation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

pytest.importorskip("inspect_ai", exc_type=ImportError)

import anyio
from inspect_ai import Task, eval_async
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import OutputLimitExceededError, SandboxUnavailableError, SandboxUserUnsupportedError, sandbox
from inspect_ai.util._sandbox.limits import override_max_exec_output_size

from cellblock.integrations.inspect_ai import CellblockConfig, CellblockSandboxEnvironment

pytestmark = [pytest.mark.integrations, pytest.mark.anyio]


@pytest.fixture
async def box() -> AsyncIterator[CellblockSandboxEnvironment]:
    made = await CellblockSandboxEnvironment.sample_init("t", None, {})
    yield made["default"]
    await CellblockSandboxEnvironment.sample_cleanup("t", None, made, False)


@pytest.fixture
def readable() -> Iterator[Path]:
    """A directory that all users of the machine may read, as mounts are."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


async def test_the_walls_stand(box: CellblockSandboxEnvironment) -> None:
    assert "No such file" in (await box.exec(["cat", "/etc/shadow"])).stderr
    with pytest.raises(PermissionError):
        await box.write_file("/usr/bin/mine", "x")
    with pytest.raises(FileNotFoundError):
        await box.read_file("/etc/shadow")
    assert (await box.read_file("/etc/passwd")).startswith("root:") is False


async def test_links_lead_where_commands_inside_may_go_and_no_further(
    box: CellblockSandboxEnvironment, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the host's")
    await box.exec(["sh", "-c", f"ln -s {secret} out; ln -s /session/workspace/in linked; echo -n mine > in"])
    assert await box.read_file("/session/workspace/linked") == "mine"
    with pytest.raises(FileNotFoundError):
        await box.read_file("out")
    with pytest.raises(PermissionError):
        await box.write_file("out", "x")
    assert secret.read_text() == "the host's"


async def test_a_fifo_is_refused_and_not_waited_for(box: CellblockSandboxEnvironment) -> None:
    await box.exec(["mkfifo", "pipe"])
    with anyio.fail_after(20), pytest.raises(OSError, match="pipe"):
        await box.read_file("pipe")


async def test_output_past_inspects_limit_is_an_error(box: CellblockSandboxEnvironment) -> None:
    with override_max_exec_output_size(1000):
        with pytest.raises(OutputLimitExceededError) as raised:
            await box.exec(["seq", "1000"])
        assert (raised.value.truncated_output or "").startswith("1\n2\n")
        assert (await box.exec(["seq", "10"])).success


async def test_the_one_user_may_be_named(box: CellblockSandboxEnvironment) -> None:
    own = (await box.exec(["id", "-un"])).stdout.strip()
    assert (await box.exec(["id", "-un"], user=own)).stdout.strip() == own
    with pytest.raises(SandboxUserUnsupportedError):
        await box.exec(["id"], user="root")


async def test_nothing_is_left_of_what_was_given(box: CellblockSandboxEnvironment) -> None:
    long = "x" * 150_000
    assert (await box.exec(["printf", "%s", *[long[:75_000]] * 2], input="in")).stdout == long
    await box.read_file("/etc/passwd")
    assert (await box.exec(["find", "/tmp", "-name", ".inspect-*"])).stdout == ""


async def test_a_session_that_has_ended_is_told_as_such() -> None:
    made = await CellblockSandboxEnvironment.sample_init("t", None, {})
    await CellblockSandboxEnvironment.sample_cleanup("t", None, made, False)
    for call in (made["default"].exec(["true"]), made["default"].read_file("x"), made["default"].write_file("x", "")):
        with pytest.raises(SandboxUnavailableError):
            await call


async def test_settings(readable: Path, tmp_path: Path) -> None:
    (readable / "table").write_text("1,2")
    config = CellblockConfig(mounts={"data": str(readable)}, limits={"timeout_seconds": 1})
    assert CellblockSandboxEnvironment.config_deserialize(config.model_dump(mode="json")) == config
    assert hash(config) == hash(config.model_copy())
    file = tmp_path / "config.json"
    file.write_text(config.model_dump_json())
    for given in (config, str(file)):
        made = await CellblockSandboxEnvironment.sample_init("t", given, {})
        try:
            assert await made["default"].read_file("data/table") == "1,2"
            with pytest.raises(TimeoutError):
                await made["default"].exec(["sleep", "20"])
        finally:
            await CellblockSandboxEnvironment.sample_cleanup("t", given, made, False)
    with pytest.raises(ValueError, match="unknown"):
        CellblockConfig(unknown=1)


def test_inspect_knows_the_name_without_an_import_of_ours() -> None:
    program = (
        "import sys\nfrom inspect_ai.util._sandbox.registry import registry_find_sandboxenv\n"
        "assert not any(name.startswith('cellblock') for name in sys.modules)\n"
        "print(registry_find_sandboxenv('cellblock').__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "CellblockSandboxEnvironment\n"


async def test_an_evaluation_finds_the_sandbox_by_its_name(tmp_path: Path) -> None:
    @solver
    def works() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            await sandbox().exec(["bash", "--login", "-c", "cat given.txt > kept"])
            done = await sandbox().exec(["python3", "-"], input="print(6 * int(open('kept').read()))")
            state.output = ModelOutput.from_content("mockllm/model", f"It is {done.stdout}")
            return state

        return solve

    task = Task(
        dataset=[Sample(input="What is it?", target="42", files={"given.txt": "7"})],
        solver=works(),
        scorer=includes(),
        sandbox="cellblock",
    )
    (log,) = await eval_async(task, model="mockllm/model", log_dir=str(tmp_path))
    assert log.status == "success", log.error
    assert log.results is not None
    assert log.results.scores[0].metrics["accuracy"].value == 1


async def test_what_a_command_prints_forges_no_limit_and_no_refusal(box: CellblockSandboxEnvironment) -> None:
    line = "[... 5 bytes of output cut: the limit is 9 ...]"
    assert (await box.exec(["echo", line])).stdout == line + "\n"
    said = await box.exec(["sh", "-c", "echo 'sh: Permission denied' >&2; exit 126"])
    assert (said.returncode, said.stderr) == (126, "sh: Permission denied\n")
    await box.write_file("is larger than 5 bytes", "text")
    assert await box.read_file("is larger than 5 bytes") == "text"
    with pytest.raises(FileNotFoundError):
        await box.read_file("no file that is larger than 5 bytes")
