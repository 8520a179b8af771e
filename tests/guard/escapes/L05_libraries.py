#: pandas-eval
#: threat: L5
#: from: pandas evaluates source
#: proves: canary
#: refused: import
#: grants: pandas
import pandas
result = pandas.eval("vault._secret", engine="python", parser="python")
#: pandas-query-at
#: threat: L5
#: from: DataFrame.query with @ reads the caller's frame
#: proves: canary
#: refused: builtin
#: grants: pandas
import pandas
frame = pandas.DataFrame({"a": [vault.name()]})
result = frame.eval("@vault._secret")
#: pandas-query-method
#: threat: L5
#: from: DataFrame.query calls methods of columns
#: proves: canary
#: refused: builtin
#: grants: pandas
import pandas
frame = pandas.DataFrame({"a": ["x"]})
result = frame.eval("@greet.__globals__['CANARY']")
#: pandas-read-pickle
#: threat: L5
#: from: pandas unpickles
#: proves: canary
#: refused: import
#: grants: pandas
import pandas, io
result = pandas.read_pickle(io.BytesIO(b"cvaults\nCANARY\n."))
#: pandas-read-csv-path
#: threat: L5
#: from: pandas opens files
#: proves: canary
#: refused: builtin
#: grants: pandas
import pandas, toolbox
result = pandas.read_csv(toolbox.WHERE, header=None).to_string()
#: pandas-read-fwf-and-table
#: threat: L5
#: from: pandas opens files
#: proves: canary
#: refused: builtin
#: grants: pandas
import pandas, toolbox
result = pandas.read_table(toolbox.WHERE, header=None).to_dict()
#: pandas-file-url
#: threat: L5
#: from: pandas opens addresses
#: proves: canary
#: refused: builtin
#: grants: pandas
import pandas, toolbox
result = pandas.read_csv("file://" + toolbox.WHERE, header=None).to_string()
#: pandas-to-csv-path
#: threat: L5
#: from: pandas writes files
#: proves: canary
#: refused: builtin
#: grants: pandas
import pandas, toolbox
pandas.DataFrame({"a": [1]}).to_csv(toolbox.WHERE + ".csv")
result = pandas.read_csv(toolbox.WHERE, header=None).to_string()
#: pandas-apply-by-name
#: threat: L5
#: from: pandas calls methods by name
#: proves: canary
#: refused: attribute
#: grants: pandas
import pandas
result = pandas.Series([1]).apply("__getattribute__", args=("__init__",)).__func__.__globals__["sys"].modules["vaults"].CANARY
#: pandas-map-getattr
#: threat: L5
#: from: pandas calls functions
#: proves: canary
#: refused: attribute
#: grants: pandas
import pandas
result = pandas.Series([vault]).map(vars).tolist()
#: pandas-pipe
#: threat: L5
#: from: pandas calls functions
#: proves: canary
#: refused: attribute
#: grants: pandas
import pandas
result = pandas.DataFrame({"a": [1]}).pipe(lambda f: getattr(vault, "_secret"))
#: pandas-submodule-os
#: threat: L4
#: from: modules within pandas
#: proves: canary
#: refused: import
#: grants: pandas
import pandas
result = pandas.io.common.os.environ["CANARY"]
#: pandas-compat-import
#: threat: L4
#: from: modules within pandas
#: proves: canary
#: refused: import
#: grants: pandas
import pandas
result = pandas.compat._optional.importlib.import_module("vaults").CANARY
#: pandas-format-style
#: threat: L1
#: from: format strings that a library applies
#: proves: canary
#: refused: format
#: grants: pandas
import pandas
result = pandas.Series([vault]).map("{0._secret}".format).tolist()
#: numpy-load-pickle
#: threat: L5
#: from: numpy unpickles
#: proves: canary
#: refused: import
#: grants: numpy
import numpy, io
result = numpy.load(io.BytesIO(b"cvaults\nCANARY\n."), allow_pickle=True)
#: numpy-fromfile
#: threat: L5
#: from: numpy opens files
#: proves: canary
#: refused: import
#: grants: numpy
import numpy, toolbox
result = bytes(numpy.fromfile(toolbox.WHERE, dtype="u1"))
#: numpy-loadtxt
#: threat: L5
#: from: numpy opens files
#: proves: canary
#: refused: builtin
#: grants: numpy
import numpy, toolbox
result = numpy.loadtxt(toolbox.WHERE, dtype=str)
#: numpy-genfromtxt
#: threat: L5
#: from: numpy opens files
#: proves: canary
#: refused: builtin
#: grants: numpy
import numpy, toolbox
result = numpy.genfromtxt(toolbox.WHERE, dtype=str)
#: numpy-memmap
#: threat: L5
#: from: numpy maps files
#: proves: canary
#: refused: import
#: grants: numpy
import numpy, toolbox
result = bytes(numpy.memmap(toolbox.WHERE, mode="r"))
#: numpy-testing-modules
#: threat: L4
#: from: modules within numpy
#: proves: canary
#: refused: import
#: grants: numpy
import numpy
result = numpy.testing._private.utils.os.environ["CANARY"]
#: numpy-frompyfunc-getattr
#: threat: L5
#: from: numpy calls functions
#: proves: canary
#: refused: attribute
#: grants: numpy
import numpy
result = numpy.frompyfunc(getattr, 2, 1)(vault, "_secret")
#: numpy-vectorize-vars
#: threat: L5
#: from: numpy calls functions
#: proves: canary
#: refused: attribute
#: grants: numpy
import numpy
result = numpy.vectorize(vars, otypes=[object])(numpy.array([vault], dtype=object))
#: numpy-ctypes-of-array
#: threat: L5
#: from: arrays know their address
#: proves: canary
#: refused: attribute
#: grants: numpy
import numpy
a = numpy.array([vault], dtype=object)
result = a.ctypes._ctypes.cast(a.ctypes.data, a.ctypes._ctypes.POINTER(a.ctypes._ctypes.py_object))[0]._secret
#: numpy-function-globals
#: threat: L3
#: from: functions know their globals
#: proves: canary
#: refused: attribute
#: grants: numpy
import numpy
result = numpy.poly1d.__init__.__globals__["__builtins__"]["__import__"]("vaults").CANARY
#: numpy-array-function-hook
#: threat: L9
#: from: protocols hand over numpy's own functions
#: proves: canary
#: refused: class
#: grants: numpy
import numpy
class A:
    def __array_function__(self, func, types, args, kwargs):
        return func.__globals__["__builtins__"]["__import__"]("vaults").CANARY if hasattr(func, "__globals__") else func.__wrapped__.__globals__["__builtins__"]["__import__"]("vaults").CANARY
