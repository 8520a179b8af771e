"""`python -m fuzzer`: look for bytes that break the invariant. The exit status is 1 where there are some."""

from __future__ import annotations

import argparse
import secrets
import sys

import fuzzer
from fuzzer.cases import Case, from_word, to_word
from fuzzer.engine import Engine, judged
from fuzzer.targets import BY_NAME


def main() -> int:
    arguments = _parse()
    if arguments.again:
        return _again(*arguments.again)
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}, {arguments.seconds:g} s for each of {', '.join(arguments.only)}")
    finds = 0
    for name in arguments.only:
        engine = Engine(BY_NAME[name], seed)
        engine.begin()
        engine.run(seconds=arguments.seconds)
        report = engine.report
        said = f"{report.executions} cases, {report.corpus} kept, {report.steps} steps reached"
        print(f"{name:14} {said}, {len(report.finds)} finds", flush=True)
        for find in report.finds:
            finds += 1
            print(f"\n{find.how}\n\n  make fuzz ARGS='--again {to_word(name, find.case)}'\n", flush=True)
    return 1 if finds else 0


def _again(name: str, case: Case) -> int:
    found = judged(BY_NAME[name], case)
    print("the invariant holds" if found is None else found.how)
    return 0 if found is None else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="fuzzer", description=fuzzer.__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--only", type=_names, default=list(BY_NAME), metavar="A,B", help=", ".join(BY_NAME))
    parser.add_argument("--seed", type=int, help="makes a run that can be made again")
    parser.add_argument("--again", type=_word, metavar="CASE", help="one that was found; - reads it from stdin")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    for name in (names := text.split(",")):
        if name not in BY_NAME:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(BY_NAME)}")
    return names


def _word(text: str) -> tuple[str, Case]:
    name, case = from_word(sys.stdin.read() if text == "-" else text)
    return _names(name)[0], case


if __name__ == "__main__":
    sys.exit(main())
