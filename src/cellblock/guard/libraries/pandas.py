"""The audit of pandas: tables in memory, and none of what reads files, evaluates text or calls methods by any name."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cellblock.guard.members import listed
from cellblock.guard.refusal import denied
from cellblock.guard.stdlib.exact import exact
from cellblock.guard.stdlib.functions import simple_namespace
from cellblock.guard.stdlib.patterns import require_bearable
from cellblock.guard.tables import ModuleAudit, Replaced, TypeAudit, audit, names, public

if TYPE_CHECKING:
    from cellblock.guard.world import World

_AGGREGATES = names(
    "sum mean median min max std var sem skew kurt count size nunique first last prod any all cumsum cumprod cummax "
    "cummin cumcount ngroup rank diff shift ffill bfill pct_change idxmin idxmax mode quantile unique describe abs "
    "round ohlc value_counts list tuple set len sqrt exp log log2 log10 corr cov nth head tail isna notna"
)
_OPTIONS = names("axis result_type by_row raw convert_dtype numeric_only skipna interpolation dropna level")
_EXPRESSION = (
    *(ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Name, ast.Constant, ast.List, ast.Tuple),
    *(ast.And, ast.Or, ast.Not, ast.Invert, ast.USub, ast.UAdd, ast.Load, ast.Store, ast.Module, ast.Expr, ast.Assign),
    *(ast.operator, ast.cmpop),
)
_FUNCTION_TYPES = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc, type(np.mean), type)
_MISSING = object()
_QUOTED = re.compile(r"`([^`]*)`")
_LOCAL = re.compile(r"@([A-Za-z_]\w*)")


# ------------------------------------------------------------------------ names and evaluators


def _require_names(given: Any) -> Any:
    """That a text which pandas calls a method by is one of those that summarise; SecurityError for others."""
    if isinstance(given, str):
        if exact(given) not in _AGGREGATES:
            raise denied(f"{exact(given)!r:.60} is no function to summarise by: give the function itself", "attribute")
        return exact(given)
    if given is None or isinstance(given, _FUNCTION_TYPES):
        return given
    if hasattr(given, "keys"):
        return {key: _require_names(given[key]) for key in list(given.keys())}
    if hasattr(given, "__iter__"):
        return [_require_names(one) for one in given]

    def call(*arguments: Any, **named: Any) -> Any:
        return given(*arguments, **named)

    return call  # which is no list and no dict, whatever the object is


def _named_pair(given: Any) -> Any:
    """What `agg(total=("column", "sum"))` takes."""
    if isinstance(given, pd.NamedAgg):
        if _require_names(given.aggfunc) is not given.aggfunc:
            raise denied("NamedAgg takes a name or a function", "attribute")
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return (given[0], _require_names(given[1]))
    return _require_names(given)


def _by_name(method: str) -> Replaced:
    def replaced(world: World, value: Any) -> object:
        function = getattr(value, method)

        def summarise(func: Any = None, *given: Any, **named: Any) -> Any:
            options = {key: one if key in _OPTIONS else _named_pair(one) for key, one in named.items()}
            if "engine" in named or "engine_kwargs" in named:
                raise denied("an engine compiles what nothing checks", "builtin")
            return function(_require_names(func), *given, **options)

        return summarise

    return replaced


def _pivot(world: World, value: Any) -> object:
    def pivot_table(*given: Any, aggfunc: Any = "mean", **named: Any) -> Any:
        if len(given) > 3:
            raise TypeError("name aggfunc and what follows it")
        return value.pivot_table(*given, aggfunc=_require_names(aggfunc), **named)

    return pivot_table


def _queried(method: str) -> Replaced:
    """`query` and `eval`: names, constants and operators. The `@name` of a variable is looked up among the code's."""

    def replaced(world: World, value: Any) -> object:
        def evaluate(expr: str, *, inplace: bool = False) -> Any:
            text = exact(expr)
            if type(text) is not str:
                raise ValueError("expr must be a string to be evaluated")
            for node in ast.walk(ast.parse(_LOCAL.sub(r"\1", _QUOTED.sub("column", text)).strip())):
                if not isinstance(node, _EXPRESSION) or (isinstance(node, ast.Name) and "__" in node.id):
                    raise denied(f"{type(node).__name__} in {method}(): index with a mask instead", "builtin")
            found: dict[str, Any] = {"nothing at all": None}
            for name in _LOCAL.findall(text):
                if "__" in name or name not in world.globals:
                    raise NameError(f"local variable {name!r} is not defined")
                found[name] = world.globals[name]
            function = getattr(value, method)
            options: dict[str, Any] = {"inplace": True} if inplace else {}
            return function(text, engine="python", local_dict=found, global_dict=dict(found), **options)

        return evaluate

    return replaced


