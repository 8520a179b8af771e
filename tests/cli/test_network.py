"""`--network`, `--private` and `--private-path`, wherever the command line opens a session."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from page_server import PageServer, page_server

from cellblock.cli import main

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def server() -> Iterator[PageServer]:
    with page_server() as server:
        yield server


def _get(place: str) -> str:
    return f"import urllib.request\nprint(urllib.request.urlopen('http://{place}/').read())"


def test_run_reaches_what_is_listed(cellblock: Cellblock, server: PageServer) -> None:
    done = cellblock(
        "run", "--network", "example.com:443", "--network", server.place, "-", stdin=_get(server.place).encode()
    )
    assert (done.returncode, done.stdout, len(server.asked)) == (0, b"b'ok'\n", 1)


@pytest.mark.sampled(0)
def test_without_it_the_error_says_what_to_list(cellblock: Cellblock, server: PageServer) -> None:
    done = cellblock("run", "-", stdin=_get(server.place).encode())
    assert done.returncode == 1
    assert b"the session has no network" in done.stderr
    assert len(server.asked) == 0


@pytest.mark.sampled(0)
@pytest.mark.parametrize("option", [("--private",), ("--private-path", "pay*")])
def test_a_private_script_reaches_nobody(
    cellblock: Cellblock, server: PageServer, tmp_path: Path, option: tuple[str, ...]
) -> None:
    (tmp_path / "payroll.csv").write_text("1")
    words = ("run", "--network", server.place, *option, "--file", "payroll.csv", "-")
    done = cellblock(*words, stdin=_get(server.place).encode())
    assert (done.returncode, len(server.asked)) == (1, 0)
    assert b"the session is private" in done.stderr


@pytest.mark.sampled(0)
def test_the_repl_reaches_what_is_listed(cellblock: Cellblock, server: PageServer) -> None:
    done = cellblock("repl", "--network", server.place, stdin=f"{_get(server.place)}\n".encode())
    assert (done.returncode, done.stdout, len(server.asked)) == (0, b"b'ok'\n", 1)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("private", [False, True])
def test_a_document_reaches_what_is_listed_and_says_that_it_was_private(
    cellblock: Cellblock, server: PageServer, tmp_path: Path, private: bool
) -> None:
    cell = {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "source": _get(server.place),
        "outputs": [],
        "execution_count": None,
    }
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (tmp_path / "page.ipynb").write_text(json.dumps(document))
    words = ["notebook", "run", "--network", server.place, "--save", "out.ipynb", *(["--private"] if private else [])]
    done = cellblock(*words, "page.ipynb")
    assert (done.returncode, len(server.asked)) == ((1, 0) if private else (0, 1))
    made = json.loads((tmp_path / "out.ipynb").read_text())
    assert made["metadata"].get("cellblock") == ({"private": "opened as private"} if private else None)
    if private:
        cellblock(*words[:4], "--private", "--save", "out.html", "page.ipynb")
        assert "private data: opened as private" in (tmp_path / "out.html").read_text()


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "words", [("run", "-"), ("repl",), ("notebook", "run", "x.ipynb"), ("agent", "x", "--model", "m")]
)
def test_what_is_no_host_and_port_is_a_usage_error(
    cellblock: Cellblock, words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "x.ipynb").write_text('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}')
    key = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    done = cellblock(*words, "--network", "pypi.org", environment=key)
    assert done.returncode == 2
    assert b"--network: 'pypi.org' is not a destination: write it with its port, as \"pypi.org:443\"" in done.stderr


@pytest.mark.parametrize("words", [("run",), ("repl",), ("notebook", "run"), ("agent",)])
def test_help_tells_of_them(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "--network HOST:PORT" in told
    assert "as pypi.org:443; may be repeated" in told
    assert "--private " in told
    assert "--private-path PATTERN" in told