result = numpy.sum(A())
#: numpy-array-interface
#: threat: L9
#: from: __array_interface__ reads any address
#: proves: canary
#: refused: class
#: grants: numpy
import numpy
text = vault.__dict__["_secret"] if hasattr(vault, "__dict__") else "x" * 24
class A:
    __array_interface__ = {"shape": (120,), "typestr": "|u1", "data": (id(text), True), "version": 3}
result = bytes(numpy.array(A()))
#: pandas-groups-filtered-by-name
#: threat: L5
#: from: methods that call what a text names: found by the lint
#: proves: canary
#: refused: attribute
#: grants: pandas
import io, pandas
b = io.BytesIO()
pandas.Series([vault, vault]).groupby([0, 0]).filter("to_pickle", path=b)
result = b.getvalue()
#: pandas-replace-with-a-pattern
#: threat: L10
#: from: patterns where few look
#: proves: hangs
#: refused: size
#: grants: pandas
#: plain: it does not end
import pandas
pandas.Series(["a" * 60 + "b"]).replace("(a+)+$", "x", regex=True)
#: numpy-text-formats
#: threat: L1
#: from: a scalar of a library that is a kind of text
#: proves: canary
#: refused: format
#: grants: numpy
import numpy
result = numpy.str_("{0._secret}").format(vault)
#: numpy-layout-changed-through-a-view
#: threat: L8
#: from: pyjails: comparing a read-only view hands its dict to __eq__ of the other side
#: proves: canary
#: harmless: a view is one of a copy
#: grants: numpy
import numpy
class Got:
    def __eq__(self, other):
        other["a"] = vault
d = numpy.dtype([("a", int)])
d.fields == Got()
result = d.fields["a"]._secret
