"""How much room results of numpy take: bounded before anything is made of it.

What a function makes is told by its arguments: shapes, repeats, widths, sizes of arrays. An estimate takes what the
function takes, and gives items or bytes; too large is a MemoryError, as numpy itself raises one, but well before the
machine's memory ends. Operators are not asked (`a[:, None] * b`): numpy itself says what cannot be had at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cellblock.guard.sizes import MAX_BYTES

MAX_ITEMS = MAX_BYTES // 8


def require(count: float, item: int = 8) -> None:
    """MemoryError for an array that would not be bearable: of so many items, of so many bytes each."""
    if count * max(item, 1) > MAX_BYTES:
        raise MemoryError(f"an array of {count:,.0f} items: the most here are {MAX_BYTES // max(item, 1):,}")


def bounded(function: Any, estimate: Callable[..., float]) -> Any:
    """A function that is called only for results that are bearable."""

    def called(*given: Any, **named: Any) -> Any:
        require(estimate(*given, **named))
        return function(*given, **named)

    for name in ("__name__", "__qualname__", "__doc__"):
        setattr(called, name, getattr(function, name, None))
    return called


def _product(lengths: Iterable[float]) -> float:
    return float(math.prod(lengths))


def whole(value: Any) -> int:
    """A size as an exact integer; TypeError for what only says that it is one: it may say something else later."""
    if type(value) is int:
        return value
    if isinstance(value, np.integer | np.bool_) or type(value) is bool:
        return int(value)
    if type(value) is float or isinstance(value, np.floating):
        return math.ceil(value)
    if type(value) is np.ndarray and value.ndim == 0:
        return whole(value[()])
    raise TypeError(f"{type(value).__name__!r} object cannot be interpreted as an integer")


def count(shape: Any) -> float:
    """How many items a shape holds."""
    if shape is None:
        return 1
    if type(shape) in (tuple, list) or (type(shape) is np.ndarray and shape.ndim):
        return _product(max(whole(one), 0) for one in shape)
    return max(whole(shape), 0)


def width(dtype: Any) -> float:
    """In units of 8 bytes, what an item takes."""
    return 1 if dtype is None else max(np.dtype(dtype).itemsize / 8, 1)


def size(value: Any) -> int:
    """How many items a value has as an array. Lists are counted as often as they are found, but looked at once."""
    if type(value) is np.ndarray:
        return value.size
    return _listed(value, {}) if type(value) in (list, tuple) else np.size(value)


def _listed(value: Any, known: dict[int, int]) -> int:
    if not value or type(value[0]) not in (list, tuple, np.ndarray):
        return len(value)
    found = known.get(id(value))
    if found is None:
        known[id(value)] = 0
        parts = (_listed(one, known) if type(one) in (list, tuple) else np.size(one) for one in value)
        found = known[id(value)] = sum(parts)
    return found


# ------------------------------------------------------------------------------------------ estimates


def _shaped(shape: Any, dtype: Any = None, *_: Any, **named: Any) -> float:
    return count(shape) * width(named.get("dtype", dtype))


def _filled(shape: Any, value: Any = None, dtype: Any = None, *_: Any, **__: Any) -> float:
    return count(shape) * (width(dtype) if dtype is not None else max(np.asarray(value).itemsize / 8, 1))


def _like(value: Any, *given: Any, shape: Any = None, dtype: Any = None, **_: Any) -> float:
    return (size(value) if shape is None else count(shape)) * width(dtype)


def _square(n: Any, m: Any = None, *_: Any, **named: Any) -> float:
    m = named.get("M", named.get("m", m))
    return whole(n) * whole(n if m is None else m)


def _indices(dimensions: Any, *_: Any, **__: Any) -> float:
    return count(dimensions) * (len(dimensions) if type(dimensions) in (tuple, list) else 1)


def _spaced(start: Any, stop: Any, num: Any = 50, *_: Any, **__: Any) -> float:
    return whole(num) * max(size(start), size(stop))


def _window(m: Any, *_: Any, **__: Any) -> float:
    return whole(m)


def _repeated(a: Any, repeats: Any, *_: Any, **__: Any) -> float:
    times = np.asarray(repeats)
    most = times.max(initial=0) if times.dtype != object else max(map(whole, times.ravel()), default=0)
    return size(a) * int(most) * width(getattr(a, "dtype", None))


def _outer(a: Any, b: Any, *_: Any, **__: Any) -> float:
    return size(a) * size(b)


def _grid(*axes: Any, sparse: Any = False, **_: Any) -> float:
    return sum(map(size, axes)) if sparse else _product(map(size, axes)) * max(len(axes), 1)


def _joined(arrays: Any, *_: Any, **__: Any) -> float:
    return size(arrays) if type(arrays) in (list, tuple) else np.size(arrays)


def _padded(array: Any, pad_width: Any, *_: Any, **__: Any) -> float:
    shape = np.shape(array)
    most = np.asarray(list(pad_width.values()) if type(pad_width) is dict else pad_width).max(initial=0)
    return _product(one + 2 * whole(most) for one in shape)


def _binned(x: Any, weights: Any = None, minlength: Any = 0) -> float:
    array = np.asarray(x)
    return max(int(array.max(initial=0)) + 1 if array.size and array.dtype.kind in "iub" else 0, whole(minlength))


def _histogram(a: Any, bins: Any = 10, *_: Any, **__: Any) -> float:
    return size(a) + (whole(bins) if np.ndim(bins) == 0 and not isinstance(bins, str) else size(bins))


def _histograms(*given: Any, bins: Any = 10, **_: Any) -> float:
    bins = given[-1] if len(given) > 1 and np.ndim(given[-1]) < 2 and type(given[-1]) in (int, tuple, list) else bins
    sizes = (
        [whole(bins)] * 2 if np.ndim(bins) == 0 else [whole(one) if np.ndim(one) == 0 else size(one) for one in bins]
    )
    return _product(sizes)


def _powers(x: Any, n: Any = None, *_: Any, **named: Any) -> float:
    n = named.get("N", n)
    return size(x) * (size(x) if n is None else whole(n))


def _products(a: Any, b: Any, *_: Any, **__: Any) -> float:
    """Of a product that sums over one axis at least; and of its steps, which nothing interrupts."""
    one, other = np.shape(a), np.shape(b)
    if not one or not other:
        return max(size(a), size(b))
    return _product(one[:-1]) * (_product(other[:-2]) * other[-1] if len(other) > 1 else 1)


def _made(value: Any, dtype: Any = None, *_: Any, **__: Any) -> float:
    return size(value) * width(dtype)


def _tensor(a: Any, b: Any, axes: Any = 2) -> float:
    one, other = np.shape(a), np.shape(b)
    if np.ndim(axes) == 0:
        last = max(whole(axes), 0)
        return _product(one[: len(one) - last]) * _product(other[last:])
    of_one, of_other = ([each] if np.ndim(each) == 0 else list(each) for each in axes)
    summed = _product(one[whole(each)] for each in of_one) * _product(other[whole(each)] for each in of_other)
    return _product(one) * _product(other) / max(summed, 1)


def _einsum(*operands: Any, **options: Any) -> float:
    if not operands or not isinstance(operands[0], str):
        raise TypeError("einsum() takes its subscripts as a text here")
    terms, _, result = str.__str__(operands[0]).replace(" ", "").partition("->")
    lengths: dict[str, int] = {}
    for term, operand in zip(terms.split(","), operands[1:], strict=False):
        for letter, one in zip(reversed(term), reversed(np.shape(operand)), strict=False):
            lengths[letter] = max(one, lengths.get(letter, 1))
    every = result if "->" in operands[0] else "".join(one for one in lengths if terms.count(one) == 1)
    rest = max(map(size, operands[1:]), default=1) if "." in terms else 1
    return _product(lengths.get(one, 1) for one in every) * rest


def _transformed(a: Any, n: Any = None, *_: Any, **__: Any) -> float:
    shape = np.shape(a)
    return 2 * size(a) if n is None or not shape else 2 * _product(shape[:-1]) * whole(n)


def _transformed_to(a: Any, s: Any = None, *_: Any, **__: Any) -> float:
    return 2 * (size(a) if s is None else count(s))


def _covariance(m: Any, y: Any = None, *_: Any, rowvar: Any = True, **__: Any) -> float:
    shape = np.shape(m) or (1,)
    rows = (shape[0] if rowvar else shape[-1]) if len(shape) > 1 else 1
    return (rows * (1 if y is None else 2)) ** 2 + size(m)


def _widened(a: Any, width: Any, *_: Any, **__: Any) -> float:
    return size(a) * int(np.max(width, initial=0)) / 2


def _multiplied(a: Any, i: Any) -> float:
    return size(a) * max(np.asarray(a).dtype.itemsize, 1) * int(np.max(i, initial=0)) / 8


def _powered(a: Any, n: Any) -> float:
    if abs(whole(n)) > 1_000_000:
        raise MemoryError(f"a power of {n:,}")
    return size(a)


FUNCTIONS: dict[str, Callable[..., float]] = {
    **dict.fromkeys(("zeros", "ones", "empty"), _shaped),
    "full": _filled,
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "full_like"), _like),
    **dict.fromkeys(
        ("eye", "tri", "identity", "triu_indices", "tril_indices", "mask_indices", "diag_indices"), _square
    ),
    "indices": _indices,
    "fromfunction": lambda function, shape, **_: _indices(shape),
    **dict.fromkeys(("linspace", "logspace", "geomspace"), _spaced),
    **dict.fromkeys(("hamming", "hanning", "bartlett", "blackman", "kaiser"), _window),
    "tile": lambda a, reps: size(a) * max(count(reps), 1) * width(getattr(a, "dtype", None)),
    "repeat": _repeated,
    **dict.fromkeys(("outer", "kron", "convolve", "correlate"), _outer),
    "meshgrid": _grid,
    "ix_": lambda value, *_, **__: 1,
    **dict.fromkeys(
        ("concatenate", "concat", "stack", "hstack", "vstack", "dstack", "column_stack", "row_stack", "block"), _joined
    ),
    "resize": lambda a, new_shape: count(new_shape),
    "pad": _padded,
    "diag": lambda v, k=0: (size(v) + abs(whole(k))) ** 2 if np.ndim(v) < 2 else size(v),
    "diagflat": lambda v, k=0: (size(v) + abs(whole(k))) ** 2,
    "bincount": _binned,
    **dict.fromkeys(("histogram", "histogram_bin_edges"), _histogram),
    **dict.fromkeys(("histogram2d", "histogramdd"), _histograms),
    "vander": _powers,
    "unpackbits": lambda a, *_, **__: size(a),
    **dict.fromkeys(("dot", "matmul"), _products),
    "inner": lambda a, b: _product(np.shape(a)[:-1]) * _product(np.shape(b)[:-1]),
    "tensordot": _tensor,
    "einsum": _einsum,
    **dict.fromkeys(("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray"), _made),
    **dict.fromkeys(("cov", "corrcoef"), _covariance),
}
TRANSFORMS: dict[str, Callable[..., float]] = {
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), _transformed),
    **dict.fromkeys(("fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn"), _transformed_to),
    **dict.fromkeys(("fftfreq", "rfftfreq"), _window),
}
OF_TEXTS: dict[str, Callable[..., float]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _widened),
    "multiply": _multiplied,
    "expandtabs": lambda a, tabsize=8: _widened(a, tabsize) * 10,
}
OF_MATRICES: dict[str, Callable[..., float]] = {
    "matrix_power": _powered,
    "outer": _outer,
    "matmul": _products,
    "tensordot": _tensor,
}

OF_ARRAYS: dict[str, Callable[..., float]] = {"repeat": _repeated, "astype": _made, "dot": _products}
OF_UFUNCS: dict[str, Callable[..., float]] = {"outer": _outer}


class Indexed:
    """`np.mgrid`, `np.r_` and the like, whose results are told by the slices that they are indexed with."""

    def __init__(self, real: Any, *, multiplied: bool) -> None:
        self._real = real
        self._multiplied = multiplied

    def __getitem__(self, key: Any) -> Any:
        keys = key if type(key) is tuple else (key,)
        lengths = [_length(one) if type(one) is slice else size(one) for one in keys]
        require(_product(lengths) * len(lengths) if self._multiplied else sum(lengths))
        return self._real[key]


def _length(one: slice) -> float:
    step = 1 if one.step is None else one.step
    if isinstance(step, complex):
        return abs(step)
    start, stop = (0 if bound is None else bound for bound in (one.start, one.stop))
    if not all(isinstance(bound, int | float | np.number) for bound in (start, stop, step)):
        raise TypeError("slices of numbers are needed")
    return max((stop - start) / step, 0) if step else 0


_SIZE_AT = {
    0: "random random_sample ranf sample standard_normal standard_cauchy standard_exponential bytes permutation spawn",
    1: "choice exponential poisson dirichlet chisquare geometric logseries pareto power rayleigh standard_gamma "
    "standard_t weibull zipf multivariate_hypergeometric",
    2: "normal uniform integers randint random_integers binomial beta f gamma gumbel laplace logistic lognormal "
    "negative_binomial noncentral_chisquare vonmises wald multinomial multivariate_normal",
    3: "hypergeometric noncentral_f triangular",
}
"""Where the methods of generators of random numbers take a size."""


def _drawn(place: int) -> Callable[..., float]:
    def estimate(*given: Any, **named: Any) -> float:
        shape = named.get("size", given[place] if len(given) > place else None)
        return 0 if type(shape) is np.ndarray or (place == 0 and type(shape) is list) else count(shape)

    return estimate


def _dimensions(*given: Any) -> float:
    return _product(max(whole(one), 0) for one in given)


DRAWS: dict[str, Callable[..., float]] = {
    **{name: _drawn(place) for place, draws in _SIZE_AT.items() for name in draws.split()},
    "rand": _dimensions,
    "randn": _dimensions,
}
