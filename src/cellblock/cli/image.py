"""`cellblock image`: makes the image of the level `sandboxed`, lists those that were made, removes one."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

import anyio

from cellblock.cli.exits import DONE, Unusable
from cellblock.cli.progress import Progress
from cellblock.cli.terminal import say, table, write_data, write_out
from cellblock.executors.container.recipe import BASE, SUITES, Recipe
from cellblock.text import whole_number, write_json

_EPILOG = "exit status: 0 done, 1 the image could not be made, 2 usage, 3 there is no engine"
_OLDEST, _NEWEST = 11, 14


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "image",
        description='The image of trust_level="sandboxed": CPython, without cellblock, which is mounted. '
        "Any other image with CPython 3.11 or newer works as well.",
        epilog=_EPILOG,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    building = actions.add_parser(
        "build",
        help="make it",
        description="Makes the image from Python's own, or with --debian, where no registry can be reached, "
        "of Debian's packages. Its name is printed on stdout.",
        epilog=_EPILOG,
    )
    add = building.add_argument
    add("--data", action="store_true", help="with numpy, pandas, matplotlib and openpyxl")
    add("--tag", default="", metavar="NAME", help="its name (localhost/cellblock, localhost/cellblock-data)")
    sources = building.add_mutually_exclusive_group()
    sources.add_argument("--base", metavar="IMAGE", help="start from this image (Python's own, by digest)")
    sources.add_argument(
        "--debian", nargs="?", const="trixie", choices=tuple(SUITES), metavar="SUITE",
        help="of Debian's packages: trixie, with Python 3.13, or bookworm, with 3.11; needs mmdebstrap or debootstrap",
    )  # fmt: skip
    python = "start from Python's own image of this version; with --base: its"
    add("--python", type=_version, metavar="X.Y", help=python)
    listing = actions.add_parser("list", help="list those that were made here", epilog=_EPILOG)
    removing = actions.add_parser("remove", help="remove one that was made here", epilog=_EPILOG)
    removing.add_argument("name", metavar="NAME", help="its name or id")
    for one, run in ((building, _build), (listing, _list), (removing, _remove)):
        one.add_argument("--engine", default="", metavar="ENGINE", help="podman or docker (the first that is there)")
        one.add_argument("--json", action="store_true", help="print JSON and nothing else on stdout")
        one.set_defaults(command=run)


def _build(arguments: argparse.Namespace) -> int:
    from cellblock.executors.container import image
    from cellblock.executors.container.engine import engine_of

    if arguments.debian and arguments.python:
        raise Unusable(f"--python {arguments.python}: Debian {arguments.debian} has Python {SUITES[arguments.debian]}")
    own = f"docker.io/library/python:{arguments.python}-slim-trixie" if arguments.python else BASE
    recipe = Recipe(
        data=arguments.data,
        tag=arguments.tag,
        base=arguments.base or own,
        python=arguments.python or "",
        suite=arguments.debian or "",
    )
    made = anyio.run(image.build, engine_of(arguments.engine), recipe, Progress(sys.stderr).step)
    write_out(f"{write_json(asdict(made), indent=2) if arguments.json else recipe.name}\n")
    say(f"{_size(made.size)}, from {made.base}{'@' + made.digest if made.digest else ''}")
    return DONE


def _list(arguments: argparse.Namespace) -> int:
    from cellblock.executors.container import image
    from cellblock.executors.container.engine import engine_of

    found = image.images(engine_of(arguments.engine))
    if arguments.json:
        write_data([asdict(one) for one in found], indent=2)
        return DONE
    table(
        ("IMAGE", "MADE", "SIZE", "FROM"),
        [(", ".join(one.names) or one.id[:12], one.created[:10], _size(one.size), one.base) for one in found],
    )
    if not found:
        say("there are none: cellblock image build")
    return DONE


def _remove(arguments: argparse.Namespace) -> int:
    from cellblock.executors.container import image
    from cellblock.executors.container.engine import engine_of

    engine = engine_of(arguments.engine)
    found = image.find(engine, arguments.name)
    if found is None:
        raise Unusable(f"{engine.title} has no image {arguments.name!r} that was made here (cellblock image list)")
    image.remove(engine, arguments.name)
    if arguments.json:
        write_data(asdict(found), indent=2)
    return DONE


def _size(size: int) -> str:
    return f"{size / 1e6:.0f} MB"


def _version(text: str) -> str:
    major, _, minor = text.partition(".")
    if major != "3" or (whole_number(minor, _NEWEST) or 0) < _OLDEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of 3.{_OLDEST} to 3.{_NEWEST}")
    return text