# -------------------------------------------------------------------------------------- texts


def _written(method: str, target: str) -> Replaced:
    """A method that gives a text, or writes it to a stream in memory."""

    def replaced(world: World, value: Any) -> object:
        function = getattr(value, method)

        def write(where: Any = None, *given: Any, **named: Any) -> Any:
            where = named.pop(target, where)
            if isinstance(where, str | bytes) or hasattr(type(where), "__fspath__"):
                raise denied(f"{method}() writes no files here: leave the path out and keep the text", "builtin")
            named = {key: one for key, one in named.items() if key not in ("storage_options", "compression", "mode")}
            if method == "to_json":
                named.setdefault("default_handler", str)
            text = function(None, *given, **named)
            if where is None:
                return text
            world.gates.read(where, "write").write(text)
            return None

        return write

    return replaced


def _reader(name: str) -> Callable[[World], Any]:
    function = getattr(pd, name)

    def make(world: World) -> Any:
        def read(source: Any, *given: Any, **named: Any) -> Any:
            if not isinstance(source, io.StringIO | io.BytesIO):
                raise denied(f"{name}() reads no files here: give io.StringIO(text)", "builtin")
            if len(given) > 0 and name != "read_fwf":
                raise TypeError(f"{name}() takes the source, and the rest by name")
            for one in ("sep", "delimiter"):
                named |= {one: _bearable(named[one])} if one in named else {}
            if "storage_options" in named or ("engine" in named and exact(named["engine"]) not in ("c", "python")):
                raise denied("engines and storage of others are not granted", "builtin")
            return function(source, *given, **named)

        read.__name__ = read.__qualname__ = name
        return read

    return make


def _matched(method: str) -> Replaced:
    """A method of `.str` that takes a pattern."""

    def replaced(world: World, value: Any) -> object:
        function = getattr(value, method)

        def match(pat: Any = None, *given: Any, **named: Any) -> Any:
            if method != "replace" or named.get("regex") or len(given) > 4 or not isinstance(pat, str):
                pat = _bearable(pat)
            return function(*(() if pat is None else (pat,)), *given, **named)

        return match

    return replaced


def _bearable(given: Any) -> Any:
    """Patterns, or texts that may be ones, in whatever they are wrapped: each is looked at as those of `re` are."""
    if isinstance(given, re.Pattern):
        require_bearable(given.pattern, given.flags)
        return given
    if isinstance(given, str):
        require_bearable(exact(given))
        return exact(given)
    if isinstance(given, dict):
        return {_bearable(key): _bearable(one) for key, one in given.items()}
    if isinstance(given, list | tuple):
        return [_bearable(one) for one in given]
    return given


def _replacing(world: World, value: Any) -> object:
    """`replace`, which takes texts for patterns where `regex` is said in any way."""

    def replace(to_replace: Any = None, value_: Any = _MISSING, *given: Any, **named: Any) -> Any:
        if given or named.get("regex", False) is not False:
            to_replace, given = _bearable(to_replace), tuple(map(_bearable, given))
            named["regex"] = _bearable(named.get("regex", False))
        replacements = () if value_ is _MISSING else (value_,)
        first = () if to_replace is None and not replacements else (to_replace,)
        return value.replace(*first, *replacements, *given, **named)

    return replace


