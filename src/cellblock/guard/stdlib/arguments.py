"""`argparse` behind the guard: parsers of the session's own words, that print to its own streams.

What a parser is told are names of attributes, texts with `%` and functions. Names are set on namespaces of the code's
own alone; texts are bounded; functions get the words.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import name_of
from cellblock.guard.names import is_dunder
from cellblock.guard.refusal import denied
from cellblock.guard.tables import ModuleAudit, TypeAudit, names, public

if TYPE_CHECKING:
    from cellblock.guard.world import World

_WIDE = re.compile(r"%(\([^)]*\))?[^a-zA-Z%]*\d{4}")
_FORMATTERS = names(
    "HelpFormatter RawDescriptionHelpFormatter RawTextHelpFormatter ArgumentDefaultsHelpFormatter "
    "MetavarTypeHelpFormatter"
)
_OF_GROUP = names("add_argument add_argument_group add_mutually_exclusive_group set_defaults get_default")
_OF_PARSER = _OF_GROUP | names(
    "add_subparsers parse_args parse_known_args print_usage print_help format_usage format_help exit error prog usage "
    "description epilog"
)
_OF_ACTION = names("dest nargs const default type choices required help metavar option_strings format_usage")


def _namespace(world: World) -> Any:
    if "argparse.Namespace" not in world.values:

        def __init__(self: Any, **named: Any) -> None:
            for name, value in named.items():
                world.builtins["setattr"](self, name, value)

        kind = type("Namespace", (argparse.Namespace,), {"__module__": "argparse", "__init__": __init__})
        world.values["argparse.Namespace"] = world.classes.adopt(kind)
    return world.values["argparse.Namespace"]


def _parser(world: World) -> type:
    namespace_kind = _namespace(world)

    class ArgumentParser(argparse.ArgumentParser):
        def __init__(
            self, prog: Any = None, usage: Any = None, description: Any = None, epilog: Any = None, parents: Any = (),
            formatter_class: Any = argparse.HelpFormatter, prefix_chars: str = "-", **named: Any,
        ) -> None:  # fmt: skip
            if named.get("fromfile_prefix_chars") is not None:
                raise denied("arguments cannot be read from files", "builtin")
            if not any(formatter_class is one for one in _formatters()):
                raise denied("a formatter of argparse's own is needed", "class")
            super().__init__(
                prog or "", usage, description, epilog, parents, formatter_class, prefix_chars=prefix_chars, **named
            )

        def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
            if namespace is None:
                namespace = namespace_kind()
            elif not world.classes.own(type(namespace)):
                raise denied(f"arguments cannot be set on {name_of(type(namespace))!r}", "store")
            self._require(world)
            for dest in (*self._defaults, *(action.dest for action in self._actions)):
                world.gates.write(namespace, dest)
            return super().parse_known_args([] if args is None else list(args), namespace)

        def format_usage(self) -> str:
            self._require(world)
            return super().format_usage()

        def format_help(self) -> str:
            self._require(world)
            return super().format_help()

        def _require(self, world: World) -> None:
            """That what has been told to it are names, bounded texts, and actions that were granted or made here."""
            texts: list[Any] = [self.prog, self.usage, self.description, self.epilog, *self._defaults]
            for dest in (*self._defaults, *(action.dest for action in self._actions)):
                if type(dest) is not str or is_dunder(dest):
                    raise denied(f"{dest!r:.100} cannot be set", "store")
            for action in self._actions:
                own = world.classes.own(type(action))
                if not own and type(action).__module__ != "argparse":
                    raise denied(f"{name_of(type(action))} is no action that was granted", "class")
                world.calls.given(action.type)
                texts += [action.help, action.metavar]
            for text in texts:
                if isinstance(text, str) and (_WIDE.search(text) or len(text) > 100_000):
                    raise denied("a text of a parser is too wide", "size")

        def _print_message(self, message: str, file: Any = None) -> None:
            if not message:
                return
            if file is None or file is sys.stderr or file is sys.stdout:
                world.say("stdout" if file is sys.stdout else "stderr", message)
            else:
                world.gates.read(file, "write").write(message)

    ArgumentParser.__module__, ArgumentParser.__qualname__ = "argparse", "ArgumentParser"
    found = TypeAudit(type=ArgumentParser, reads=_OF_PARSER, statics=_OF_PARSER, subclassable=True)
    world.grant_types({ArgumentParser: found})
    return ArgumentParser


def _formatters() -> list[type]:
    return [getattr(argparse, name) for name in _FORMATTERS]


_ACTIONS = [kind for kind in vars(argparse).values() if isinstance(kind, type) and issubclass(kind, argparse.Action)]
_SUBPARSERS: type = vars(argparse)["_SubParsersAction"]

AUDITS = (
    ModuleAudit(
        name="argparse",
        members=_FORMATTERS
        | names("Action ArgumentError ArgumentTypeError BooleanOptionalAction")
        | names("SUPPRESS OPTIONAL ZERO_OR_MORE ONE_OR_MORE REMAINDER PARSER"),
        replaced={"ArgumentParser": _parser, "Namespace": _namespace},
        types=(
            *(
                TypeAudit(
                    type=kind,
                    reads=_OF_ACTION | (names("add_parser") if kind is _SUBPARSERS else frozenset()),
                    constructable=kind is argparse.Action,
                    subclassable=kind is argparse.Action,
                )
                for kind in _ACTIONS
            ),
            *(TypeAudit(type=kind, constructable=False) for kind in _formatters()),
            *(
                TypeAudit(type=vars(argparse)[name], reads=_OF_GROUP, constructable=False)
                for name in ("_ArgumentGroup", "_MutuallyExclusiveGroup")
            ),
            *(
                TypeAudit(type=kind, reads=public(ValueError) | names("argument_name message"), subclassable=True)
                for kind in (argparse.ArgumentError, argparse.ArgumentTypeError)
            ),
        ),
        note="no files, and no words but those that code gives; namespaces are the code's own objects",
    ),
)
