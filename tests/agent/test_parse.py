"""Of every kind of reply that code which is in it is found, and of the others what the model is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellblock.agent.parse import Code, NoCode, read
from cellblock.models import Reply, ToolRequest

_F = "```"


def reply(text: str, **options: object) -> Reply:
    return Reply(text=text, **options)  # type: ignore[arg-type]


FOUND = {
    "tagged": (f"So.\n{_F}python\nx = 1\n{_F}", "x = 1"),
    "py": (f"{_F}py\nx = 1\n{_F}", "x = 1"),
    "capitals": (f"{_F}Python\nx = 1\n{_F}", "x = 1"),
    "untagged": (f"{_F}\nx = 1\n{_F}", "x = 1"),
    "a word after the tag": (f"{_F}python title=a.py\nx = 1\n{_F}", "x = 1"),
    "braces after the fence": (f"{_F}{{.python}}\nx = 1\n{_F}", "x = 1"),
    "a space before the tag": (f"{_F} python\nx = 1\n{_F}", "x = 1"),
    "tildes": ("~~~python\nx = 1\n~~~", "x = 1"),
    "blank lines inside": (f"{_F}python\n\nx = 1\n\ny = 2\n\n{_F}", "x = 1\n\ny = 2"),
    "prose after": (f"{_F}python\nx = 1\n{_F}\nThis binds x.", "x = 1"),
    "windows line ends": (f"So.\r\n{_F}python\r\nx = 1\r\ny = 2\r\n{_F}\r\n", "x = 1\ny = 2"),
    "two blocks": (f"{_F}python\nx = 1\n{_F}\nthen\n{_F}python\ny = x\n{_F}", "x = 1\n\ny = x"),
    "output that it made up, untagged": (f"{_F}python\nx = 1\n{_F}\nIt gives:\n{_F}\nall is well\n{_F}", "x = 1"),
    "two blocks without tags": (f"{_F}\nx = 1\n{_F}\n{_F}\ny = 2\n{_F}", "x = 1\n\ny = 2"),
    "another language beside": (f"{_F}bash\npip install x\n{_F}\n{_F}python\nx = 1\n{_F}", "x = 1"),
    "output that it made up": (f"{_F}python\nx = 1\n{_F}\n{_F}text\n1\n{_F}", "x = 1"),
    "longer fence around a fence": (f"{_F}`python\ns = '''\n{_F}\n'''\n{_F}`", f"s = '''\n{_F}\n'''"),
    "a fence in a string, indented": (f"{_F}python\ns = '''\n   {_F}js\n   1\n   {_F}\n'''\nprint(s)\n{_F}",
                                      f"s = '''\n   {_F}js\n   1\n   {_F}\n'''\nprint(s)"),
    "a fence in a string": (f"{_F}python\ns = '''\n{_F}js\n1\n{_F}\n'''\nprint(s)\n{_F}",
                            f"s = '''\n{_F}js\n1\n{_F}\n'''\nprint(s)"),
    "a markdown block around it": (f"{_F}markdown\n# Plan\n{_F}python\nx = 1\n{_F}\n{_F}", "x = 1"),
    "in a list": (f"1. do\n   {_F}python\n   if x:\n       y = 1\n   {_F}", "if x:\n    y = 1"),
    "deep in a list": (f"1. do\n\n      {_F}python\n      x = 1\n      {_F}", "x = 1"),
    "in a quotation of tabs": (f"-\t{_F}python\n\tx = 1\n\t{_F}", "x = 1"),
    "not closed, whole": (f"{_F}python\nx = 1", "x = 1"),
    "closed on the last line of code": (f"{_F}python\nx = 1{_F}", "x = 1"),
    "on one line": (f"{_F}python x = f(1){_F}", "x = f(1)"),
    "tags": ("<code>\nx = 1\n</code>", "x = 1"),
    "tags around a fence": (f"<code>\n{_F}python\nx = 1\n{_F}\n</code>", "x = 1"),
    "json": ('{"code": "x = 1"}', "x = 1"),
    "json as a tool's call": ('{"name": "python", "arguments": {"code": "x = 1"}}', "x = 1"),
    "json in a fence": (_F + 'json\n{"code": "x = 1"}\n' + _F, "x = 1"),
    "json in a fence, untagged": (_F + '\n{"name": "python", "arguments": {"code": "x = 1"}}\n' + _F, "x = 1"),
    "no fence": ("x = f(1)\nprint(x)", "x = f(1)\nprint(x)"),
    "thoughts before": (f"<think>\n{_F}python\nx = 0\n{_F}\n</think>\n{_F}python\nx = 1\n{_F}", "x = 1"),
    "top-level await": (f"{_F}python\nx = await f()", "x = await f()"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "source"), FOUND.values(), ids=FOUND)
def test_code_is_taken_from_a_reply(text: str, source: str) -> None:
    found = read(reply(text))
    assert isinstance(found, Code), found
    assert found.source == source


NOT_FOUND = {
    "empty": ("", "The reply was empty."),
    "blanks": (" \n\t\n", "The reply was empty."),
    "prose": ("I would look at the file first.", "The reply has no code block"),
    "a word": ("Done", "The reply has no code block"),
    "a number": ("42", "The reply has no code block"),
    "an empty block": (f"{_F}python\n\n{_F}", "The code block is empty"),
    "another language": (f"{_F}js\nlet x = 1\n{_F}", "Only Python is run; the reply has js alone."),
    "not closed, not whole": (f"{_F}python\nx = (1,", "The code block is not closed, and nothing was run."),
    "broken json": ('{"code": "x = 1', "The reply has no code block"),
    "json without code": ('{"answer": 1}', "The reply has no code block"),
    "a list": ('[{"code": "x"}]', "The reply has no code block"),
    "a file": ("x" * 200_001, "The reply has 200001 characters."),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), NOT_FOUND.values(), ids=NOT_FOUND)
def test_where_there_is_no_code_the_reason_is_told(text: str, reason: str) -> None:
    found = read(reply(text))
    assert isinstance(found, NoCode), found
    assert found.reason.startswith(reason)


def test_prose_in_the_fence_is_run_and_fails_as_python() -> None:
    assert read(reply(f"{_F}python\nI would look at it.\n{_F}")) == Code("I would look at it.")


def test_several_blocks_are_one_cell_and_the_model_is_told() -> None:
    found = read(reply(f"{_F}python\nx = 1\n{_F}\n{_F}py\ny = 2\n{_F}"))
    assert found == Code("x = 1\n\ny = 2", "The 2 code blocks were run as one cell, in their order.")


def test_a_reply_that_was_cut_off_is_not_run_even_where_it_is_whole_python() -> None:
    found = read(reply(f"{_F}python\nx = 1\ny = 1", finish="length"))
    assert isinstance(found, NoCode)
    assert "cut off" in found.reason


def test_code_that_was_closed_before_the_reply_was_cut_off_is_run() -> None:
    assert read(reply(f"{_F}python\nx = 1\n{_F}\nThis bin", finish="length")) == Code("x = 1")


def test_code_of_a_tool_call_is_taken() -> None:
    request = ToolRequest(id="1", name="python", arguments={"code": "x = 1"}, raw="")
    assert read(reply("", requests=(request,))) == Code("x = 1")


def test_a_tool_call_without_code_is_none() -> None:
    request = ToolRequest(id="1", name="search", arguments={"q": "x"}, raw="")
    found = read(reply("", requests=(request,)))
    assert isinstance(found, NoCode)
    assert "search" in found.reason


@given(st.text(alphabet="`~ \n\rpython<code>/{}\"x=1'#().:", max_size=200))
def test_whatever_is_replied_is_code_or_a_reason(text: str) -> None:
    found = read(reply(text))
    match found:
        case Code(source):
            assert source.strip()
        case NoCode(reason):
            assert reason


def test_a_long_reply_is_read_in_linear_time() -> None:
    lines = [f"{_F}js", "x"] * 20_000
    assert isinstance(read(reply("\n".join(lines))), NoCode)
    assert isinstance(read(reply("<code>" * 30_000)), NoCode)
    assert isinstance(read(reply("`" * 199_000)), NoCode)
    assert isinstance(read(reply(f"{_F}js\nx\n{_F}\n" * 3_000)), NoCode)
    assert isinstance(read(reply(f"{_F}py\n(\n{_F}\n" * 3_000)), Code)
