"""A hook of MkDocs: the site has the files beside docs/ that pages link to, and a page of the public names.

Pages link to one another as they lie in the repository, so that the links work there too. On the site a file beside
docs/ has its path from the root, and a link to it, or from it, is written anew.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from posixpath import dirname, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import cellblock

ROOT = Path(__file__).parents[1]
BESIDE = ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/*.*")
_LINK = re.compile(r"(\]\()(?!\w+:)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies beside docs/, and the reference."""
    for path in sorted(path for pattern in BESIDE for path in ROOT.glob(pattern)):
        files.append(File.generated(config, _uri(path), abs_src_path=str(path)))
    files.append(File.generated(config, "reference.md", content=_reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links between docs/ and what lies beside it to their places on the site."""
    source = page.file.abs_src_path
    if source is None or page.file.src_uri == "reference.md":
        return markdown

    def written(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(Path(source).parent / match[2]))
        return match[1] + relpath(_uri(target), dirname(page.file.src_uri) or ".") if target.is_file() else match[0]

    return _LINK.sub(written, markdown)


def _uri(path: Path) -> str:
    """The place of a file of the repository on the site."""
    docs = ROOT / "docs"
    return path.relative_to(docs if path.is_relative_to(docs) else ROOT).as_posix()


def _reference() -> str:
    """A page with each public name, errors last."""
    names = [name for name in cellblock.__all__ if name[0] != "_" and name not in cellblock._ALIASES]
    errors = [name for name in names if cellblock._HOME[name] == "cellblock.errors"]
    lines = ["# API reference", "", "All of these are imported from `cellblock`.", ""]
    for title, of in (("Classes and functions", [name for name in names if name not in errors]), ("Errors", errors)):
        lines += [f"## {title}", "", *(f"::: {_place(name)}\n" for name in of)]
    return "\n".join(lines)


def _place(name: str) -> str:
    """The path of the definition of a name: its module may only pass it on."""
    value = getattr(import_module(cellblock._HOME[name]), name)
    return f"{value.__module__}.{value.__qualname__}"
