"""The host never unpickles (X4): no code of its own can, and a pickle in any field of a message stays bytes or text."""

from __future__ import annotations

import ast
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cellblock
from cellblock import ExecutionLimits, Session, Versioned
from cellblock.session.tools import Toolbox
from cellblock.values.portable import MalformedValue, unpack
from cellblock.wire.codec import decode_event
from cellblock.wire.frames import Frame, ProtocolError
from cellblock.wire.messages import ToolCalled
from cellblock.wire.schema import EVENTS

PACKAGE = Path(cellblock.__file__).parent
INSIDE = PACKAGE / "worker"
READING = {
    "pickle": {"load", "loads", "Unpickler", "_Unpickler", "_load", "_loads"},
    "_pickle": {"load", "loads", "Unpickler"},
    **{name: {"*"} for name in ("cloudpickle", "copyreg", "dill", "jsonpickle", "joblib", "marshal", "shelve")},
    "multiprocessing": {"connection", "managers", "Queue", "Pipe"},
    "logging.config": {"*"},
    "numpy": {"load"},
    "pandas": {"read_pickle"},
    "torch": {"load"},
    "yaml": {"*"},
}
"""What rebuilds objects from bytes by calling what the bytes say, by the module it is found in."""


def readers(tree: ast.AST) -> Iterator[str]:
    """What a module imports, or takes of a module, that is named above."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if "*" in READING.get(name.name, ()) or name.name in ("_pickle",):
                    yield name.name
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for name in node.names:
                if READING.get(node.module, set()) & {"*", name.name}:
                    yield f"{node.module}.{name.name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in READING.get(node.value.id, ()):
                yield f"{node.value.id}.{node.attr}"
            if node.attr in ("read_pickle", "find_class", "__setstate__", "__reduce__"):
                yield node.attr
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            yield node.arg


HOST = sorted(
    path for path in PACKAGE.rglob("*.py") if INSIDE not in path.parents or INSIDE / "keeping" in path.parents
)
"""What runs on the host; of the worker's, what reads the names of local sessions."""


IN_MEMORY = {"guard/stdlib/copies.py": {"copyreg", "__setstate__"}}
"""Copies objects by the methods that pickle uses, too. Nothing of it is made of bytes."""


