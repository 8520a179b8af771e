"""Fenced blocks are found as CommonMark has them, with markdown-it-py for the reference, and as models mean them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from cellblock.fences import fences

CASES = {
    "with a tag": ("So:\n```python\nx = 1\n```\nThat is all.", [("python", "x = 1")]),
    "without a tag": ("```\na,b\n```", [("", "a,b")]),
    "a tag in capitals, and more": ('```Python title="a.py"\nx\n```', [("python", "x")]),
    "a tag of signs": ("```c++\nint x;\n```\n```objective-c\n@x\n```", [("c++", "int x;"), ("objective-c", "@x")]),
    "a space before the tag": ("``` csv\na\n```", [("csv", "a")]),
    "tildes": ("~~~python\nx\n~~~", [("python", "x")]),
    "tildes around ticks": ("~~~\n```\nx\n```\n~~~", [("", "```\nx\n```")]),
    "a longer fence around a shorter": ("````md\n```python\nx\n```\n````", [("md", "```python\nx\n```")]),
    "closed by a longer fence": ("```\nx\n`````\ny", [("", "x")]),
    "no end within a line": ("```\nx```\n```", [("", "x```")]),
    "no fence within a line": ("Use ```x``` here", []),
    "ticks after the fence": ("```a`b\nx", []),
    "CRLF": ("So:\r\n```csv\r\na,b\r\n1,2\r\n```\r\n", [("csv", "a,b\n1,2")]),
    "separators of lines that are none": ("```\na\u2028b\x0cc\x85d\n```", [("", "a\u2028b\x0cc\x85d")]),
    "tabs are kept": ("```make\nall:\n\techo\n\t\tx\n```", [("make", "all:\n\techo\n\t\tx")]),
    "blank lines are kept": ("```\n\na\n\n\nb\n\n```", [("", "\na\n\n\nb\n")]),
    "spaces at the ends are kept": ("```\n  a  \n```", [("", "  a  ")]),
    "an empty block": ("```python\n```", [("python", "")]),
    "an indented fence": ("  ```\n    a\n  b\n c\n  ```", [("", "  a\nb\nc")]),
    "too far in to be one": ("    ```\n    x\n    ```", []),
    "in a list": ("1. So\n   ```python\n   if x:\n       y\n   ```\n2. Then", [("python", "if x:\n    y")]),
    "at a list's marker": ("- ```py\n  x\n  ```", [("py", "x")]),
    "deep in lists": ("- a\n  - b\n\n    ```py\n    if x:\n      y\n    ```", [("py", "if x:\n  y")]),
    "in a list of tabs": ("-\ta\n\n\t```py\n\tx\n\t\ty\n\t```", [("py", "x\n\ty")]),
    "in a quotation": ("> So:\n> ```py\n> x\n>  y\n> ```\nThen", [("py", "x\n y")]),
    "several": ("```a\n1\n```\ntext\n```b\n2\n```", [("a", "1"), ("b", "2")]),
    "one after the other": ("```a\n1\n```\n```b\n2\n```", [("a", "1"), ("b", "2")]),
    "ticks in a string": ('```python\ns = "```"\n```', [("python", 's = "```"')]),
    "a fence in a string of Python": (
        "```python\ndoc = '''\n```\nx\n```\n'''\nprint(doc)\n```\nThen.",
        [("python", "doc = '''\n```\nx\n```\n'''\nprint(doc)")],
    ),
    "a fence with a tag in a string of Python": (
        '```python\nf"""\n```js\n1\n```\n"""\n```',
        [("python", 'f"""\n```js\n1\n```\n"""')],
    ),
    "Python that is wrong ends at its fence": (
        "```python\nx = (\n```\nand\n```python\ny = 1)\n```",
        [("python", "x = ("), ("python", "y = 1)")],
    ),
    "a string that is never closed": (
        "```python\nx = '''\n```\n```python\ny\n```",
        [("python", "x = '''"), ("python", "y")],
    ),
    "blocks in Markdown of the same fence": (
        "```markdown\n# A\n```python\nx\n```\nB\n```\nend",
        [("markdown", "# A\n```python\nx\n```\nB")],
    ),
    "Markdown that does not match": ("```md\n```python\nx\n```", [("md", "```python\nx")]),
    "nothing": ("", []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "found"), CASES.values(), ids=CASES)
def test_blocks_are_found(text: str, found: list[tuple[str, str]]) -> None:
    assert [(one.tag, one.text) for one in fences(text)] == found


def test_a_block_that_nothing_closes_says_so() -> None:
    assert [one.closed for one in fences("```\na\n```\n```csv\nb")] == [True, False]
    assert [one.closed for one in fences("> ```\n> a\n\nb")] == [False]


LONG = [
    "```\n",
    "```python\n'''\n",
    "```python\n'''\n```\n\"",
    "```python\n\\'''\n```\n",
    "```md\n```x\n```\n",
    "~~~\n```\n",
    "> ```\n",
    "- ```\n",
    "- ",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("piece", LONG)
def test_a_long_message_takes_time_by_its_length(piece: str) -> None:
    """Whatever it is made of: looking at each fence for each block would take minutes here."""
    fences(piece * (200_000 // len(piece)))


@given(text=st.text(alphabet="`~> -1.\t\r\n'\"xé\u2028", max_size=60))
@settings(deadline=None, max_examples=300)
def test_any_text_is_read(text: str) -> None:
    for one in fences(text):
        assert all(line.strip() in text for line in one.text.split("\n"))


LINES = st.sampled_from(
    ["```", "````", "~~~", "~~~~ x", "```x", "``` a b", "```a`", " ```", "   ~~~", "``", "text", "", "  two",
     "  ```", "  ~~~x", "   ```", "> ```", ">  ~~~", "a ```", "``` `", "~~~ `", "~~~~~"]
)  # fmt: skip


# without the lines that go on a paragraph of a list or quotation they are not indented for: containers end there for us
@pytest.mark.sampled(0)
@given(lines=st.lists(LINES, max_size=12))
@settings(deadline=None, max_examples=300)
def test_they_are_those_of_commonmark(lines: list[str]) -> None:
    tokens = MarkdownIt("commonmark").parse("\n".join(lines))
    wanted = [token for token in tokens if token.type == "fence"]
    found = [(one.tag, one.text.rstrip("\n")) for one in fences("\n".join(lines))]
    assert found == [(token.info.strip().split(" ")[0], token.content.rstrip("\n")) for token in wanted]
