"""`cellblock agent`: the answer on stdout, the run on stderr, a notebook, a log; the model's server is on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from family_tree import below, soon
from model_server import Answer, Failure, ModelServer

from cellblock import ExecutionLimits
from cellblock.agent.replay import replay
from cellblock.observe.log import read_log

pytestmark = pytest.mark.hostile

Asking = Callable[..., "subprocess.CompletedProcess[str]"]


def fence(code: str) -> Answer:
    return Answer(f"I look.\n\n```python\n{code}\n```")


def environment(server: ModelServer | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(("OPENAI", "CELLBLOCK_M"))}
    kept = {name: value for name, value in kept.items() if not name.upper().endswith("_PROXY")}
    return kept if server is None else {**kept, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": server.key}


@pytest.fixture
def ask(tmp_path: Path) -> Asking:
    """Runs `cellblock agent` against a server that answers what it is given."""
    pytest.importorskip("openai")

    def run(*words: str, script: tuple[Answer | Failure, ...] = ()) -> subprocess.CompletedProcess[str]:
        with ModelServer(script) as server:
            return subprocess.run(
                [sys.executable, "-W", "error", "-m", "cellblock", "agent", *words, "--model", "small"],
                capture_output=True, text=True, cwd=tmp_path, timeout=60, env=environment(server), check=False,
            )  # fmt: skip

    return run


def test_answer_is_on_stdout_and_the_run_on_stderr(ask: Asking, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("a,b\n1,2\n3,4\n")
    done = ask(
        "What is the sum of a?", "--file", "sales.csv", "--save", "run.html", "--log", "run.jsonl", "--verify",
        script=(
            fence("import csv\nrows = list(csv.DictReader(open('sales.csv')))\nprint(rows[0])"),
            fence("final_answer(sum(int(row['a']) for row in rows))"),
            fence("assert sum([1, 3]) == 4"),
        ),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "4\n")
    assert "── step 1 of 10 ─" in done.stderr
    assert "  │ {'a': '1', 'b': '2'}\n  ✓ ran" in done.stderr
    assert "cellblock: 3 steps, " in done.stderr
    assert done.stderr.endswith("45 tokens; verified: cell 3 checked it\n")
    assert "DictReader" in (tmp_path / "run.html").read_text()
    assert replay(tmp_path / "run.jsonl").differences == []


@pytest.mark.sampled(0)
def test_whole_result_is_json_and_quiet_says_nothing(ask: Asking) -> None:
    done = ask("one", "-q", "--json", script=(fence("1/0"), fence("final_answer({1: (2, 'x')}, verified_by='eyes')")))
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (told["answered"], told["value"], told["verified_by"]) == (True, {"1": [2, "x"]}, "eyes")
    assert [(step["ok"], step["decision"]) for step in told["steps"]] == [(False, ""), (True, "answered")]
    assert told["failed_approaches"] == ["1/0 -> ZeroDivisionError: division by zero"]
    assert told["tokens"]["input"] == 20


@pytest.mark.sampled(0)
def test_local_level_has_no_process_and_no_files(ask: Asking) -> None:
    done = ask("one", "--trust-level", "local", "-q", script=(fence("final_answer('tea\\x1b[2J')"),))
    assert (done.returncode, done.stdout) == (0, "tea\x1b[2J\n")
    done = ask("one", "--trust-level", "local", "--preload", "json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--preload is for --trust-level isolated" in done.stderr


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        ((fence("task_fail('no data')"),), [], "the agent says that the task cannot be done: no data"),
        ((fence("1"), fence("2")), ["--max-steps", "2"], "no answer within 2 steps (--max-steps N allows more)"),
        ((Failure(400, "bad request"),), [], "bad request"),
    ],
)
def test_what_gives_no_answer_is_exit_status_1(
    ask: Asking, tmp_path: Path, script: tuple[Answer | Failure, ...], words: list[str], said: str
) -> None:
    done = ask("one", *words, "--log", "run.jsonl", "--save", "run.ipynb", script=script)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr.splitlines()[-1]
    assert read_log(tmp_path / "run.jsonl")[-1]["event"] == "end"
    assert json.loads((tmp_path / "run.ipynb").read_text())["nbformat"] == 4
    assert json.loads(ask("one", *words, "--json", "-q", script=script).stdout)["answered"] is False


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["one"], "no model was named: give --model NAME or set CELLBLOCK_MODEL"),
        (["one"], "OPENAI_BASE_URL=http://localhost:11434/v1"),
        (["one", "--model", "gpt"], "there is no key for the model 'gpt' of OpenAI (set OPENAI_API_KEY"),
        ([" ", "--model", "gpt"], "the question is empty"),
        (["one", "--max-steps", "0"], "'0' is not a whole number from 1 to 1000"),
        (["one", "--model", "gpt", "--file", "none"], "--file 'none': 'none' does not exist"),
        (["one", "--model", "gpt", "--save", "run.pdf"], "ends neither in .ipynb nor in .html"),
        (["one", "--model", "gpt", "--save", "none/run.html"], "there is no directory 'none'"),
    ],
)
def test_what_cannot_be_asked_is_exit_status_2(tmp_path: Path, words: list[str], said: str) -> None:
    pytest.importorskip("openai")
    server = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"} if {"--file", "--save"} & {*words} else {}
    done = subprocess.run(
        [sys.executable, "-m", "cellblock", "agent", *words],
        capture_output=True, text=True, cwd=tmp_path, timeout=60, env=environment(None) | server, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled(0)
def test_log_that_is_there_is_not_overwritten(ask: Asking, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text("mine")
    done = ask("one", "--log", "run.jsonl")
    assert done.returncode == 2
    assert "there is a log at run.jsonl already" in done.stderr
    assert (tmp_path / "run.jsonl").read_text() == "mine"


@pytest.mark.sampled(0)
def test_ctrl_c_ends_the_cell_and_leaves_a_log_and_no_process(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    script = (fence("x = 1"), fence("print('began', flush=True)\nwhile True: pass"))
    on_ctrl_c = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program = on_ctrl_c + "import sys; from cellblock.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["agent", "loop", "--model", "small", "--log", "run.jsonl", "--timeout", "60"]
    with ModelServer(script) as server:
        with subprocess.Popen(
            [sys.executable, "-c", program, *words],
            stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment(server),
        ) as process:  # fmt: skip
            assert process.stderr is not None
            while "│ began" not in process.stderr.readline():
                assert process.poll() is None
            inside = {one.pid for one in below(process.pid)}
            assert len(inside) > 3
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stderr.read().splitlines()[-1] == "cellblock: interrupted"
    assert soon(lambda: [pid for pid in inside if Path(f"/proc/{pid}").exists()], []) == []
    events = read_log(tmp_path / "run.jsonl")
    assert [one["event"] for one in events] == ["run", "begin", "reply", "cell", "reply", "end"]
    assert events[-1]["reason"] == "interrupted"
    done = replay(tmp_path / "run.jsonl", limits=ExecutionLimits(timeout_seconds=60))
    assert (done.same, done.notes) == (True, ["step 2 had not ended: not replayed"])
