"""`doctest` behind the guard: examples in docstrings are source, checked as cells are, run among its names."""

from __future__ import annotations

import doctest
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import namespace
from cellblock.guard.names import names
from cellblock.guard.refusal import denied
from cellblock.guard.tables import ModuleAudit, TypeAudit

if TYPE_CHECKING:
    from cellblock.guard.world import World

_FLAGS = names(
    "ELLIPSIS NORMALIZE_WHITESPACE IGNORE_EXCEPTION_DETAIL SKIP DONT_ACCEPT_TRUE_FOR_1 DONT_ACCEPT_BLANKLINE FAIL_FAST "
    "REPORT_ONLY_FIRST_FAILURE"
)
_LINE = "*" * 70
_COUNTS_SKIPPED = sys.version_info >= (3, 13)
_WORDS = ("item", "items", "failure") if sys.version_info >= (3, 13) else ("items", "items", "failures")
"""Words of this Python's reports for counts: one, many, and one failure."""


def _testmod(world: World) -> Callable[..., doctest.TestResults]:
    def testmod(
        m: Any = None, name: str | None = None, globs: Any = None, verbose: bool | None = None, *_: Any, **options: Any
    ) -> doctest.TestResults:
        """Run the examples of all functions and classes of the code's own."""
        if m is not None or globs is not None:
            raise denied("the examples of this code alone are run: leave m and globs out", "import")
        runner = _Runner(world, options.get("optionflags", 0), verbose=bool(verbose))
        for test in sorted(_found(world), key=lambda one: one.name):
            runner.test(test)
        if options.get("report", True):
            runner.report()
        skipped: Any = {"skipped": runner.skipped} if _COUNTS_SKIPPED else {}
        return doctest.TestResults(runner.failed, runner.tried, **skipped)

    return testmod


def _run_examples(world: World) -> Callable[..., None]:
    def run_docstring_examples(
        f: Any, globs: Any = None, verbose: bool = False, name: str = "NoName", compileflags: Any = None,
        optionflags: int = 0,
    ) -> None:  # fmt: skip
        """Run the examples of one docstring."""
        runner = _Runner(world, optionflags, verbose=verbose)
        for test in _tests(world, f, name):
            runner.test(test)

    return run_docstring_examples


def _found(world: World) -> Iterator[doctest.DocTest]:
    """The examples of a world's module, functions and classes."""
    yield from _parsed(world.globals.get("__doc__"), "__main__")
    for name, value in list(world.globals.items()):
        made = world.made(value) or (isinstance(value, type) and world.classes.own(value))
        if made and name.isidentifier() and getattr(value, "__module__", None) == world.globals["__name__"]:
            yield from _tests(world, value, f"__main__.{name}")
    extra = world.globals.get("__test__")
    for name, value in extra.items() if type(extra) is dict else ():
        yield from _parsed(value, f"__main__.__test__.{name}")


def _tests(world: World, value: Any, name: str) -> Iterator[doctest.DocTest]:
    doc = namespace(value).get("__doc__") if isinstance(value, type) else getattr(value, "__doc__", None)
    yield from _parsed(doc, name)
    if not isinstance(value, type) or not world.classes.own(value):
        return
    for member, held in list(namespace(value).items()):
        inner = held.__func__ if type(held) in (staticmethod, classmethod) else held
        if world.made(inner) or type(inner) is property or (isinstance(inner, type) and world.classes.own(inner)):
            yield from _tests(world, inner, f"{name}.{member}")


def _parsed(doc: Any, name: str) -> Iterator[doctest.DocTest]:
    if type(doc) is str and ">>>" in doc:
        test = doctest.DocTestParser().get_doctest(doc, {}, name, "<cell>", 0)
        if test.examples:
            yield test


