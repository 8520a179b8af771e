"""The documents do what they say: their Python and console blocks are run, their output compared, their links followed.

Conventions in the pages:

- A `python` block is executed; the blocks of a page share one namespace, in order, but each of the README and of the
  quickstart has its own.
  What it prints is compared with its `#>` lines, and with a `text` block that follows it directly. `...` stands for
  anything within a line, and for any lines when it is a line of its own.
- `<!-- file: NAME -->` before a block: it is written to that file instead, for the console blocks after it.
- A `console` block of `cellblock` commands is executed, with a last line `[exit status N]` where N is not 0. Blocks
  with any other program are not. Lines that begin with `>>>` or `...` and follow a command are what is typed into it.
- `<!-- needs: containers -->` before a block: it is run by `make containers` alone.
- `<!-- not run: REASON -->` before a block: it is only shown.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import cellblock

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
ALONE = [README, ROOT / "docs/quickstart.md"]
"""Pages whose examples run each by itself."""
OTHERS = [ROOT / name for name in ("AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")]
PAGES = [README, *OTHERS, *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>file|needs|not run): (?P<word>.*?) -->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.M | re.S
)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
_COMMANDS = ("cellblock ", "echo ", "printf ", "cat ")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    kind: str
    body: str
    line: int
    mark: str
    word: str
    follows: bool
    """Whether nothing but blank lines is between it and the block before."""


def blocks(page: Path) -> list[Block]:
    """Every fenced block, in order."""
    text = page.read_text(encoding="utf-8")
    found, end = [], 0
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("kind")) + 2
        follows = bool(found) and not text[end : match.start()].strip()
        mark, word = match["mark"] or "", match["word"] or ""
        found.append(Block(match["kind"], match["body"], line, mark, word, follows))
        end = match.end()
    return found


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def needs_containers(block: Block) -> bool:
    return (block.mark, block.word) == ("needs", "containers")


@pytest.mark.sampled(8)
@pytest.mark.hostile
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_blocks_of_the_page_give_the_output_that_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(page, tmp_path, engine=False)


@pytest.mark.containers
@pytest.mark.parametrize("page", [page for page in PAGES if any(map(needs_containers, blocks(page)))], ids=named)
def test_blocks_that_need_containers_give_the_output_that_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(page, tmp_path, engine=True)


def check(page: Path, directory: Path, *, engine: bool) -> None:
    """Compare what a page's blocks print with what it shows."""
    namespace: dict[str, object] = {"__name__": "__docs__"}
    try:
        for shown, printed, line in runs(page, directory, namespace, engine=engine):
            assert matches(shown, printed), difference(f"{named(page)}:{line}", shown, printed)
    finally:
        for value in namespace.values():  # a page that failed half way has not closed its own
            if isinstance(value, cellblock.Session):
                value.close()


def runs(
    page: Path, directory: Path, namespace: dict[str, object], *, engine: bool
) -> Iterator[tuple[list[str], list[str], int]]:
    """Run a page's blocks in order: of each what is shown, what was printed, and its line. Those that
    need an engine are run where there is one."""
    found = blocks(page)
    for number, block in enumerate(found):
        if block.mark == "not run" or (needs_containers(block) and not engine):
            continue
        if block.mark == "file":
            (directory / block.word).write_text(block.body, encoding="utf-8")
        elif block.kind == "python":
            if page in ALONE:
                namespace.clear()
                namespace["__name__"] = "__docs__"
            shown = [line.strip()[3:] for line in block.body.splitlines() if line.strip().startswith("#>")]
            after = found[number + 1] if number + 1 < len(found) else None
            if after is not None and after.kind == "text" and after.follows:
                shown += after.body.splitlines()
            yield shown, run_python(block, page, namespace), block.line
        elif block.kind == "console" and all(map(is_runnable, commands(block))):
            yield printed_lines(block), run_console(block, directory), block.line


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> list[str]:
    """Execute a block, numbered as in its page; the lines it printed."""
    tree = ast.parse("\n" * (block.line - 1) + block.body, str(page))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, str(page), "exec", dont_inherit=True), namespace)
    return printed.getvalue().splitlines()