def _told(world: World, value: Any) -> object:
    """`info`, which prints what it tells."""

    def info(
        verbose: Any = None, buf: Any = None, max_cols: Any = None, memory_usage: Any = None, show_counts: Any = None
    ) -> None:
        text = io.StringIO()
        columns = {"max_cols": max_cols} if isinstance(value, pd.DataFrame) or max_cols is not None else {}
        value.info(verbose=verbose, buf=text, memory_usage=memory_usage, show_counts=show_counts, **columns)
        if buf is None:
            world.say("stdout", text.getvalue())
        else:
            world.gates.read(buf, "write").write(text.getvalue())

    return info


def _filtering(world: World, value: Any) -> object:
    """`filter` by the names of columns."""

    def filter(items: Any = None, like: Any = None, regex: Any = None, axis: Any = None) -> Any:
        return value.filter(items=items, like=like, regex=_bearable(regex), axis=axis)

    return filter


def _wide_to_long(world: World) -> Any:
    def wide_to_long(df: Any, stubnames: Any, i: Any, j: Any, sep: str = "", suffix: Any = r"\d+") -> Any:
        return pd.wide_to_long(df, stubnames, i, j, exact(sep), _bearable(suffix))

    return wide_to_long


# ------------------------------------------------------------------- columns read as attributes


class Columns(Mapping[str, Replaced]):
    """Replacements by name, and for every name that no class of pandas has: the column or label of that name."""

    def __init__(self, kind: type, replaced: Mapping[str, Replaced]) -> None:
        self._taken = frozenset(dir(kind))
        self._replaced = replaced

    def __contains__(self, name: object) -> bool:
        return name in self._replaced or (
            isinstance(name, str) and name not in self._taken and not name.startswith("_")
        )

    def __getitem__(self, name: str) -> Replaced:
        return self._replaced[name] if name in self._replaced else _labelled(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._replaced)

    def __len__(self) -> int:
        return len(self._replaced)


def _labelled(name: str) -> Replaced:
    def replaced(world: World, value: Any) -> object:
        labels = value.index if isinstance(value, pd.Series) else getattr(value, "obj", value)
        if name not in labels:
            raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")
        return value[name]

    return replaced


class FrameMaker:
    """`pandas.DataFrame` as code sees it: makes tables. What dataclasses of the host hold is no data."""

    __name__ = __qualname__ = "DataFrame"

    def __init__(self, world: World) -> None:
        self._world = world
        world.standing[pd.DataFrame] = self

    def __getattr__(self, name: str) -> Any:
        """A method, of whichever table it is called with: read from that as code does."""

        def unbound(table: Any, /, *given: Any, **named: Any) -> Any:
            if not isinstance(table, pd.DataFrame):
                raise TypeError(f"DataFrame.{name}() takes a DataFrame first, not {type(table).__name__!r}")
            return getattr(self._world.gates.read(table, name), name)(*given, **named)

        return unbound

    def __call__(self, data: Any = None, *given: Any, **named: Any) -> Any:
        records = isinstance(data, list | tuple) and data and hasattr(type(data[0]), "__dataclass_fields__")
        if records and not all(self._world.classes.own(type(one)) for one in data):
            raise denied("objects of the host are no rows: take from them what is needed")
        return pd.DataFrame(data, *given, **named)

    def from_dict(self, *given: Any, **named: Any) -> Any:
        return pd.DataFrame.from_dict(*given, **named)

    def from_records(self, *given: Any, **named: Any) -> Any:
        return pd.DataFrame.from_records(*given, **named)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, pd.DataFrame)

    def __subclasscheck__(self, kind: Any) -> bool:
        return kind is self

    def __or__(self, other: object) -> object:
        return pd.DataFrame | other

    def __ror__(self, other: Any) -> object:
        return other | pd.DataFrame

    def __repr__(self) -> str:
        return "<class 'pandas.DataFrame'>"


_TEXTS = {
    "to_csv": "path_or_buf",
    "to_json": "path_or_buf",
    "to_html": "buf",
    "to_string": "buf",
    "to_markdown": "buf",
}
_PATTERNS = (
    "contains",
    "match",
    "fullmatch",
    "replace",
    "extract",
    "extractall",
    "findall",
    "split",
    "rsplit",
    "count",
)
_NEVER = names(
    "to_pickle to_parquet to_feather to_hdf to_sql to_excel to_stata to_orc to_gbq to_clipboard to_xarray to_iceberg "
    "to_xml to_latex eval query plot hist boxplot style sparse list struct attrs flags set_flags pipe "
    "memory_usage array values to_numpy"
)
_DATA = ("values", "array", "to_numpy", "memory_usage", "pipe")
_OUT = (_NEVER - frozenset(_DATA)) | frozenset(_TEXTS)
_CALLED = ("agg", "aggregate", "apply", "transform", "filter")


