"""The audit of numpy: arrays and arithmetic, and none of what reads files, memory or frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cellblock.guard.libraries import room
from cellblock.guard.members import listed
from cellblock.guard.refusal import denied
from cellblock.guard.stdlib.exact import exact
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, names, public, viewed

if TYPE_CHECKING:
    from cellblock.guard.world import World

_GRANTED = names(
    "False_ ScalarType True_ abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis "
    "apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort "
    "argwhere around array array2string array_equal array_equiv array_repr array_split array_str asanyarray asarray "
    "asarray_chkfinite ascontiguousarray asfortranarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d "
    "atleast_3d average bartlett base_repr binary_repr bincount bitwise_and bitwise_count bitwise_invert "
    "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman block bool bool_ broadcast "
    "broadcast_arrays broadcast_shapes broadcast_to busday_count busday_offset busdaycalendar byte bytes_ c_ "
    "can_cast cbrt cdouble ceil character choose clip clongdouble column_stack common_type complex128 complex256 "
    "complex64 complexfloating compress concat concatenate conj conjugate convolve copy copysign copyto corrcoef "
    "correlate cos cosh count_nonzero cov cross csingle cumprod cumsum cumulative_prod cumulative_sum datetime64 "
    "datetime_as_string datetime_data deg2rad degrees delete diag diag_indices diag_indices_from diagflat diagonal "
    "diff digitize divide divmod dot double dsplit dstack dtype e ediff1d einsum einsum_path empty empty_like equal "
    "errstate euler_gamma exp exp2 expand_dims expm1 extract eye fabs fill_diagonal finfo fix flatiter flatnonzero "
    "flexible flip fliplr flipud float128 float16 float32 float64 float_power floating floor floor_divide fmax fmin "
    "fmod format_float_positional format_float_scientific frexp fromfunction fromiter frompyfunc fromstring full "
    "full_like gcd generic genfromtxt geomspace get_printoptions geterr gradient greater greater_equal half hamming "
    "hanning heaviside histogram histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0 identity iinfo "
    "imag index_exp indices inexact inf inner insert int16 int32 int64 int8 int_ intc integer interp intersect1d "
    "intp invert is_busday isclose iscomplex iscomplexobj isdtype isfinite isfortran isin isinf isnan isnat "
    "isneginf isposinf isreal isrealobj isscalar issubdtype iterable ix_ kaiser kron lcm ldexp left_shift less "
    "less_equal lexsort linspace little_endian loadtxt log log10 log1p log2 logaddexp logaddexp2 logical_and "
    "logical_not logical_or logical_xor logspace long longdouble longlong mask_indices matmul matrix_transpose "
    "matvec max maximum may_share_memory mean median meshgrid mgrid min min_scalar_type minimum mintypecode mod "
    "modf moveaxis multiply nan nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin "
    "nanpercentile nanprod nanquantile nanstd nansum nanvar ndarray ndenumerate ndim ndindex negative newaxis "
    "nextafter nonzero not_equal number object_ ogrid ones ones_like outer packbits pad partition percentile "
    "permute_dims pi piecewise place poly poly1d polyadd polyder polydiv polyfit polyint polymul polysub polyval "
    "positive pow power printoptions prod promote_types ptp put put_along_axis putmask quantile r_ rad2deg radians "
    "ravel ravel_multi_index real real_if_close reciprocal remainder repeat require reshape resize result_type "
    "right_shift rint roll rollaxis roots rot90 round row_stack s_ searchsorted select set_printoptions setdiff1d "
    "seterr setxor1d shape shares_memory short sign signbit signedinteger sin sinc single sinh size sort "
    "sort_complex spacing split sqrt square squeeze stack std str_ subtract sum swapaxes take take_along_axis tan "
    "tanh tensordot tile timedelta64 trace transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros "
    "triu triu_indices triu_indices_from true_divide trunc typecodes typename ubyte ufunc uint uint16 uint32 uint64 "
    "uint8 uintc uintp ulong ulonglong union1d unique unique_all unique_counts unique_inverse unique_values "
    "unpackbits unravel_index unsignedinteger unstack unwrap ushort vander var vdot vecdot vecmat vectorize void "
    "vsplit vstack where zeros zeros_like "
)
_INSIDES = names("base ctypes data device dump dumps getfield resize setfield setflags tofile to_device")
_DRAWS = names(
    "rand randn randint random random_sample choice shuffle permutation normal uniform standard_normal binomial "
    "poisson exponential beta gamma chisquare multinomial multivariate_normal geometric laplace logistic lognormal "
    "pareto power rayleigh triangular vonmises weibull zipf dirichlet hypergeometric negative_binomial f gumbel "
    "logseries noncentral_chisquare noncentral_f standard_cauchy standard_exponential standard_gamma standard_t wald "
    "bytes seed random_integers ranf sample"
)


def _named(made: Any, function: Any) -> Any:
    made.__name__ = made.__qualname__ = function.__name__
    made.__doc__ = function.__doc__
    return made


def _arange(world: World) -> Any:
    def arange(*given: Any, **named: Any) -> Any:
        if len(given) <= 3 and all(isinstance(one, int | float) for one in given) and given:
            start, stop, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
            if step:
                room.require(max(0, (stop - start) / step))
        return np.arange(*given, **named)

    return _named(arange, np.arange)


def _from_text(name: str) -> Callable[[World], Any]:
    function = getattr(np, name)

    def make(world: World) -> Any:
        def read(fname: Any, *given: Any, **named: Any) -> Any:
            return function(_lines(world, fname), *given, **named)

        return _named(read, function)

    return make


def _lines(world: World, source: Any) -> list[str]:
    if isinstance(source, list | tuple):
        return [exact(one) for one in source]
    if isinstance(source, str | bytes) or hasattr(type(source), "__fspath__"):
        raise denied("files are not read here: give io.StringIO(text)", "builtin")
    text = world.gates.read(source, "read").read()
    return (text.decode() if isinstance(text, bytes) else text).splitlines()


def _fromstring(world: World) -> Any:
    def fromstring(string: Any, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
        return np.fromstring(exact(string), dtype=dtype, count=count, sep=sep)

    return fromstring


def _generator(world: World) -> Any:
    if "numpy random" not in world.values:
        world.values["numpy random"] = np.random.RandomState(world.values["random"].getrandbits(32))
    return world.values["numpy random"]


def _draw(name: str) -> Callable[[World], Any]:
    def make(world: World) -> Any:
        return room.bounded(getattr(_generator(world), name), room.DRAWS.get(name, _nothing))

    return make


def _nothing(*_: Any, **__: Any) -> float:
    return 0


def _bounded(module: Any, name: str, estimate: Callable[..., float]) -> Callable[[World], Any]:
    return lambda world: room.bounded(getattr(module, name), estimate)


def _methods(estimates: Mapping[str, Callable[..., float]], *, bound: bool) -> dict[str, Any]:
    """What stands in for methods. `bound`: an estimate takes the object first."""

    def replaced(name: str, estimate: Callable[..., float]) -> Any:
        def make(world: World, value: Any) -> Any:
            return room.bounded(getattr(value, name), partial(estimate, value) if bound else estimate)

        return make

    return {name: replaced(name, one) for name, one in estimates.items()}


def _indexed(name: str) -> Callable[[World], Any]:
    return lambda world: room.Indexed(getattr(np, name), multiplied=name == "mgrid")


def _state(name: str) -> Callable[[World], Any]:
    """What sets how numpy prints and warns: for the thread alone, or, where that was the process's, not at all."""
    own = name == "seterr" or np.lib.NumpyVersion(np.__version__) >= "2.2.0"

    def ignored(*_: Any, **__: Any) -> None:
        return None

    return lambda world: getattr(np, name) if own else ignored