def commands(block: Block) -> list[str]:
    return [line[2:] for line in block.body.splitlines() if line.startswith("$ ")]


def printed_lines(block: Block) -> list[str]:
    """What a console block shows besides the commands and what is typed into them."""
    return [line for line, typed in _console_lines(block) if typed is None and not line.startswith("$ ")]


def typed_into(block: Block) -> list[str]:
    """For each command of a block what is typed into it."""
    found: list[str] = []
    for line, typed in _console_lines(block):
        if line.startswith("$ "):
            found.append("")
        elif typed is not None:
            found[-1] += typed + "\n"
    return found


def _console_lines(block: Block) -> Iterator[tuple[str, str | None]]:
    """Each line, with what is typed in it. `...` alone is an empty line where one that is typed comes before it."""
    typing = False
    for line in block.body.splitlines():
        typing = line.startswith((">>> ", "... ")) or (typing and line == "...")
        yield line, line[4:] if typing else None


def is_runnable(command: str) -> bool:
    return command.startswith(_COMMANDS)


def run_console(block: Block, directory: Path) -> list[str]:
    """Run the commands of a block one after the other; the lines they printed, stderr included."""
    bin_ = directory / ".bin"
    bin_.mkdir(exist_ok=True)
    shim = bin_ / "cellblock"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cellblock "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    package = Path(cellblock.__file__).parents[1]  # a relative PYTHONPATH would lead nowhere from here
    environment = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "PYTHONPATH": str(package)}
    printed: list[str] = []
    for command, typed in zip(commands(block), typed_into(block), strict=True):
        done = subprocess.run(
            ["/bin/sh", "-c", command], input=typed, cwd=directory, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if typed else subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
        printed += (done.stdout + (done.stderr or "")).splitlines()
        if done.returncode:
            printed.append(f"[exit status {done.returncode}]")
    return printed


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines are those shown, where `...` is anything."""
    pattern = ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r"[^\n]*".join(map(re.escape, line.rstrip().split("..."))) + r"[ \t]*\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def difference(where: str, shown: list[str], printed: list[str]) -> str:
    return "\n".join([where, "shown:", *shown, "", "printed:", *printed])


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_relative_links_of_the_page_resolve(page: Path) -> None:
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for target, anchor in _LINK.findall(text):
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor[1:] not in anchors(path)):
            broken.append(target + anchor)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ +(.*?) *$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        ([], ["a"], False),
        (["a"], [], False),
        (["a ... c"], ["a b c"], True),
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a", "...", "c"], ["a", "c"], True),
        (["a", "...", "c"], ["a", "d"], False),
        (["x.y"], ["xzy"], False),
    ],
)
def test_output_that_differs_from_what_is_shown_is_told(shown: list[str], printed: list[str], same: bool) -> None:
    assert matches(shown, printed) is same


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_of_the_page_is_of_a_known_kind(page: Path) -> None:
    assert {block.kind for block in blocks(page)} <= {"python", "console", "text", ""}


def test_the_quickstart_names_the_methods_of_an_async_session_that_are_no_coroutines() -> None:
    text = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    told = re.search(r"They are coroutines, but for (.*?) plain calls,\s(.*?) asynchronous iterator", text, re.S)
    assert told is not None
    named = [re.findall(r"`(\w+)`", part) for part in told.groups()]
    methods = dict(inspect.getmembers(cellblock.AsyncSession, inspect.isfunction))
    others = [name for name, one in methods.items() if name[0] != "_" and not inspect.iscoroutinefunction(one)]
    iterators = [name for name in others if inspect.isasyncgenfunction(methods[name])]
    assert named == [[name for name in others if name not in iterators], iterators]
    same = {name for name, _ in inspect.getmembers(cellblock.Session, inspect.isfunction) if name[0] != "_"}
    assert same <= set(methods)