def _pandas(kind: type, *, called: bool = False, more: Mapping[str, Replaced] | None = None) -> TypeAudit:
    """The audit of a class of pandas: what is public, but for files, evaluators and methods called by name."""
    replaced: dict[str, Replaced] = {name: _written(name, _TEXTS[name]) for name in _TEXTS if hasattr(kind, name)}
    replaced |= {name: _by_name(name) for name in _CALLED if called and hasattr(kind, name)}
    replaced |= {name: _queried(name) for name in ("query", "eval") if kind is pd.DataFrame}
    replaced |= {"info": _told} if kind in (pd.DataFrame, pd.Series) else {}
    replaced |= {"replace": _replacing} if kind in (pd.DataFrame, pd.Series) else {}
    replaced |= {"filter": _filtering} if kind in (pd.DataFrame, pd.Series) else {}
    replaced |= more or {}
    reads = public(kind, but=_OUT | frozenset(replaced))
    open_ended = kind in (pd.DataFrame, pd.Series) or (called and hasattr(kind, "groups"))
    return TypeAudit(
        type=kind,
        reads=reads,
        statics=names(
            "from_dict from_records from_tuples from_product from_arrays from_breaks from_codes now today "
            "fromtimestamp fromisoformat strptime combine min max"
        )
        & public(kind),
        writes=names("columns index name names") & public(kind),
        replaced=Columns(kind, replaced) if open_ended else replaced,
        constructable=kind is not pd.DataFrame,
        refused=_OUT,
    )


def _kinds() -> tuple[TypeAudit, ...]:
    texts = pd.Series(["a"])
    days = pd.Series(pd.to_datetime(["2020-01-01"]))
    gaps = days - days
    table = pd.DataFrame({"a": [1], "b": [2]}, index=pd.to_datetime(["2020-01-01"]))
    grouped, one = table.groupby("a"), table.groupby("a")["b"]
    called = [grouped, one, table.rolling(1), table.expanding(), table.ewm(com=1), table.resample("D")]
    called += [table["b"].rolling(1), one.rolling(1), table["b"].resample("D"), one.expanding()]
    plain = [days.dt, gaps.dt, days.dt.to_period("D").dt, pd.Series(["a"], dtype="category").cat]
    indexers = [table.loc, table.iloc, table.at, table.iat]
    arrays = [texts.array, days.array, gaps.array, table["a"].array, pd.array([1, None]), pd.array([True, None])]
    arrays += [
        pd.array([1.5, None]),
        pd.Categorical(["a"]),
        days.dt.to_period("D").array,
        pd.interval_range(0, 1).array,
    ]
    audits = {type(each): _pandas(type(each), called=True) for each in called}
    audits |= {type(each): _pandas(type(each)) for each in (*plain, *arrays)}
    audits |= {type(each): TypeAudit(type=type(each), constructable=False) for each in indexers}
    patterns = {name: _matched(name) for name in _PATTERNS}
    audits[type(texts.str)] = _pandas(type(texts.str), more=patterns)
    audits[type(pd.IndexSlice)] = TypeAudit(type=type(pd.IndexSlice))
    for name in sorted(_INDEXES | _SCALARS):
        kind = getattr(pd, name)
        audits[kind] = _pandas(kind, called=False)
    for value in (pd.NaT, pd.NA):
        audits[type(value)] = audit(type(value), constructable=False)
    audits[pd.DataFrame] = _pandas(pd.DataFrame, called=True, more={"pivot_table": _pivot})
    audits[pd.Series] = _pandas(pd.Series, called=True)
    return tuple(audits.values())