_SCALARS = tuple({one for one in vars(np).values() if isinstance(one, type) and issubclass(one, np.generic)})
_OF_ARRAY = names(
    "T all any argmax argmin argpartition argsort astype byteswap choose clip compress conj conjugate copy cumprod "
    "cumsum diagonal dot dtype fill flags flat flatten imag item itemsize mT max mean min nbytes ndim nonzero "
    "partition prod put ravel real repeat reshape round searchsorted shape size sort squeeze std strides sum "
    "swapaxes take tobytes tolist trace transpose var view "
)


def _scalar(kind: type) -> TypeAudit:
    """The audit of a kind of scalar: the row of them all, and what its own adds."""
    reads = public(np.generic) | public(kind)
    return TypeAudit(type=kind, reads=reads, statics=names("fromhex from_bytes") & reads, refused=_INSIDES)


_RESULTS = tuple(
    one
    for module in (vars(np.linalg).get("_linalg"), np.lib)
    if module is not None
    for one in vars(module).values()
    if isinstance(one, type) and issubclass(one, tuple) and hasattr(one, "_fields")
)
_SIZED = _methods(room.DRAWS, bound=False)
_REPLACED: dict[str, Callable[[World], Any]] = {
    **{name: _bounded(np, name, one) for name, one in room.FUNCTIONS.items() if hasattr(np, name)},
    **{name: _indexed(name) for name in ("mgrid", "ogrid", "r_", "c_")},
    **{name: _state(name) for name in ("set_printoptions", "seterr")},
    **{name: _from_text(name) for name in ("loadtxt", "genfromtxt")},
    "arange": _arange,
    "fromstring": _fromstring,
    "ndarray": lambda world: world.typeof_class(np.ndarray),
    "__version__": lambda world: np.__version__,
}
_FUNCTIONS = type(np.mean)

