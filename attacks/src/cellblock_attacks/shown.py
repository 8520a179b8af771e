"""W8: what the host does with what came out of a session."""

from __future__ import annotations

import json
from decimal import Decimal

from cellblock_attacks.attack import Attack, Table, one_of
from cellblock_attacks.host import Host, refusal_of

_DATA = "what comes out is data, escaped where it is shown"


_host = Table("shown", "W8").host


_TAG = "<script>alert('x')</script>"


def _exports(host: Host) -> object:
    """Tags in everything that an export shows: source, streams, results, errors, and an HTML output."""
    host.session.run(f"print({_TAG!r})\nimport sys\nprint({_TAG!r}, file=sys.stderr)\n{_TAG!r}")
    host.session.run(f"raise type({_TAG!r}, (Exception,), {{}})({_TAG!r})")
    host.session.run(f"class Shown:\n    def _repr_html_(self): return {_TAG!r}\nShown()")
    page = host.session.notebook.to_html()
    book = host.session.notebook.to_ipynb()
    json.dumps(book)
    return {"script": "<script>alert" in page, "page": page.lstrip()[:9].lower()}


def _scripts(host: Host) -> object:
    """Outputs that are scripts, SVG and HTML with one in it, and text that reads otherwise than it is."""
    host.session.run(
        "class Script:\n    def _repr_mimebundle_(self, **_):\n        script = 'al' + 'ert(1)'\n"
        "        return {'application/javascript': script, 'text/JavaScript': script, 'text/plain': 'a'}\nScript()"
    )
    host.session.run("class Svg:\n    def _repr_svg_(self): return '<svg on' + 'load=\"al' + 'ert(2)\"/>'\nSvg()")
    host.session.run("class Html:\n    def _repr_html_(self): return '<b on' + 'click=\"al' + 'ert(3)\">b</b>'\nHtml()")
    host.session.run("print('a\U000e0061\u202e\u3164')")
    page, book = host.session.notebook.to_html(), json.dumps(host.session.notebook.to_ipynb())
    words = ("alert(1)", "alert(2)", "alert(3)", "onload", "onclick")
    return {
        "page": [word for word in (*words, "\u202e", "\U000e0061", "\u3164") if word in page],
        "notebook": [word for word in words if word in book],
        "named": page.count("a[U+E0061][U+202E][U+3164]"),
    }


def _terminal_escapes(host: Host) -> object:
    cell = host.session.run(
        "print('\\x1b]0;title\\x07\\x1b[2J')\nraise ValueError('\\x1b[31mred\\n\\rforged log line')"
    )
    return [cell.outputs[0].data["text/plain"], cell.error and cell.error.message]


def _errors_of_the_host(host: Host) -> object:
    """Text of a cell's code in the exception that the host gets while its value is rebuilt."""
    host.session.run(
        "import decimal\nkept = decimal.Decimal\n"
        "text = '\\x1b]0;title\\x07\\x1b[2J\\nERROR:root:forged\\u202e' + 'x' * 9000\n"
        "def fail(*_): raise ValueError(text)\ndecimal.Decimal = fail"
    )
    said = str(refusal_of(host.session.__setitem__, "x", Decimal(1)))
    host.session.run("decimal.Decimal = kept")
    return [said.isprintable(), len(said) < 1000, "ERROR:root:forged" in said]


def _uris(host: Host) -> object:
    names = (
        "notebook://cell/../../etc/passwd",
        "notebook://cell/x/image/../0",
        "file:///etc/passwd",
        "/etc/passwd",
        "",
    )
    return sorted({str(refusal_of(host.session.read_output, name)).split(":")[0] for name in names})


def _file_names(host: Host) -> object:
    host.cell("os.makedirs('named', exist_ok=True)")
    host.cell(r"for name in ('a\nb', '\x1b[2J', '-rf', '..x', '<b>'): open('named/' + name, 'w').write('kept')")
    names = [name for name in host.session.files.list() if name.startswith("named/")]
    read = {bytes(host.session.files.read(name)) for name in names}
    host.cell("import shutil; shutil.rmtree('named')")
    return {"names": names, "read": read == {b"kept"}}


def _file_names_that_are_no_text(host: Host) -> object:
    host.cell(r"os.makedirs('bytes', exist_ok=True); open(b'bytes/\xff\xfe', 'w').write('kept')")
    names = [name for name in host.session.files.list() if name.startswith("bytes/")]
    read = [bytes(host.session.files.read(name)).decode() for name in names]
    host.cell("import shutil; shutil.rmtree('bytes')")
    return read


def _pickles(host: Host) -> object:
    """Objects whose unpickling would write to the host's folder: by value, by name, and in what names shows."""
    host.session.run(f"""
class Trap:
    def __reduce__(self): return (open, ({str(host.folder / "planted")!r}, "w"))
    def __repr__(self): return "trap"
trap = Trap()
""")
    values = [host.session.run("trap").value, host.session["trap"]]
    return [type(value).__name__ for value in values] + [host.session.names()["trap"].preview]


def _values(host: Host) -> object:
    """Subclasses of plain types: the host gets a plain value or an Opaque, never an object of a cell's class."""
    host.session.run(
        "class S(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\n"
        "class I(int): pass\nclass D(dict):\n    def items(self): return 'lies'\n"
        "class L(list):\n    def __iter__(self): return iter('lies')\n"
    )
    return sorted({type(host.session.run(code).value).__name__ for code in ("S('x')", "I(1)", "D(a=1)", "L([1])")})


ATTACKS: tuple[Attack, ...] = (
    _host("tags-in-exports", _DATA, {"script": False, "page": "<!doctype"}, _exports),
    _host(
        "terminal-escapes", _DATA, ["\x1b]0;title\x07\x1b[2J\n", "\x1b[31mred\n\rforged log line"], _terminal_escapes
    ),
    _host("scripts", _DATA, {"page": [], "notebook": [], "named": 2}, _scripts),
    _host("errors-of-the-host", _DATA, [True, True, True], _errors_of_the_host),
    _host("uris", "a URI is matched as a whole and looked up in a table", ["UnknownCell"], _uris),
    _host(
        "file-names",
        _DATA,
        {
            "names": ["named/\x1b[2J", "named/-rf", "named/..x", "named/<b>", "named/a\nb"],
            "read": True,
        },
        _file_names,
    ),
    _host("file-names-that-are-no-text", "names travel as the bytes they are", ["kept"], _file_names_that_are_no_text),
    _host("pickles", "the host never unpickles", ["Opaque", "Opaque", "trap"], _pickles),
    _host(
        "subclasses-of-plain-types",
        "values are rebuilt from a table of types",
        one_of(
            ["Opaque"],
            ["Opaque", "dict", "int", "list", "str"],
            ["dict", "int", "list", "str"],
        ),
        _values,
    ),
)