class _Runner:
    """Runs examples in a world and counts them, in the words of the real one."""

    def __init__(self, world: World, flags: int, *, verbose: bool) -> None:
        self._world = world
        self._flags = flags
        self._verbose = verbose
        self._counts: dict[str, tuple[int, int]] = {}
        self._checker = doctest.OutputChecker()
        self._reporter = doctest.DocTestRunner(self._checker, verbose=verbose, optionflags=flags)
        self.failed = self.tried = self.skipped = 0

    def test(self, test: doctest.DocTest) -> None:
        """The examples of one docstring, one after the other; the names that they bind are forgotten."""
        before = dict(self._world.globals)
        failed = tried = 0
        try:
            for number, example in enumerate(test.examples):
                flags = self._flags_of(example)
                if flags & doctest.SKIP:
                    self.skipped += 1
                    tried += _COUNTS_SKIPPED
                    continue
                tried += 1
                if self._verbose:
                    self._reporter.report_start(self._say, test, example)
                passed = self._example(test, example, number, flags)
                failed += not passed
                if not passed and flags & doctest.FAIL_FAST:
                    break
        finally:
            self._world.globals.clear()
            self._world.globals.update(before)
        self._counts[test.name] = (failed, tried)
        self.failed += failed
        self.tried += tried

    def _flags_of(self, example: doctest.Example) -> int:
        flags = self._flags
        for flag, on in example.options.items():
            flags = flags | flag if on else flags & ~flag
        return flags

    def _example(self, test: doctest.DocTest, example: doctest.Example, number: int, flags: int) -> bool:
        got, error = self._ran(example.source, f"<doctest {test.name}[{number}]>")
        if error is None:
            passed = example.exc_msg is None and self._checker.check_output(example.want, got, flags)
        else:
            told = traceback.format_exception_only(error)[-1]
            passed = example.exc_msg is not None and self._tells(example.exc_msg, told, flags)
            if not passed:
                got += f"Traceback (most recent call last):\n    ...\n{told}"
        if passed and self._verbose:
            self._reporter.report_success(self._say, test, example, got)
        elif not passed:
            self._reporter.report_failure(self._say, test, example, got)
        return passed

    def _tells(self, want: str, told: str, flags: int) -> bool:
        if self._checker.check_output(want, told, flags):
            return True
        kinds = [text.partition(":")[0].rpartition(".")[2].strip() for text in (want, told)]
        return bool(flags & doctest.IGNORE_EXCEPTION_DETAIL) and kinds[0] == kinds[1]

    def _ran(self, source: str, filename: str) -> tuple[str, Exception | None]:
        """Output of an example, and the error that ended it."""
        world = self._world
        parts: list[str] = []
        before = list(world.redirections["stdout"])
        world.redirect("stdout", [_Parts(parts)])
        try:
            value = world.execute(source, filename)
            if value is not None:
                parts.append(f"{value!r}\n")
                world.builtins["_"] = value
        except Exception as error:  # what the example raised is what is compared
            return "".join(parts), error
        finally:
            world.redirect("stdout", before)
        return "".join(parts), None

    def _say(self, text: str) -> None:
        self._world.say("stdout", text)

    def report(self) -> None:
        """Print the totals as the real one does."""
        failures = {name: counts for name, counts in sorted(self._counts.items()) if counts[0]}
        passed = {name: counts for name, counts in sorted(self._counts.items()) if counts[1] and not counts[0]}
        if self._verbose and passed:
            self._say(f"{len(passed)} {_WORDS[0] if len(passed) == 1 else _WORDS[1]} passed all tests:\n")
            for name, (_, tried) in passed.items():
                self._say(f" {tried:3d} test{'' if tried == 1 and _WORDS[0] == 'item' else 's'} in {name}\n")
        if failures:
            self._say(f"{_LINE}\n{len(failures)} {_WORDS[0] if len(failures) == 1 else _WORDS[1]} had failures:\n")
            for name, (failed, tried) in failures.items():
                self._say(f" {failed:3d} of {tried:3d} in {name}\n")
        if self._verbose:
            self._say(f"{self.tried} tests in {len(self._counts)} items.\n")
            self._say(f"{self.tried - self.failed} passed and {self.failed} failed.\n")
        if self.failed:
            self._say(f"***Test Failed*** {self.failed} {_WORDS[2] if self.failed == 1 else 'failures'}.\n")
        elif self._verbose:
            self._say("Test passed.\n")


class _Parts:
    """Takes what an example prints."""

    def __init__(self, parts: list[str]) -> None:
        self.write = parts.append


AUDITS = (
    ModuleAudit(
        name="doctest",
        members=names("TestResults"),
        instead={name: int(getattr(doctest, name)) for name in _FLAGS},
        replaced={"testmod": _testmod, "run_docstring_examples": _run_examples},
        types=(
            TypeAudit(
                type=doctest.TestResults, reads=names("failed attempted skipped count index"), constructable=False
            ),
            TypeAudit(type=_Parts, reads=names("write"), constructable=False),
        ),
        note="examples of the code's own docstrings alone, each checked as a cell is; no files",
    ),
)
