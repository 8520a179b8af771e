"""A plugin of mypy: values from inside a wall or from a model are written as text by `cellblock.text` alone.

In the modules of `FACING` it is an error to give a value of unknown type (`object`, `Any`, an exception that is none of
cellblock's own) to `str`, `repr`, `ascii`, `format`, an f-string, `str.format` or `map(str, …)`; and to use `json`.
Each would run the value's own code, or raise on an integer of 5,000 digits, on depth or on half of a
character. What is typed as text or a number was made so at a border. `html.unescape` is an error in all modules but
that one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from mypy.nodes import Expression, MemberExpr, NameExpr, RefExpr
from mypy.plugin import FunctionContext, MethodContext, Plugin
from mypy.types import AnyType, Instance, Type, TypeOfAny, UnionType, get_proper_type

FACING = (
    "cellblock/agent/",
    "cellblock/cli/",
    "cellblock/documents.py",
    "cellblock/integrations/",
    "cellblock/models/assembling.py",
    "cellblock/models/connect.py",
    "cellblock/models/langchain.py",
    "cellblock/models/openai.py",
    "cellblock/models/protocol.py",
    "cellblock/models/failures.py",
    "cellblock/session/calls.py",
    "cellblock/session/ipynb.py",
    "cellblock/session/offered.py",
    "cellblock/session/record.py",
    "cellblock/session/shown.py",
    "cellblock/session/tools.py",
    "cellblock/session/turns.py",
    "cellblock/session/unreached.py",
    "cellblock/tools/schema.py",
    "cellblock_attacks/report.py",
)
"""The modules, and below a "/" all of a package."""
EXEMPT = {
    "cellblock/cli/demo.py": "its answers are of its own cells",
    "cellblock/cli/examination.py": "its answers are of its own cells",
    "cellblock/cli/options.py": "reads the command line",
    "cellblock/cli/probes.py": "its answers are of its own cells",
    "cellblock/cli/storyboard.py": "its answers are of its own cells",
}
"""Modules of those packages that face nothing, each with the reason."""

_WRITERS = frozenset(f"builtins.{name}" for name in ("str", "repr", "ascii", "format"))
_JSON = frozenset(("json.loads", "json.dumps", "json.load", "json.dump"))
_UNKNOWN = frozenset(("builtins.object", "builtins.BaseException", "builtins.Exception"))
_FROM = "use cellblock.text, the border for values from inside or from a model"


def faces(path: str) -> bool:
    """Whether a file is one of those modules."""
    name = f"/{PurePath(path).as_posix()}".rpartition("/src/")[2]
    return name.startswith(FACING) and not name.startswith(tuple(EXEMPT))


def is_unknown(kind: Type) -> bool:
    """Whether a value of a type may be anything."""
    kind = get_proper_type(kind)
    match kind:
        case AnyType():
            return kind.type_of_any not in (TypeOfAny.from_error, TypeOfAny.special_form)
        case UnionType():
            return any(map(is_unknown, kind.items))
        case Instance():
            return kind.type.fullname in _UNKNOWN
    return False


class TextBorder(Plugin):
    """Looks at calls that write values as text."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        if fullname in _JSON:
            return _json
        if fullname == "html.unescape":
            return _html
        return _written if fullname in _WRITERS else _mapped if fullname == "builtins.map" else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return _written if fullname in ("builtins.str.format", "builtins.str.format_map") else None


def _json(context: FunctionContext) -> Type:
    if faces(context.api.path):
        context.api.fail(f"JSON is read and written elsewhere: {_FROM}", context.context)
    return context.default_return_type


def _html(context: FunctionContext) -> Type:
    if not PurePath(context.api.path).match("cellblock/text.py"):
        context.api.fail(f"references of HTML are read elsewhere: {_FROM}", context.context)
    return context.default_return_type


def _written(context: FunctionContext | MethodContext) -> Type:
    if faces(context.api.path):
        for given, kinds in zip(context.args, context.arg_types, strict=True):
            for one, kind in zip(given, kinds, strict=True):
                if is_unknown(kind) and not _is_option(one):
                    context.api.fail(f"a value of unknown type is written as text: {_FROM}", one)
    return context.default_return_type


def _is_option(one: Expression) -> bool:
    """Whether it is of the command line, which is the caller's own: `arguments.name`."""
    return isinstance(one, MemberExpr) and isinstance(one.expr, NameExpr) and one.expr.name == "arguments"


def _mapped(context: FunctionContext) -> Type:
    function = context.args[0][0] if context.args and context.args[0] else None
    if not faces(context.api.path) or not _is_writer(function):
        return context.default_return_type
    kinds = [get_proper_type(kind) for kinds in context.arg_types[1:] for kind in kinds]
    items = [one for kind in kinds if isinstance(kind, Instance) for one in kind.args[:1]]
    if len(items) < len(kinds) or any(map(is_unknown, items)):
        context.api.fail(f"values of unknown type are written as text: {_FROM}", context.context)
    return context.default_return_type


def _is_writer(function: Expression | None) -> bool:
    return isinstance(function, NameExpr | RefExpr) and function.fullname in _WRITERS


def plugin(_version: str) -> type[Plugin]:
    """What mypy asks for."""
    return TextBorder
