"""numpy and pandas under the guard: programs of analysis run unchanged, and what reaches out is refused."""

# ruff: noqa: E501 - programs as they are written

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from runner import guarded, plain

from cellblock.policy import Policy

pytest.importorskip("numpy")
pytest.importorskip("pandas")

BOTH = Policy(libraries=["numpy", "pandas"])
HEAD = "import io\nimport numpy as np\nimport pandas as pd\n"
SALES = HEAD + (
    "df = pd.DataFrame({'day': pd.date_range('2024-01-01', periods=6), 'shop': list('aabbab'),\n"
    "                   'sold': [3, 1, 4, 1, 5, 9], 'price': [1.5, 2.0, None, 1.0, 2.5, 3.0]})\n"
)
PROGRAMS = {
    "totals by group": SALES
    + "print(df.groupby('shop')['sold'].sum())\nprint(df.groupby('shop').agg(t=('sold', 'sum'), "
    "m=('price', 'mean')))\nprint(df.groupby('shop').sold.agg(['min', 'max']))",
    "missing values": SALES
    + "print(df.isna().sum())\ndf['price'] = df['price'].fillna(df.price.mean())\nprint(df.price.round(2).tolist())\n"
    "print(df.dropna().shape)",
    "dates": SALES
    + "df['week'] = df.day.dt.isocalendar().week\nprint(df.week.tolist(), df.day.dt.day_name().tolist())\n"
    "print(df.set_index('day').resample('2D')['sold'].sum())\nprint(pd.Timestamp('2024-03-01') - pd.Timedelta(days=1))",
    "masks and queries": SALES + "low = 2\nprint(df[df.sold > low].shape, df.query('sold > @low and shop == \"a\"'))\n"
    "print(df.loc[df['shop'].isin(['a']), ['sold']].mean())\nprint(df.eval('sold * 2').tolist())",
    "joins": SALES
    + "names = pd.DataFrame({'shop': ['a', 'b'], 'city': ['X', 'Y']})\nprint(df.merge(names, on='shop').head())\n"
    "print(pd.concat([df.head(1), df.tail(1)], ignore_index=True))",
    "pivots": SALES + "print(df.pivot_table(index='shop', values='sold', aggfunc='sum'))\n"
    "print(pd.crosstab(df['shop'], df['sold'] > 2))\nprint(df.melt(id_vars='shop', value_vars=['sold']).head(3))",
    "texts": HEAD + "s = pd.Series([' Ann Lee', 'Bob Ray ', None])\nprint(s.str.strip().str.lower().tolist())\n"
    "print(s.str.extract(r'(\\w+)\\s(\\w+)'))\nprint(s.str.contains('b', case=False).tolist(), s.str.split().str[0].tolist())",
    "tables from text": HEAD
    + "df = pd.read_csv(io.StringIO('a,b\\n1,x\\n2,y\\n'))\nprint(df, df.dtypes)\nprint(df.to_csv(index=False))\n"
    "out = io.StringIO()\ndf.to_csv(out)\nprint(out.getvalue())\nprint(df.to_json(orient='records'))\n"
    "print(pd.read_json(io.StringIO('[{\"a\": 1}]')))",
    "windows": SALES
    + "print(df['sold'].rolling(3).mean().tolist())\nprint(df.sold.cumsum().tolist(), df.sold.pct_change().round(2).tolist())\n"
    "print(df.sort_values('sold', ascending=False).reset_index(drop=True).head(2))",
    "functions of rows": SALES + "print(df.apply(lambda r: r['sold'] * 2 if r.shop == 'a' else 0, axis=1).tolist())\n"
    "print(df['sold'].map({3: 'three'}).tolist(), df['sold'].apply(np.sqrt).round(3).tolist())\n"
    "df = df.assign(total=lambda d: d.sold + 1)\nprint(df.total.tolist(), df.columns.tolist())",
    "summaries": SALES + "print(df.describe())\nprint(df['shop'].value_counts(), df['shop'].unique(), df.nunique())\n"
    "print(df.select_dtypes('number').corr().round(3))\nprint(df['sold'].quantile([0.25, 0.5]).tolist())",
    "arrays": HEAD
    + "a = np.arange(12).reshape(3, 4)\nprint(a.sum(axis=0), a.mean(1), a.T.shape, a[a % 2 == 0], a.dtype.name)\n"
    "print(np.where(a > 5, a, 0), np.clip(a, 2, 8).max(), np.concatenate([a, a]).shape, a.astype(float).std().round(3))",
    "linear algebra": HEAD
    + "A = np.array([[3., 1.], [1., 2.]]); b = np.array([9., 8.])\nprint(np.linalg.solve(A, b), np.linalg.det(A).round(6))\n"
    "print((A @ b), np.linalg.inv(A).round(3), np.linalg.eigvalsh(A).round(4), np.linalg.svd(A).S.round(3))",
    "random numbers": HEAD
    + "rng = np.random.default_rng(42)\nprint(rng.normal(size=3).round(6), rng.integers(0, 10, 5))\n"
    "np.random.seed(1)\nprint(np.random.rand(2).round(6), np.random.randint(0, 9, 3), np.random.choice([1, 2, 3]))",
    "fits": HEAD
    + "x = np.linspace(0, 1, 5)\nc = np.polyfit(x, 2 * x + 1, 1)\nprint(c.round(6), np.polyval(c, 2).round(6))\n"
    "print(np.interp(0.3, x, x ** 2).round(4), np.trapezoid(x, x) if hasattr(np, 'trapezoid') else 0.5)",
    "types and errors": HEAD
    + "print(isinstance(np.zeros(2), np.ndarray), isinstance(pd.DataFrame(), pd.DataFrame), np.float64(2) ** 2)\n"
    "try:\n    np.zeros(2) + np.zeros(3)\nexcept ValueError as e:\n    print(e)\ntry:\n    pd.DataFrame({'a': [1]})['b']\n"
    "except KeyError as e:\n    print('no', e)",
    "categories and bins": SALES + "print(pd.cut(df.sold, [0, 2, 5, 10], labels=['l', 'm', 'h']).tolist())\n"
    "c = df['shop'].astype('category')\nprint(c.cat.codes.tolist(), c.cat.categories.tolist())\nprint(pd.get_dummies(df['shop']).sum())",
    "what a table is": SALES
    + "out = io.StringIO()\ndf.info(buf=out)\nprint(out.getvalue())\ndf.info()\ndf['sold'].info()\n"
    "print(type(df) == pd.DataFrame, type(df), type(df['sold']) is pd.Series, type(np.zeros(1)), type(df.index))\n"
    "print(pd.DataFrame.equals(df, df.copy()), [pd.DataFrame.count(one).sum() for one in (df, df.head(1))])\n"
    "print(None | pd.DataFrame)",
    "options": HEAD
    + "kept = pd.options.display.max_rows\npd.options.display.max_rows = 20\nprint(pd.get_option('display.max_rows'))\n"
    "pd.set_option('display.max_columns', None, 'display.max_rows', kept)\n"
    "print(pd.options.display.max_columns, pd.options.display.max_rows == kept)\n"
    "try:\n    pd.get_option('display.nothing')\nexcept KeyError as e:\n    print(type(e).__name__)",
    "loops over rows": SALES + "for i, row in df.head(2).iterrows():\n    print(i, row['shop'], row.sold)\n"
    "for t in df.head(2).itertuples(index=False):\n    print(t[1], t[2])\nprint(df.to_dict('records')[0]['sold'], df.iloc[1, 2], df.at[0, 'shop'])",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_programs_of_analysis_run_unchanged(what: str) -> None:
    assert guarded(PROGRAMS[what], BOTH) == plain(PROGRAMS[what])


@dataclasses.dataclass
class Vault:
    name: str = "n"
    _secret: str = "CANARY"
    open: str = "CANARY"


REFUSED = {
    "np.load": "np.load('/etc/passwd')",
    "np.loadtxt of a path": "np.loadtxt('/etc/passwd')",
    "np.genfromtxt of a path": "np.genfromtxt('/etc/passwd', dtype=str)",
    "np.fromfile": "np.fromfile('/etc/passwd')",
    "np.memmap": "np.memmap('/etc/passwd')",
    "np.save": "np.save('/tmp/x', 1)",
    "tofile": "np.zeros(1).tofile('/tmp/x')",
    "dump": "np.zeros(1).dump('/tmp/x')",
    "an array's memory": "np.zeros(1).ctypes",
    "an array's base": "np.zeros(2)[:1].base",
    "raw arrays": "np.ndarray((1,), buffer=b'x')",
    "an unbound method": "x = np.ndarray.tofile",
    "strided views": "np.lib.stride_tricks.as_strided",
    "variables of frames": "np.bmat('x')",
    "modules of a module": "np.random.mtrand",
    "the core": "np.core",
    "a generator's bits": "np.random.default_rng().bit_generator",
    "an interface": "class A:\n    __array_interface__ = {'data': (0, False), 'shape': (1,), 'typestr': '<i8'}\nnp.asarray(A())",
    "an override": "class A:\n    def __array_function__(self, f, *_): return f.__globals__\nnp.sum(A())",
    "pickles": "pd.read_pickle('/tmp/x')",
    "a pickle of a table": "pd.DataFrame().to_pickle('/tmp/x')",
    "a table to a file": "pd.DataFrame({'a': [1]}).to_csv('WRITTEN')",
    "a table to a file by keyword": "pd.DataFrame({'a': [1]}).to_csv(path_or_buf='WRITTEN')",
    "JSON to a file": "pd.Series([1]).to_json('WRITTEN')",
    "HTML to a file": "pd.DataFrame({'a': [1]}).to_html('WRITTEN')",
    "a method by name": "pd.DataFrame({'a': [1]}).agg('to_csv', path_or_buf='WRITTEN')",
    "a method by name, applied": "pd.DataFrame({'a': [1]}).apply('to_pickle', path='WRITTEN')",
    "a method by name in a list": "pd.DataFrame({'a': [1]}).agg(['sum', 'to_pickle'])",
    "a method by name in a dict": "pd.DataFrame({'a': [1]}).agg({'a': 'to_pickle'})",
    "a method by name, grouped": "pd.DataFrame({'a': [1]}).groupby('a').agg('to_pickle')",
    "a method by name of a pair": "pd.DataFrame({'a': [1], 'b': 1}).groupby('a').agg(x=('b', 'to_pickle'))",
    "a method by name, transformed": "pd.Series([1]).transform('to_pickle')",
    "a method by name, pivoted": "pd.pivot_table(pd.DataFrame({'a': [1], 'b': 1}), index='a', aggfunc='to_pickle')",
    "a name that lies": "class S(str):\n    def __eq__(self, o): return True\n    def __hash__(self): return hash('sum')\n"
    "pd.DataFrame({'a': [1]}).agg(S('to_pickle'))",
    "a method by name in a pair of its own": "pd.DataFrame({'a': [1], 'b': 1}).groupby('a').agg(x=pd.NamedAgg('b', 'to_pickle'))",
    "a method by name in a list of its own": "class L(list): pass\npd.DataFrame({'a': [1]}).agg(L(['to_pickle']))",
    "a method by name of what walks": "class W:\n    def __call__(self, x): return x\n    def __iter__(self): return iter(['to_pickle'])\n"
    "pd.DataFrame({'a': [1]}).agg(W())",
    "evaluated attributes": "pd.DataFrame({'a': [1]}).query('a.__class__ == 1')",
    "evaluated calls": "pd.DataFrame({'a': [1]}).eval('@print(1)')",
    "evaluated variables of the host": "pd.DataFrame({'a': [1]}).query('a == @function')",
    "pd.eval": "pd.eval('1')",
    "a file read": "pd.read_csv('/etc/passwd')",
    "an address read": "pd.read_json('http://127.0.0.1/')",
    "plots by a module's name": "pd.Series([1]).plot(backend='os')",
    "modules of pandas": "pd.io.common",
    "objects as rows": "pd.DataFrame([vault])",
    "objects as rows by type": "type(pd.DataFrame())([vault])",
    "a slow pattern": "pd.Series(['a' * 40 + 'b']).str.contains('(a+)+$')",
    "too many zeros": "np.zeros(10**12)",
    "too many ones": "np.ones((10**6, 10**6))",
    "too long a range": "np.arange(10**12)",
    "too many copies": "np.tile(np.zeros(1000), 10**9)",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_reaches_out_is_refused(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L1, L3, L4, L5, L8, L10."""
    monkeypatch.chdir(tmp_path)
    policy = BOTH.cls(Vault, include=["name"], constructable=False)
    found = guarded(HEAD + REFUSED[what], policy, {"vault": Vault()})
    assert found.error in ("SecurityError", "refused", "AttributeError", "MemoryError", "TypeError", "NameError"), found
    assert "CANARY" not in found.text
    assert not list(tmp_path.iterdir())


TOO_LARGE = [
    "np.full(10**9, 1.0)",
    "np.zeros(10, dtype='U100000000')",
    "np.array(['a'], dtype='V2000000000')",
    "np.array([1]).astype('S2000000000')",
    "np.zeros_like([1], shape=(10**9,))",
    "np.eye(10**5)",
    "np.tri(10**5)",
    "np.identity(10**5)",
    "np.indices((10**5, 10**5))",
    "np.fromfunction(lambda i: i, (10**10,))",
    "np.geomspace(1, 2, 10**10)",
    "np.hanning(10**10)",
    "np.repeat([1, 2], 10**10)",
    "np.arange(3).repeat(10**10)",
    "np.tile([1], (10**5, 10**5))",
    "np.outer(np.arange(10**5), np.arange(10**5))",
    "np.add.outer(np.arange(10**5), np.arange(10**5))",
    "np.kron(np.eye(1000), np.eye(1000))",
    "np.meshgrid(np.arange(10**5), np.arange(10**5))",
    "np.mgrid[0:10**5, 0:10**5]",
    "np.mgrid[0:1:100000j, 0:1:100000j]",
    "np.r_[0:10**10]",
    "np.concatenate([np.zeros(10**6)] * 1000)",
    "np.stack([np.zeros(10**6)] * 1000)",
    "np.array([[0] * 10**4] * 10**6)",
    "np.resize([1], 10**10)",
    "np.pad([1], 10**10)",
    "np.diag(np.zeros(10**5))",
    "np.bincount([10**10])",
    "np.bincount([1], minlength=10**10)",
    "np.histogram([1], bins=10**10)",
    "np.vander(np.arange(10**5))",
    "np.tensordot(np.zeros(10**5), np.zeros(10**5), axes=0)",
    "np.einsum('i,j->ij', np.zeros(10**5), np.zeros(10**5))",
    "np.zeros((10**5, 1)) @ np.zeros((1, 10**5)) if False else np.dot(np.zeros((10**5, 1)), np.zeros((1, 10**5)))",
    "np.inner(np.zeros((10**5, 1)), np.zeros((10**5, 1)))",
    "np.fft.fft([1], n=10**10)",
    "np.fft.fftn([[1]], s=(10**5, 10**5))",
    "np.char.multiply(['a'], 10**10)",
    "np.char.ljust(['a'], 10**10)",
    "np.linalg.matrix_power(np.eye(2), 10**12)",
    "np.cov(np.zeros((10**5, 1)))",
    "np.random.rand(10**5, 10**5)",
    "np.random.normal(0, 1, 10**10)",
    "np.random.default_rng().normal(size=(10**5, 10**5))",
    "np.random.default_rng().integers(0, 9, 10**10)",
    "np.random.default_rng().bytes(10**11)",
    "np.random.RandomState(1).rand(10**10)",
]


@pytest.mark.parametrize("expression", TOO_LARGE)
def test_results_that_would_not_fit_are_refused_before_they_are_made(expression: str) -> None:
    """L10: whatever takes the room, by a MemoryError of the guard's own."""
    found = guarded(f"{HEAD}x = {expression}", BOTH)
    assert found.error == "MemoryError", found
    assert "the most here are" in found.message or "a power of" in found.message, found


LYING = (
    HEAD + "class N:\n    n = 0\n    def __index__(self):\n        N.n += 1\n        return 1 if N.n < 2 else 10**12\n"
)


@pytest.mark.parametrize("call", ["np.zeros(N())", "np.tile([1], N())", "np.ones((N(), 1))", "np.random.rand(N())"])
def test_a_size_is_an_integer_that_stays_what_it_is(call: str) -> None:
    """L9."""
    assert guarded(f"{LYING}{call}", BOTH).error == "TypeError"


def test_what_is_bounded_gives_what_numpy_gives() -> None:
    source = HEAD + (
        "a = np.arange(6.).reshape(2, 3)\n"
        "print(np.full((2, 2), 7), np.eye(2, 3, k=1), np.repeat(a, [1, 2], axis=0), np.tile(a, (1, 2)), a.repeat(2))\n"
        "print(np.outer([1, 2], [3, 4]), np.kron([1, 2], [1, 1]), np.meshgrid([1, 2], [3, 4]), np.mgrid[0:2, 0:2])\n"
        "print(np.r_[0:3, 5], np.c_[[1, 2], [3, 4]], np.ogrid[0:2, 0:1:3j], np.pad(a, ((1, 1), (0, 2))), np.diag([1, 2]))\n"
        "print(np.concatenate([a, a], axis=1), np.stack([a, a]).shape, np.vstack((a, a)), np.block([[a, a]]))\n"
        "print(np.einsum('ij,ij->i', a, a), np.einsum('ij->ji', a), np.tensordot(a, a, axes=([1], [1])), a.dot(a.T))\n"
        "print(np.histogram([1, 2, 2], bins=2), np.histogram2d([1, 2], [1, 2], bins=2)[0], np.bincount([1, 1, 3]))\n"
        "print(np.fft.fft([1, 0, 0]), np.cov(a), np.array([[1, 2], [3, 4]], dtype='f4'), np.zeros((2,), dtype=int))\n"
        "print(np.linspace(0, 1, 3), np.vander([1, 2], 3), np.char.multiply(['a'], 3), np.add.outer([1], [2]))\n"
        "r = np.random.default_rng(1)\nprint(r.normal(0, 1, 2), r.integers(5), r.choice([1, 2, 3], 2), r.permutation(3))\n"
        "print(np.array([1, 2]).astype('U5'), np.ones_like(a), np.identity(2), np.dot(a, a.T), np.inner([1, 2], [3, 4]))\n"
    )
    assert guarded(source, BOTH) == plain(source)


def test_attributes_of_objects_are_no_json() -> None:
    """L1: pandas's encoder walks the attributes of what it does not know."""
    policy = BOTH.cls(Vault, include=["name"], constructable=False)
    source = (
        "print(pd.Series([vault]).map(type).size, 'open' in pd.DataFrame({'a': [vault]}).to_json().split('Vault')[0])"
    )
    assert guarded(HEAD + source, policy, {"vault": Vault()}).text == "1 False\n"


def test_libraries_are_granted_by_name_alone() -> None:
    assert guarded("import numpy").error == "refused"
    assert guarded("import pandas", Policy(libraries=["numpy"])).error == "refused"
    assert guarded("import numpy.linalg as l\nprint(l.norm([3, 4]))", Policy(libraries=["numpy"])).text == "5.0\n"


def test_the_hosts_generator_is_not_drawn_from() -> None:
    """L8."""
    import numpy

    before = numpy.random.get_state()[1].tolist()
    guarded(HEAD + "np.random.seed(3); np.random.rand(5); np.random.shuffle([1, 2])", BOTH)
    assert numpy.random.get_state()[1].tolist() == before