def _options(world: World) -> Any:
    """`pandas.options`, an object of the code's own: what is set is remembered, and no more."""
    found = world.values.get("pandas.options")
    if found is None:
        kind = simple_namespace(world)

        def group(part: Any) -> Any:
            parts = {name: getattr(part, name) for name in dir(part) if name.isidentifier() and name[0] != "_"}
            return kind(**{name: group(one) if type(one) is type(part) else one for name, one in parts.items()})

        others = {name: kind() for name in ("mode", "compute", "plotting", "styler", "io", "future")}
        found = world.values["pandas.options"] = kind(display=group(pd.options.display), **others)
    return found


_HELD: Callable[[Any], dict[str, Any]] = vars(types.SimpleNamespace)["__dict__"].__get__


def _place(world: World, name: Any) -> tuple[dict[str, Any], str]:
    """The group that an option is in, and its name there."""
    *path, last = exact(name).split(".")
    group = _HELD(_options(world))
    for one in path or ["display"]:
        inner = group.get(one)
        group = _HELD(inner) if isinstance(inner, types.SimpleNamespace) else {}
    return group, last


def _get_option(world: World) -> Any:
    def get_option(pat: str) -> Any:
        group, last = _place(world, pat)
        if last not in group:
            raise pd.errors.OptionError(f"No such keys(s): {pat!r}")
        return group[last]

    return get_option


def _set_option(world: World) -> Any:
    def set_option(*pairs: Any) -> None:
        for name, value in zip(pairs[::2], pairs[1::2], strict=False):
            group, last = _place(world, name)
            if last.isidentifier() and not last.startswith("_"):
                group[last] = value

    return set_option


def _option(world: World) -> Any:
    return lambda *_, **__: None


def _option_context(world: World) -> Any:
    return lambda *_, **__: contextlib.nullcontext()


def _pivoted(name: str) -> Callable[[World], Any]:
    function = getattr(pd, name)

    def make(world: World) -> Any:
        def pivoted(*given: Any, **named: Any) -> Any:
            if "aggfunc" in named:
                named["aggfunc"] = _require_names(named["aggfunc"])
            if (name == "pivot_table" and len(given) > 4) or (name == "crosstab" and len(given) > 5):
                raise TypeError("name aggfunc and what follows it")
            return function(*given, **named)

        return pivoted

    return make


_INDEXES = names("Index RangeIndex MultiIndex DatetimeIndex TimedeltaIndex PeriodIndex CategoricalIndex IntervalIndex")
_SCALARS = names(
    "Timestamp Timedelta Period Interval DateOffset Categorical CategoricalDtype StringDtype Int64Dtype Int32Dtype "
    "Float64Dtype BooleanDtype DatetimeTZDtype PeriodDtype IntervalDtype Grouper NamedAgg"
)
_FUNCTIONS = names(
    "concat merge merge_asof merge_ordered melt cut qcut get_dummies from_dummies factorize unique isna isnull notna "
    "notnull to_datetime to_numeric to_timedelta date_range bdate_range period_range timedelta_range interval_range "
    "infer_freq json_normalize lreshape pivot array NA NaT IndexSlice Series"
)

_METHODS = frozenset(
    name for name in public(pd.DataFrame) if isinstance(getattr(pd.DataFrame, name, None), types.FunctionType)
)

AUDITS = (
    ModuleAudit(
        name="pandas",
        members=_FUNCTIONS | _INDEXES | _SCALARS,
        replaced={
            "DataFrame": FrameMaker,
            "wide_to_long": _wide_to_long,
            **{name: _reader(name) for name in ("read_csv", "read_table", "read_json", "read_fwf")},
            **{name: _pivoted(name) for name in ("pivot_table", "crosstab")},
            "options": _options,
            "get_option": _get_option,
            "set_option": _set_option,
            "reset_option": _option,
            "option_context": _option_context,
            "__version__": lambda world: pd.__version__,
        },
        submodules=names("errors"),
        types=(
            *_kinds(),
            TypeAudit(type=FrameMaker, reads=_METHODS | names("from_dict from_records"), constructable=False),
        ),
        note="no files, pickles, databases or plots; no evaluators but for names, constants and operators; methods "
        "are called by the names of summaries alone; options are remembered and no more, as they are the process's",
    ),
    ModuleAudit(name="pandas.errors", members=listed("pandas.errors"), refused=frozenset(), note="all that is public"),
)
