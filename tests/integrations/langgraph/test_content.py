"""Which block of a message is for which of its calls, and how a state merges what is pending."""

from __future__ import annotations

import pytest
from scripted_chat import says

from cellblock.integrations.langgraph import Threads, create_sandbox_tools
from cellblock.integrations.langgraph.content import (
    content_for,
    contents,
    merge_files,
    merge_pending,
    message_text,
    misfit,
    taken,
)


def _call(name: str, id: str, path: str = "") -> dict[str, object]:
    return {"name": name, "id": id, "args": {"file_path": path, "description": ""}}


def _run(id: str, path: str = "/tmp/a.py") -> dict[str, object]:
    return _call("python_run_prepared", id, path)


def _write(id: str, path: str) -> dict[str, object]:
    return _call("file_write", id, path)


CASES = {
    "one for one": ("```python\nx\n```", [_run("1")], {"1": "x"}),
    "any tag": ("```weird\nx\n```", [_run("1")], {"1": "x"}),
    "no tag": ("```\nx\n```", [_write("1", "a.csv")], {"1": "x"}),
    "in their order": ("```\na\n```\n```\nb\n```", [_write("1", "a"), _write("2", "b")], {"1": "a", "2": "b"}),
    "in their order, of one kind": (
        "```python\na\n```\n```python\nb\n```", [_run("1"), _run("2")], {"1": "a", "2": "b"}),
    "in their order, where the first does not fit": (
        "```python\na\n```\n```python\nb\n```", [_write("1", "a.txt"), _run("2")], {"1": "a", "2": "b"}),
    "as the tags say": (
        "```csv\na\n```\n```python\nb\n```", [_run("1"), _write("2", "d/a.CSV")], {"1": "b", "2": "a"}),
    "not the one of the shell": ("```bash\npip\n```\n```python\nx\n```", [_run("1")], {"1": "x"}),
    "the first of those that fit": ("```python\nx\n```\n```python\ny\n```", [_run("1")], {"1": "x"}),
    "other calls have none": ("```python\nx\n```", [_call("file_read", "0", "b"), _run("1")], {"1": "x"}),
    "too few": ("```python\nx\n```", [_run("1"), _run("2")], {"1": "x"}),
    "cut off": ("```python\nx = 1\ny =", [_run("1")], {}),
    "none": ("I shall write it", [_run("1")], {}),
    "no call": ("```python\nx\n```", [], {}),
    "many": (
        "\n".join(f"```\n{n}\n```" for n in range(9)), [_write(str(n), f"{n}.x") for n in range(9)],
        {str(n): str(n) for n in range(9)}),
    "content of blocks": (
        [{"type": "reasoning", "text": "```\nno\n```"}, {"type": "text", "text": "So:"},
         {"type": "text", "text": "```python\nx\n```"}, {"type": "tool_use", "id": "1"}], [_run("1")], {"1": "x"}),
    "content of texts": (["So:", "```python\nx\n```"], [_run("1")], {"1": "x"}),
}  # fmt: skip


@pytest.mark.parametrize(("content", "calls", "wanted"), CASES.values(), ids=CASES)
def test_each_call_has_its_block(content: object, calls: list[dict[str, object]], wanted: dict[str, str]) -> None:
    assert contents(says(content, *calls)) == wanted


def test_what_is_no_message_has_no_content() -> None:
    assert contents(None) == {}
    assert message_text(None) == ""


def test_pending_content_is_kept_by_call() -> None:
    assert merge_pending("", {"1": "a"}) == {"1": "a"}
    assert merge_pending({"1": "a"}, {"2": "b"}) == {"1": "a", "2": "b"}
    assert merge_pending({"1": "a", "2": "b"}, {"1": None}) == {"2": "b"}
    assert merge_pending({"1": "a"}, "") == {}
    assert merge_pending(None, "x") == {"": "x"}
    assert content_for({"": "x"}, "7") == content_for("x", "7") == "x"
    assert (content_for({"1": "a"}, "7"), content_for(None, "7"), content_for("", "7")) == ("", "", "")
    assert taken({"1": "a", "2": "b"}, "1") == {"1": None}
    assert taken("x", "1") == ""


def test_files_are_named_once() -> None:
    assert merge_files(["a", "b"], ["b", "c", "c"]) == ["a", "b", "c"]
    assert merge_files(None, None) == []


@pytest.mark.parametrize("odd", [5, ["x"], {"a": 1}, 2.5], ids=repr)
def test_what_an_edited_checkpoint_has_in_place_of_text_is_named(odd: object, caplog: pytest.LogCaptureFixture) -> None:
    kind = type(odd).__name__
    for pending in ({"1": odd}, {"": odd}):
        assert (content_for(pending, "1"), misfit(pending, "1")) == ("", kind)
    assert [misfit(pending, "1") for pending in (None, "", "x", {}, {"1": "x"}, {"2": odd})] == [""] * 6
    assert merge_files(["a", odd], ["b"]) == ["a", "b"]
    assert merge_files(["a"], odd if not isinstance(odd, list) else [odd]) == ["a"]
    assert [kind in record.message for record in caplog.records] == [True, True]


@pytest.mark.parametrize("odd", [5, ["x"]], ids=repr)
def test_model_is_told_of_content_that_is_no_text(odd: object, url: str) -> None:
    threads = Threads(url)
    (tool,) = create_sandbox_tools(threads, include_tools=["python_run_prepared"])
    given = {"file_path": "a.py", "_state": {"pending_content": {"1": odd}}, "tool_call_id": "1"}
    answer = tool.invoke(given, {"configurable": {"thread_id": "t"}})
    assert answer.update["messages"][0].content == (
        f"Error: The graph's state has {type(odd).__name__} in place of the content of this call, which is no text. "
        "An edit of its checkpoint put it there: write the content again, and call the tool again."
    )
    assert (threads.open, answer.update["pending_content"]) == (0, "")