AUDITS = (
    ModuleAudit(
        name="numpy",
        members=_GRANTED - frozenset(_REPLACED),
        replaced=_REPLACED,
        submodules=names("random linalg fft char typing"),
        types=(
            TypeAudit(
                type=np.ndarray,
                reads=_OF_ARRAY - frozenset(room.OF_ARRAYS),
                replaced=_methods(room.OF_ARRAYS, bound=True),
                statics=frozenset(),
                writes=names("shape real imag flat"),
                constructable=False,
            ),
            *map(_scalar, _SCALARS),
            TypeAudit(
                type=np.dtype,
                replaced={"fields": viewed("fields")},
                reads=names(
                    "name kind char num str itemsize type names byteorder isnative shape ndim subdtype base "
                    "descr alignment hasobject isalignedstruct isbuiltin flags newbyteorder"
                ),
            ),
            TypeAudit(type=type(np.dtype)),
            TypeAudit(
                type=type(np.zeros(1).flags),
                reads=names(
                    "c_contiguous f_contiguous contiguous owndata writeable aligned forc fnc farray carray behaved"
                ),
                constructable=False,
            ),
            audit(np.flatiter, but=["base"], constructable=False),
            replace(
                audit(
                    np.ufunc,
                    but=["resolve_dtypes", *room.OF_UFUNCS],
                    constructable=False,
                    replaced=_methods(room.OF_UFUNCS, bound=False),
                ),
                statics=frozenset(),
            ),
            TypeAudit(type=_FUNCTIONS, constructable=False),
            TypeAudit(type=np.vectorize, reads=names("otypes excluded signature")),
            audit(np.poly1d, subclassable=False),
            audit(np.finfo, also=names("bits dtype eps epsneg max min maxexp minexp nmant precision resolution tiny")),
            audit(np.iinfo, also=names("bits dtype kind")),
            audit(np.ndenumerate),
            audit(np.ndindex),
            audit(np.broadcast),
            TypeAudit(type=np.errstate),
            *(TypeAudit(type=kind, constructable=False) for kind in (type(np.s_), room.Indexed)),
            *(audit(kind, also=kind._fields, constructable=False) for kind in _RESULTS),
        ),
        note="no files, no views of foreign memory, nothing that looks into frames or changes the process's state; "
        "submodules are those named here",
    ),
    ModuleAudit(
        name="numpy.random",
        members=names("default_rng Generator RandomState"),
        replaced={name: _draw(name) for name in sorted(_DRAWS) if hasattr(np.random.RandomState, name)},
        types=(
            replace(
                audit(np.random.Generator, but=["bit_generator", *_SIZED], constructable=False, replaced=_SIZED),
                statics=frozenset(),
            ),
            TypeAudit(type=np.random.RandomState, reads=_DRAWS - frozenset(room.DRAWS), replaced=_SIZED),
        ),
        note="drawn from a generator of the session's own; the bits behind it are memory",
    ),
    ModuleAudit(
        name="numpy.linalg",
        members=listed("numpy.linalg") - frozenset(room.OF_MATRICES),
        replaced={
            name: _bounded(np.linalg, name, one) for name, one in room.OF_MATRICES.items() if hasattr(np.linalg, name)
        },
        refused=frozenset(),
        note="all that is public",
    ),
    ModuleAudit(
        name="numpy.fft",
        members=listed("numpy.fft") - frozenset(room.TRANSFORMS),
        replaced={name: _bounded(np.fft, name, one) for name, one in room.TRANSFORMS.items()},
        refused=frozenset(),
        note="all that is public",
    ),
    ModuleAudit(
        name="numpy.char",
        members=listed("numpy.char") - frozenset(room.OF_TEXTS),
        replaced={name: _bounded(np.char, name, one) for name, one in room.OF_TEXTS.items() if hasattr(np.char, name)},
        refused=names("chararray array asarray"),
        note="not the class of arrays that is going from numpy",
    ),
    ModuleAudit(name="numpy.typing", members=names("NDArray ArrayLike DTypeLike"), note="for annotations"),
)
