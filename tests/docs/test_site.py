"""The site of `make docs` has every page of docs/ in its navigation, and the architecture names modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INSIDE = [DOCS / "architecture.md", *sorted((DOCS / "internals").glob("*.md"))]
MADE = {"reference.md"}
"""Pages that the build makes."""


def test_navigation_of_the_site_holds_every_page_once() -> None:
    _, nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")
    named = re.findall(r"\S+\.md$", nav, re.M)
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert len(named) == len(set(named))
    assert pages <= set(named)
    assert all((ROOT / name).is_file() for name in set(named) - pages - MADE)


@pytest.mark.parametrize("page", INSIDE, ids=lambda page: page.stem)
def test_modules_that_the_architecture_names_exist(page: Path) -> None:
    sources = [path for place in ("src/cellblock", "attacks/src", "tests") for path in (ROOT / place).rglob("*.py")]
    paths = ["/" + path.relative_to(ROOT).as_posix() for path in sources]
    named = set(re.findall(r"(?<![\w/*])[\w./]*\w\.py\b", page.read_text(encoding="utf-8")))
    assert sorted(name for name in named if not any(path.endswith("/" + name) for path in paths)) == []


@pytest.mark.parametrize(("name", "most"), [("README.md", 120), ("AGENTS.md", 60), ("docs/architecture.md", 249)])
def test_page_that_is_read_first_stays_short(name: str, most: int) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= most
