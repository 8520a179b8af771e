"""What is expected to fail of the published suites, and why: strict, so that a release that mends one is noticed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

_OF_0_6 = {
    "test_glob", "test_glob_basic_pattern", "test_glob_with_directories", "test_glob_hidden_files_explicitly",
    "test_glob_with_character_class", "test_glob_with_question_mark", "test_write_existing_file_fails",
}  # fmt: skip
"""langchain-tests 1.1 expects what deepagents 0.6 did: relative paths of a glob, no writing over a file."""


_ONE_AT_A_TIME = "test_cancellation_stops_foreground_work"
"""It looks into the workspace while a command runs, and a session runs one at a time: we try the rule ourselves."""


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"  # the only event loop that a session runs on


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name.startswith(_ONE_AT_A_TIME):
            item.add_marker(pytest.mark.xfail(strict=True, reason="a session runs one command at a time"))
    try:
        changed = not version("deepagents").startswith("0.6.")
    except PackageNotFoundError:
        return
    for item in items:
        if changed and "TestCellblockSandbox" in item.nodeid and item.name in _OF_0_6:
            reason = "langchain-tests expects what deepagents did before 0.7: langchain issues 39948, 40283"
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason))
