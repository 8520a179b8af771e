"""Regular expressions at the level `local`: what is quick runs as it is, what may take long is tried first."""

from __future__ import annotations

import re

import pytest
from levels import local_session

from cellblock import ExecutionLimits
from cellblock.guard.rehearsal import Rehearsal
from cellblock.guard.stdlib.patterns import longest

PAGE = 2_000
"""Characters of a text that any harmless pattern bears."""

HARMLESS = (
    r"\w+", r"\d{4}-\d{2}-\d{2}", r"(\d{1,3}\.){3}\d{1,3}", r'"(?:[^"\\]|\\.)*"', r"^(\w+)\s*=\s*(.*)$", r"<[^>]+>",
    r"(foo|foobar)+", r"(?:\s*\w+\s*,)*", r"\s*,\s*", r"(?>a+)+b", r"[A-Z][a-z]+(?: [A-Z][a-z]+)*",
)  # fmt: skip
UNBEARABLE = (
    r"(a+)+$", r"(a|aa)+$", r"(x+x+)+y", r"(?:a*)*b", r"(?:a+ba+)*$", r"(яb?|\wb?)*z", r"(?i)(ky?|\u212ay?)*x",
    r"((a|b)*b)*c", r"(a?){30}a{30}", r"(x{1,30}){1,30}", r"(.*a){20}", r"([a-z]+)*=", r"(?=(a+)+b)", r"(a*)*\1b",
    r"(a)?(?(1)(a|a)*|b)c",
)  # fmt: skip


@pytest.mark.parametrize("pattern", HARMLESS)
def test_a_harmless_pattern_bears_a_page(pattern):
    assert longest(pattern, 0, anchored=True) > PAGE


@pytest.mark.threat("L10")
@pytest.mark.parametrize("pattern", UNBEARABLE)
def test_a_pattern_with_a_repeat_that_repeats_itself_bears_no_line(pattern):
    assert longest(pattern, 0, anchored=True) < 40


def test_degrees_are_told_apart():
    found = [longest(pattern, 0, anchored=True) for pattern in ("a", r"a*b", r"a*a*b", r"a*a*a*b")]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("text", ["bob@x.com, " * 2000, "é\ud800@ü " * 2000])
def test_what_is_tried_first_gives_what_re_gives(text):
    found = re.compile(r"(\w+)@(\w+)")
    rehearsal = Rehearsal()
    try:
        for given in ((found, text), (re.compile(rb"(\w+)@(\w+)"), text.encode("utf-8", "surrogatepass"))):
            pattern, subject = given
            new = b"<\\1>" if isinstance(subject, bytes) else r"<\1>"
            call = (pattern.pattern, pattern.flags, subject)
            assert rehearsal.call("findall", *call) == pattern.findall(subject)
            assert rehearsal.call("split", *call, 3) == pattern.split(subject, 3)
            assert rehearsal.call("sub", *call, new, 0) == pattern.sub(new, subject)
            assert rehearsal.call("subn", *call, new, 2) == pattern.subn(new, subject, 2)
            assert rehearsal.call("search", *call, 0, 10) is (pattern.search(subject, 0, 10) is not None)
    finally:
        rehearsal.close()


def test_long_texts_are_matched_as_by_re():
    source = (
        "import re\n"
        "text = 'key = value, ' * 2000\n"
        "pattern = re.compile(r'(\\w+)\\s*=\\s*(\\w+)')\n"
        "found = [m.span(2) for m in pattern.finditer(text)]\n"
        "replaced = re.sub(pattern, lambda m: m[2] + m[1], text)\n"
        "[len(found), found[-1], replaced[:12], pattern.search(text).groups(), re.split(r'\\s*,\\s*', text)[:2]]"
    )
    namespace: dict[str, object] = {}
    *body, last = source.split("\n")
    exec("\n".join(body), namespace)
    with local_session() as session:
        assert session.run(source).value == eval(last, namespace)


@pytest.mark.threat("L7", "L10")
def test_a_match_that_does_not_end_is_ended_with_its_cell():
    with local_session(limits=ExecutionLimits(timeout_seconds=0.3)) as session:
        cell = session.run("import re\ntry:\n    re.match(r'(a|a)*b', 'a' * 50)\nfinally:\n    done = 1")
        assert cell.error.kind == "timeout"
        assert session.run("re.match(r'(a|a)*b', 'aab').span()").value == (0, 3)
        with pytest.raises(KeyError):
            session["done"]


def test_names_and_errors_are_those_of_re():
    with local_session() as session:
        assert session.run("import re\nre.match(string='ab', pattern='a').span()").value == (0, 1)
        assert session.run("re.compile('a').sub(repl='b', string='aa', count=1)").value == "ba"
        assert session.run("re.findall('a', 1)").error.type == "TypeError"
        assert session.run("re.compile('(')").error.type == type(_error()).__name__
        assert session.run("isinstance(re.compile('a'), re.Pattern)").value is True


def _error() -> re.error:
    try:
        re.compile("(")
    except re.error as error:
        return error
    raise AssertionError