@pytest.mark.parametrize("path", HOST, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_of_the_host_can_unpickle(path: Path) -> None:
    allowed = IN_MEMORY.get(str(path.relative_to(PACKAGE)), set())
    assert set(readers(ast.parse(path.read_text()))) - allowed == set()


@pytest.mark.parametrize(
    "source",
    [
        "import pickle\npickle.loads(b'')",
        "from pickle import load",
        "import marshal",
        "from shelve import open",
        "import pandas\npandas.read_pickle('x')",
        "frames.read_pickle('x')",
        "import numpy\nnumpy.load('x', allow_pickle=True)",
    ],
)
def test_a_module_that_could_would_be_found(source: str) -> None:
    assert list(readers(ast.parse(source)))


def test_the_linter_refuses_it_too(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    root = Path(__file__).resolve().parents[1]
    lint = [sys.executable, "-m", "ruff", "check", "--config", str(root / "pyproject.toml"), "--output-format", "json"]
    source = "import pickle\nimport marshal\n\npickle.loads(b'')\nmarshal.loads(b'')\n"
    name = root / "src/cellblock/session/probe.py"
    done = subprocess.run([*lint, "--stdin-filename", str(name), "-"], input=source, capture_output=True, text=True)
    assert {"TID251", "S301"} <= {found["code"] for found in json.loads(done.stdout)}


def test_what_unpickles_inside_is_never_loaded_by_the_host() -> None:
    program = (
        "import sys\nfrom cellblock import Session\n"
        "with Session() as session:\n    session['x'] = [1]\n    session.run('x').value\n"
        "print('cellblock.worker.copies' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "False\n"


# ------------------------------------------------------------------------------- hostile pickles


_built: list[str] = []


def build(word: str) -> str:
    _built.append(word)
    return word


class Sly:
    def __reduce__(self) -> tuple[Callable[[str], str], tuple[str]]:
        return build, ("unpickled",)


PICKLES = [pickle.dumps(Sly(), protocol=protocol) for protocol in (0, 2, 5)]
_heard: list[str] = []
sys.addaudithook(lambda event, _: _heard.append(event) if event.startswith("pickle.") else None)


@pytest.fixture(autouse=True)
def nothing_is_unpickled() -> Iterator[None]:
    _heard.clear()
    _built.clear()
    yield
    assert (_built, _heard) == ([], [])


def test_unpickling_would_be_heard() -> None:
    assert pickle.loads(PICKLES[0]) == "unpickled"
    assert (_built, "pickle.find_class" in _heard) == (["unpickled"], True)
    _heard.clear()
    _built.clear()


FIELDS = [(cls.__name__, name) for cls, row in EVENTS.items() for name in row.fields]


@pytest.mark.parametrize("payload", PICKLES, ids=["text", "binary", "newest"])
@pytest.mark.parametrize(("cls", "name"), FIELDS, ids=str)
@pytest.mark.threat("W7")
def test_pickle_in_a_field_of_a_message_stays_what_it_is(cls: str, name: str, payload: bytes) -> None:
    """In the field itself, in lists, rows and objects, and in every buffer that comes along."""
    told = payload.decode("latin-1")
    plain = {"is": cls.lower(), **{one: 0 for kind, one in FIELDS if kind == cls}}
    for held in (
        told,
        [told],
        [[told]],
        {told: told},
        {"type": told, "message": told, "traceback": told, "kind": told},
    ):
        head = json.dumps({**plain, "is": _TAGS[cls], name: held}).encode()
        for frame in (Frame(head), Frame(head, (payload,)), Frame(payload, (payload,)), Frame(head, (payload,) * 3)):
            try:
                event = decode_event(frame)
            except ProtocolError:
                continue
            assert type(event).__name__ == cls


_TAGS = {cls.__name__: row.tag for cls, row in EVENTS.items()}


@pytest.mark.parametrize("payload", PICKLES, ids=["text", "binary", "newest"])
def test_pickle_as_a_value_or_as_arguments_is_malformed(payload: bytes) -> None:
    blob = payload.ljust(1024, b"\0")
    trees = [payload, json.dumps(payload.decode("latin-1")).encode(), json.dumps({"bytes": payload.hex()}).encode()]
    for tree in (*trees, b'{"bytes":0}', b'{"array":["|O",[1],0,false]}', b'{"object":0}', b'{"pickle":0}'):
        for buffers in ((tree,), (tree, blob), (tree, memoryview(bytearray(blob)))):
            try:
                value = unpack(buffers)
            except MalformedValue:
                pass
            else:
                assert type(value) in (str, bytes)
            with pytest.raises(ValueError, match="malformed arguments"):
                Toolbox().read(ToolCalled(call=1, request=1, name="f", mark=0, buffers=buffers), lambda: False)


def test_a_local_session_is_read_back_without_unpickling(tmp_path: Path) -> None:
    """Nothing is heard of a pickle, and a pickle that a name holds stays bytes."""
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("one", state=state, trust_level="local") as session:
        session["payload"] = PICKLES[-1]
        session.run("class P: pass\np = P(); p.held = [payload]\ndef f(): return p.held[0] == payload")
    with Session("one", state=state, trust_level="local") as session:
        assert session.run("payload, f()").value == (PICKLES[-1], True)


FORGING = """
import gc, pickle
class Sly:
    def __reduce__(self): return __import__, ("tests_unpickled",)
payload = pickle.dumps(Sly())
(channel,) = [one for one in gc.get_objects() if type(one).__name__ == "Channel"]
found = type(channel).receive.__globals__["decode_request"].__globals__
Finished, Display, ToolCalled = found["Finished"], found["Display"], found["ToolCalled"]
"""


@pytest.mark.threat("W7")
@pytest.mark.parametrize(
    "speech",
    [
        "Display(data={'text/plain': payload.decode('latin-1')}, mimes=('image/png',), buffers=(payload,),"
        " is_result=True, mark=0)",
        "Display(data={payload.decode('latin-1'): [payload.decode('latin-1')]}, mimes=(), is_result=True, mark=0)",
        "ToolCalled(call=1, request=1, name=payload.decode('latin-1'), mark=0, buffers=(payload, payload))",
        "Finished(number=2, failure=None, duration_ms=0, cpu_ms=0, memory_peak=0, buffers=(payload, payload))",
        "Finished(number=2, failure=None, duration_ms=0, cpu_ms=0, memory_peak=0,"
        " gained={payload.decode('latin-1'): payload.decode('latin-1')}, dropped=(payload.decode('latin-1'),))",
    ],
    ids=["display", "bundle", "call", "value", "names"],
)
def test_pickle_that_a_worker_says_is_never_read(speech: str) -> None:
    limits = ExecutionLimits(timeout_seconds=3, interrupt_grace_seconds=0.2)
    with Session(limits=limits, tools=[build]) as session:
        assert session.run(FORGING).ok
        cell = session.run(
            f"import os\nprint(payload)\nopen('f', 'wb').write(payload)\nchannel.send({speech})\n"
            "os.write(1, payload)\npayload"
        )
        for look in (
            lambda: cell.value,
            lambda: cell.text,
            lambda: session["payload"],
            lambda: session.files.read("f"),
        ):
            try:
                look()
            except (KeyError, cellblock.CellblockError):
                continue
        session.notebook.to_ipynb()
        session.notebook.to_html()
    assert "tests_unpickled" not in sys.modules
