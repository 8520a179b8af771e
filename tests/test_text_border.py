"""The check of `make lint` that values from inside or from a model are written as text by one module: it can fail."""

from __future__ import annotations

import runpy
import textwrap
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "tools" / "text_border.py"

SOURCE = """\
    import json
    from typing import Any

    def face(value: object, anything: Any, error: Exception, text: str, number: int, known: KeyError) -> None:
        str(value)  # found
        repr(anything)  # found
        f"{value}"  # found
        f"a {text} {anything!r:>20} b"  # found
        f"{error}"  # found
        format(value, "")  # found
        "{}".format(anything)  # found
        print(*map(str, [value]))  # found
        json.dumps(text)  # found
        json.loads(text)  # found
        f"{text} {number:,} {known} {len(text)}"
        str(number), repr(text), ", ".join(map(str, [1, 2]))
"""


def found_in(folder: Path, module: str, source: str = SOURCE) -> list[int]:
    """The lines of a source that the check refuses in a module."""
    path = folder / "src" / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))
    settings = folder / "mypy.ini"
    settings.write_text(f"[mypy]\nplugins = {PLUGIN}\nmypy_path = {folder / 'src'}\n")
    options = ["--config-file", str(settings), "--cache-dir", str(folder / "cache"), "--no-error-summary"]
    out, err, _ = api.run([*options, "--namespace-packages", "--explicit-package-bases", str(path)])
    assert not err
    rows = [row.split(":") for row in out.splitlines() if "cellblock.text" in row]
    return sorted({int(number) for _, number, *_ in rows})


@pytest.mark.sampled(0)
def test_values_of_unknown_type_are_found_where_they_are_written(tmp_path: Path) -> None:
    wanted = [number for number, row in enumerate(SOURCE.splitlines(), 1) if "# found" in row]
    assert found_in(tmp_path, "cellblock/agent/probe.py") == wanted


@pytest.mark.sampled(0)
@pytest.mark.parametrize("module", ["cellblock/values/probe.py", "cellblock/cli/demo.py"])
def test_modules_that_face_nothing_are_left_alone(tmp_path: Path, module: str) -> None:
    assert found_in(tmp_path, module) == []


@pytest.mark.sampled(0)
def test_references_of_html_are_read_in_one_module_alone(tmp_path: Path) -> None:
    source = "from html import unescape\nunescape('&lt;')\n"
    assert found_in(tmp_path, "cellblock/session/markup.py", source) == [2]
    assert found_in(tmp_path, "cellblock/text.py", source) == []


def test_every_module_of_the_table_is_there() -> None:
    table = runpy.run_path(str(PLUGIN))
    sources = (ROOT / "src", ROOT / "attacks" / "src")
    named = [*table["FACING"], *table["EXEMPT"]]
    missing = [one for one in named if not any((source / one).exists() for source in sources)]
    assert missing == []


def test_lint_uses_the_check() -> None:
    assert f'plugins = ["tools/{PLUGIN.name}"]' in (ROOT / "pyproject.toml").read_text()
