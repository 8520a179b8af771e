#: doctest-that-passes
"""A module.

>>> double(4)
8
"""
import doctest

def double(x):
    """Twice.

    >>> double(2)
    4
    >>> y = double(3)
    >>> y
    6
    >>> double("a")
    'aa'
    >>> double(None)
    Traceback (most recent call last):
        ...
    TypeError: unsupported operand type(s) for *: 'NoneType' and 'int'
    >>> for i in range(2):
    ...     print(i)
    0
    1
    >>> print([1, 2,
    ...        3])  # doctest: +NORMALIZE_WHITESPACE
    [1,   2, 3]
    >>> object()  # doctest: +ELLIPSIS
    <object object at 0x...>
    >>> double(1)  # doctest: +SKIP
    'not run'
    """
    return x * 2

class Stack:
    """
    >>> s = Stack([1]); s.push(2); s.items
    [1, 2]
    """
    def __init__(self, items):
        self.items = items

    def push(self, x):
        """
        >>> s = Stack([]); s.push(1); len(s.items)
        1
        """
        self.items.append(x)

    @property
    def top(self):
        """
        >>> Stack([3]).top
        3
        """
        return self.items[-1]

    @staticmethod
    def of(*items):
        """
        >>> Stack.of(1, 2).items
        [1, 2]
        """
        return Stack(list(items))

if __name__ == "__main__":
    print(doctest.testmod())
    print(doctest.testmod().failed)
    try:
        y
    except NameError as error:
        print(error)
#: doctest-with-an-error-that-is-not-expected
import doctest
def f(x):
    """
    >>> f(1)
    1
    >>> f(0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ZeroDivisionError: of any kind
    """
    return 1 // x

result = doctest.testmod(report=False)
print(result.attempted, result.failed, result)
#: argparse-without-words
import argparse
parser = argparse.ArgumentParser(description="Adds.", prog="add")
parser.add_argument("numbers", nargs="*", type=int, default=[1, 2], help="what to add")
parser.add_argument("-v", "--verbose", action="store_true")
parser.add_argument("--by", type=float, default=1.5, metavar="N", help="times this (default: %(default)s)")
args = parser.parse_args()
print(args, args.numbers, args.verbose, vars(args))
print(parser.format_usage())
#: argparse-with-words
import argparse
parser = argparse.ArgumentParser("tool")
parser.add_argument("--level", choices=["low", "high"], default="low")
parser.add_argument("-n", type=int, required=True)
parser.add_argument("--tag", action="append", default=[])
parser.add_argument("-q", action="count", default=0)
group = parser.add_mutually_exclusive_group()
group.add_argument("--yes", dest="answer", action="store_const", const="y")
group.add_argument("--no", dest="answer", action="store_const", const="n")
print(parser.parse_args(["-n", "3", "--tag", "a", "--tag=b", "-qq", "--no"]))
print(parser.parse_known_args(["-n", "4", "--other", "x"]))
parser.print_help()
#: argparse-with-wrong-words
#: raises: SystemExit
import argparse
parser = argparse.ArgumentParser(prog="tool")
parser.add_argument("n", type=int)
parser.parse_args(["x"])
#: argparse-with-commands-and-actions
import argparse
class Doubled(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values * 2)

class Quiet(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)

def even(text):
    if int(text) % 2:
        raise argparse.ArgumentTypeError(f"{text} is odd")
    return int(text)

parser = Quiet(prog="git")
commands = parser.add_subparsers(dest="command", required=True)
add = commands.add_parser("add", help="adds")
add.add_argument("paths", nargs="+")
add.set_defaults(run=lambda args: f"adding {args.paths}")
log = commands.add_parser("log")
log.add_argument("--count", type=even, default=2)
log.add_argument("--twice", action=Doubled)
args = parser.parse_args(["add", "a", "b"])
print(args.command, args.run(args))
print(parser.parse_args(["log", "--count", "4", "--twice", "z"]))
for words in ([], ["log", "--count", "3"], ["nothing"]):
    try:
        parser.parse_args(words)
    except ValueError as error:
        print(error)
#: argparse-into-an-object
import argparse
class Options:
    debug = False

parser = argparse.ArgumentParser()
parser.add_argument("--debug", action="store_true")
parser.add_argument("--name", default="none")
options = parser.parse_args(["--debug"], namespace=Options())
print(type(options).__name__, options.debug, options.name)
space = argparse.Namespace(a=1, b=[2])
space.c = 3
print(space, space == argparse.Namespace(a=1, b=[2], c=3), "a" in space, vars(space))
#: paths-as-names
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
p = Path("/srv") / "data" / "report.tar.gz"
print(p, repr(p), p.name, p.stem, p.suffix, p.suffixes, p.parent, p.parts, p.anchor)
print(p.with_suffix(".zip"), p.with_name("x"), p.with_stem("y"), p.relative_to("/srv"), p.is_absolute())
print([str(x) for x in p.parents], p.parents[0], p.match("*.gz"), p.as_posix(), p.as_uri())
print(Path("a", "b") == Path("a/b"), Path("a") < Path("b"), {Path("a"): 1}[Path("a")], str(Path("a/../b//c/.")))
print(PureWindowsPath("C:\\x\\y.txt").drive, PurePosixPath("a").joinpath("b", "c"), isinstance(p, PurePath))
print(f"{p!s:>30}", sorted([Path("b"), Path("a")]), Path(), Path("a").is_relative_to("a"), "x" / Path("y"))
try:
    p.relative_to("/other")
except ValueError as error:
    print(type(error).__name__)
#: timeit-of-texts-and-functions
import timeit
count = 0
def step():
    global count
    count += 1

print(timeit.timeit(step, number=3) >= 0, count)
print(timeit.timeit("step(); x = 1", setup="x = 0", globals=globals(), number=2) >= 0, count)
print(len(timeit.repeat("'-'.join(str(n) for n in range(5))", repeat=3, number=2)), timeit.default_timer() > 0)
print("x" in globals())
