"""Where rewritten code does not ask before each attribute: whatever a name was bound to before, a thing of the host is
asked about. `thing` has no grant; its attributes are those of lists and of the programs' own objects."""

# ruff: noqa: E501 - each program is one line

import asyncio

import pytest
from runner import Shown, guarded, plain

from cellblock.guard.world import World


class Thing:
    """Answers to every name that the programs below read."""

    x = append = keys = "reached"

    def __iter__(self):
        return iter([self])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


OWN = """
class Own:
    x = 1
    def __init__(self): self.append = self.keys = 2
own = Own()
"""

REBOUND = {
    "an argument": "def f(o): return [o.x, o.x, o.append]\nf(own); f(own); f(thing)",
    "an argument by default": "def f(o=thing): o.x; o.append\nf(own); f()",
    "an argument by star": "def f(*o): return o[0].x, o[0].append\nf(own); f(thing)",
    "a keyword argument": "def f(*, o): o.x; o.append\nf(o=own); f(o=thing)",
    "an argument in a loop": "def f(o):\n    for _ in range(2): o.x\nf(own); f(thing)",
    "an argument that is set": "def f(o): o.x = 1; o.append = 2\nf(own); f(thing)",
    "an argument that is added to": "def f(o): o.x += ''; o.append += ''\nf(thing)",
    "an assignment after an argument": "def f(o):\n    o.x; o.append\n    o = thing\n    o.x; o.append\nf(own)",
    "several targets": "def f(o):\n    o.x\n    a = o = thing\n    o.x\nf(own)",
    "unpacking": "def f(o):\n    o.x\n    o, *rest = thing, 1\n    o.x\nf(own)",
    "a starred target": "def f(o):\n    o.x\n    *o, p = thing, 1\n    o[0].x\nf(own)",
    "an assignment expression": "def f(o):\n    o.x\n    (o := thing)\n    o.x\nf(own)",
    "an assignment expression inside": "def f(o):\n    return o.x, (o := thing), o.x\nf(own)",
    "an assignment expression in a comprehension": "def f(o):\n    o.x\n    [o := thing for _ in '1']\n    o.x\nf(own)",
    "a loop": "def f():\n    for o in [own, own, thing]: o.x; o.append\nf()",
    "a loop's tuple": "def f():\n    for n, o in [(1, own), (2, thing)]: o.x; o.append\nf()",
    "a loop in a loop": "def f():\n    for o in [own]:\n        for o in [thing]: o.x\n        o.append\nf()",
    "after a loop": "def f():\n    for o in [own, thing]:\n        if o is own: o.x; o.append\n    o.x\nf()",
    "a loop after an argument": "def f(o):\n    o.x; o.append\n    for o in [thing]: o.x\nf(own)",
    "a loop's else": "def f(o):\n    for o in [thing]: pass\n    else: o.x; o.append\nf(own)",
    "a loop that ends": "def f():\n    for o in [own]: o.x; o.append\n    o = thing\n    o.x\nf()",
    "a with statement": "def f(o):\n    o.x; o.append\n    with thing as o: o.x\nf(own)",
    "an import": "def f(o):\n    o.x; o.append\n    import math as o\n    o.x\nf(thing)",
    "a pattern": "def f(o):\n    o.x; o.append\n    match thing:\n        case o: o.x\nf(own)",
    "a name of another function": "def f(o):\n    def g():\n        nonlocal o\n        o = thing\n    o.x; o.append\n    g()\n"
    "    o.x; o.append\nf(own)",
    "a name of a class in a function": "def f(o):\n    o.x; o.append\n    class C:\n        nonlocal o\n        o = thing\n"
    "    o.x\nf(own)",
    "a name of two functions around": "def f(o):\n    def g():\n        def h():\n            nonlocal o\n            o = thing\n"
    "        h()\n    o.x; o.append\n    g()\n    return o.x\nf(own)",
    "a name read inside": "def f(o):\n    o.x\n    def g(): return o.x\n    o = thing\n    return g()\nf(own)",
    "a global name": "def f():\n    global o\n    o = []\n    o.append(1)\n    o = thing\n    o.append(1)\nf()",
    "a global name from elsewhere": "o = []\ndef f(): o.append(1)\nf(); o = thing; f()",
    "a global name in globals": "o = []\ndef f():\n    o.append(1)\n    globals()['o'] = thing\n    o.append(1)\nf()",
    "a literal and another": "def f():\n    o = []\n    o.append(1)\n    o = thing\n    o.append(1)\nf()",
    "a literal and an argument": "def f(o):\n    if o is own: o = []\n    o.append\nf(own); f(thing)",
    "a literal and a loop": "def f():\n    o = []\n    for o in [[], thing]: o.append\nf()",
    "a literal of another type": "def f(n):\n    o = []\n    if n: o = {}\n    o.append, thing.append\nf(0)",
    "a literal and nonlocal": "def f():\n    o = []\n    def g():\n        nonlocal o\n        o = thing\n    o.append\n    g()\n"
    "    o.append\nf()",
    "a literal that is added to": "class R:\n    def __radd__(self, other): return thing\ndef f():\n    o = []\n    o += R()\n"
    "    return o.append\nf()",
    "a comprehension": "[o.x for o in [own, thing]]",
    "a comprehension in a function": "def f(): return {o.x for o in [own, thing]}\nf()",
    "a comprehension's second loop": "[o.x for p in [own, thing] for o in [p]]",
    "a comprehension's later iterable": "[o for p in [own, thing] for o in str(p.x)]",
    "a comprehension's condition": "[1 for o in [own, thing] if o.x]",
    "a generator expression": "list(o.x for o in [own, thing])",
    "a comprehension in a comprehension": "[[o.x for _ in 'a'] for o in [own, thing]]",
    "a lambda in a comprehension": "[(lambda: o.x)() for o in [own, thing]]",
    "a lambda's argument": "f = lambda o: (o.x, o.append)\nf(own); f(thing)",
    "a method's object": "Own.m = lambda self: (self.x, self.append)\nown.m(); Own.m(thing)",
    "a method's object in a def": "class C:\n    x = append = 1\n    def m(self): return self.x, self.append\nC().m(); C.m(thing)",
    "a generator's argument": "def f(o):\n    yield o.x\n    yield o.append\nlist(f(own)); list(f(thing))",
    "what a generator is sent": "def f(o):\n    o.x\n    o = yield\n    o.x; o.append\ng = f(own); next(g); g.send(thing)",
    "a coroutine's argument": "async def f(o): o.x; o.append\nawait f(own)\nawait f(thing)",
    "a deleted name": "def f(o):\n    o.x; o.append\n    del o\n    o = thing\n    o.x\nf(own)",
    "a module's loop": "for o in [own, own, thing]: o.x; o.append",
    "a module's name": "o = []\no.append(1)\no = thing\no.append(1)",
    "a module's expression": "thing.x",
    "a class body": "class C:\n    o = own\n    o.x\n    o = thing\n    o.x",
}
"""Each binds a name to the program's own first, then to the host's, and reads attributes of it all along."""


@pytest.mark.parametrize("form", REBOUND)
def test_a_thing_of_the_host_is_asked_about_however_a_name_came_to_it(form):
    if form.startswith("a coroutine"):
        shown = awaited(OWN + REBOUND[form], thing=Thing())
    else:
        shown = guarded(OWN + REBOUND[form], host={"thing": Thing()})
    assert (shown.error, "is not granted" in shown.message or "cannot be set" in shown.message) == (
        "SecurityError",
        True,
    ), shown


@pytest.mark.parametrize("form", [form for form in REBOUND if not form.startswith("a coroutine")])
def test_with_objects_of_its_own_each_runs_as_in_cpython(form):
    source = "class Thing(Own):\n    keys = append = x = ''\n    def __init__(self): pass\n"
    source += "    def __iter__(self): return iter([self])\n    def __enter__(self): return self\n"
    source = OWN + source + "    def __exit__(self, *_): pass\nthing = Thing()\n" + REBOUND[form]
    ours, theirs = guarded(source), plain(source)
    assert (ours.text, ours.error, ours.line) == (theirs.text, theirs.error, theirs.line)


def awaited(source, **host):
    world = World(write=lambda stream, text: None)
    world.globals.update(host)

    async def run():
        for code in world.run(world.check(source, "<cell 1>")):
            await eval(code, world.globals)

    try:
        world.ending.begin()
        asyncio.run(run())
    except Exception as error:
        return Shown("", type(error).__name__, None, str(error))
    finally:
        world.ending.end()
    raise AssertionError("it ran to its end")


UNCOVERED = """
class Text(str):
    def center(self, *_): return 1
    def upper(self): return 2
class Below(Text): pass
def f(o):
    o.upper(), o.upper()
    del Text.{name}
    return o.{name}({given})
print(f({kind}('a')))
"""


@pytest.mark.parametrize("kind", ["Text", "Below"])
def test_what_hides_another_attribute_stays(kind):
    shown = guarded(UNCOVERED.format(name="center", given="10**11", kind=kind))
    assert shown.message == "attribute 'center' of class 'Text' cannot be deleted: it hides another [store]"
    assert guarded(UNCOVERED.format(name="upper", given="", kind=kind)).text == "A\n"


LARGE = {
    "a number, then a list": "def f():\n    x = 2\n    x = [0]\n    return x * n\nf()",
    "a list, then a number": "def f():\n    x = [0]\n    for i in range(3): x = x * n\n    x = 2\nf()",
    "an argument": "def f(x): return x * n\nf([0])",
    "both arguments": "def f(x, y): return x * y\nf(2, 3); f([0], n)",
    "the count first": "def f(x, y): return x * y\nf(n, '0')",
    "an argument and a number": "def f(x):\n    y = 3\n    y = n * 1\n    return y * x\nf(b'0')",
    "a number that a loop counts": "def f(x):\n    for i in range(10**9, 10**10): return i * x\nf([0])",
    "a number that a loop counts, second": "def f(x):\n    for i in range(10**9, 10**10): return x * i\nf((0,))",
    "a constant": "def f(x): return x * 1000000000\nf([0])",
    "a constant first": "def f(x): return 1000000000 * x\nf('0')",
    "a text and an argument": "def f(x): return '0' * x\nf(n)",
    "a text in a lambda": "(lambda x: 'ab' * x)(n)",
    "a range that is another": "def f():\n    for x in range(2): x * n\ndef range(n): yield [0]\nf()",
    "a range that became another": "def f():\n    for x in range(2): x * n\nf(); globals()['range'] = lambda n: [[0]]; f()",
    "a range that counts far": "def f():\n    for x in range(9 ** 99999, 9 ** 99999 + 2):\n        while True: x = x * x\nf()",
    "unpacking": "def f():\n    x, y = 2, 3\n    x, y = [[0], n]\n    return x * y\nf()",
    "a pair that is swapped": "def f():\n    x, y = [0], 2\n    x, y = y, x\n    return y * n\nf()",
    "a starred pair": "def f():\n    x, *y = 2, 3\n    return y * n\nf()",
    "several targets": "def f():\n    x = y = 2\n    x = y = [0]\n    return y * n\nf()",
    "a sum": "class R:\n    def __radd__(self, other): return [0]\ndef f():\n    x = 2\n    x += R()\n    return x * n\nf()",
    "a sum written out": "class R:\n    def __radd__(self, other): return [0]\ndef f():\n    x = 2 + R()\n    return x * n\nf()",
    "a comparison": "class R:\n    def __gt__(self, other): return [0]\ndef f():\n    x = 2 < R()\n    return x * n\nf()",
    "either": "def f(x):\n    y = x or 2\n    return y * n\nf([0])",
    "one of two": "def f(x):\n    y = x if x else 2\n    return y * n\nf([0])",
    "an assignment expression": "def f():\n    x = 2\n    return (x := [0]) * n\nf()",
    "an assignment expression beside": "def f():\n    x = 2\n    return x * n, (x := [0]), x * n\nf()",
    "an assignment expression between": "def f(x): return x * (x := n)\nf([0])",
    "a function inside": "def f():\n    x = 2\n    def g():\n        nonlocal x\n        x = [0]\n    g()\n    return x * n\nf()",
    "in a function inside": "def f():\n    x = 2\n    def g(): return x * n\n    x = [0]\n    return g()\nf()",
    "in a lambda inside": "def f():\n    x = 2\n    x = '0'\n    return (lambda: x * n)()\nf()",
    "a class inside": "def f():\n    x = 2\n    class C:\n        x = [0]\n        y = x * n\nf()",
    "a global name": "x = 2\ndef f(): return x * n\nf(); x = [0]; f()",
    "a global name that is declared": "def f():\n    global x\n    x = 2\n    x = [0]\n    return x * n\nf()",
    "a comprehension": "[x * n for x in [2, [0]]]",
    "a comprehension over a range": "[y * x for x in range(10**9, 10**10) for y in [[0]]]",
    "a comprehension's name again": "[x * n for x in range(2) for x in [[0]]]",
    "a comprehension in a function": "def f(y): return [y * x for x in range(10**9, 10**10)]\nf([0])",
    "an exception's name": "def f():\n    x = 2\n    try: raise KeyError\n    except KeyError as x: pass\n    x = [0]\n    return x * n\nf()",
    "with": "class C:\n    def __enter__(self): return [0]\n    def __exit__(self, *_): pass\ndef f():\n    x = 2\n"
    "    with C() as x: x * n\nf()",
    "a pattern": "def f():\n    x = 2\n    match [0]:\n        case x: return x * n\nf()",
    "in place": "def f(x):\n    x *= n\nf([0])",
    "in place on a known name": "def f():\n    x = 2\n    x = [0]\n    x *= n\nf()",
    "in place by a text": "def f():\n    x = n * 1\n    x *= '0'\nf()",
    "in place on an attribute": "class C: x = [0]\ndef f(c):\n    c.x *= n\nf(C())",
    "in place on an item": "def f(c):\n    c[0] *= n\nf([[0]])",
    "an heir of list": "class L(list): pass\ndef f(x, y): return x * y\nf(L([0]), n)",
    "an heir of list that counts": "class L(list):\n    def __index__(self): return n\ndef f(x, y): return x * y\nf(L([0]), L([0]))",
    "a count that is an object": "class I:\n    def __index__(self): return n\ndef f(x, y): return x * y\nf([0], I())",
    "an heir of int": "class I(int): pass\ndef f(x, y): return x * y\nf([0], I(n))",
    "a width": "def f(x, y): return x % y\nf(1, 2); f('%9999999999d', 1)",
    "a width in place": "def f(x):\n    x %= 1\nf('%9999999999d')",
    "a width of a known name": "def f():\n    x = 2\n    x = '%9999999999d'\n    return x % 2\nf()",
    "a width by a star": "def f(x, y): return x % y\nf('%*d', (n * 10, 1))",
    "a shift": "def f(x, y): return x << y\nf(1, 2); f(1, n)",
    "a shift in place": "def f(x, y):\n    x <<= y\nf(1, n)",
    "a power": "def f(x, y): return x ** y\nf(2, 3); f(3, n)",
    "a power of a large number": "def f(x, y): return x ** y\nf(3 ** 99999, 999)",
    "a power in place": "def f(x, y):\n    x **= y\nf(3, n)",
    "squares": "def f():\n    x = 3\n    while True: x = x * x\nf()",
    "squares of negative numbers": "def f():\n    x = -3\n    while True: x = x * -x\nf()",
    "squares in place": "def f():\n    x = 3\n    while True: x *= x\nf()",
    "squares of an argument": "def f(x):\n    while True: x = x * x\nf(3)",
    "squares of a global name": "x = 3\nwhile True: x = x * x",
    "squares in a list": "x = [3]\nwhile True: x[0] *= x[0]",
    "squares of squares": "def f():\n    x = 3\n    for i in range(99): x = x * x * x * x\nf()",
}
"""Each comes to a sequence or a number that is too large, by a name that was a harmless number or might be one."""


@pytest.mark.parametrize("form", LARGE)
def test_nothing_large_is_made_however_an_operand_came_to_its_name(form):
    shown = guarded("n = 10 ** 9\n" + LARGE[form])
    assert shown.error in ("MemoryError", "OverflowError", "SecurityError"), shown
    assert shown.error != "SecurityError" or shown.message.startswith("a loop over a range of the code's own"), shown


TEXTS = {
    "a long text is split at its lines": "[x.rsplit('ab') for x in ['ab' * 2 * 10 ** 7]]",
    "one is replaced by a long one": "def f(x, y): return x.replace('a', y)\nf('a' * 10 ** 6, 'b' * 10 ** 6)",
    "a long one is replaced by a literal": "def f(x): return x.replace('a', '0123456789' * 2)\nf('a' * 10 ** 7)",
    "a literal is replaced by a long one": "'a'.replace('', 'b' * 10 ** 7).replace('b', 'c' * 10 ** 6)",
    "a literal is padded": "'a'.ljust(10 ** 10)",
    "a text is padded by a literal": "def f(x): return x.center(100000000000)\nf('a')",
    "bytes are padded": "def f(x): return x.zfill(100000000000)\nf(b'a')",
    "texts are joined": "def f(x): return x.join(['a' * 10 ** 6] * 10 ** 6)\nf('')",
    "an heir of str": "class S(str): pass\ndef f(x): return x.ljust(100000000000)\nf(S('a'))",
}


@pytest.mark.parametrize("form", TEXTS)
def test_no_method_of_a_text_makes_what_is_too_large(form):
    assert guarded(TEXTS[form]).error in ("MemoryError", "OverflowError")


@pytest.mark.parametrize("name", ["split", "replace", "ljust"])
def test_a_method_of_texts_is_asked_about_on_what_is_none(name):
    shown = guarded(f"def f(o): return o.{name}(9, 'b')\nf(o)", host={"o": Thing()})
    assert shown.message == f"attribute {name!r} of 'Thing' is not granted [attribute]"


ASKED_FIRST = """
class A:
    x = 1
    def __init__(self): self.keys = [self]
class B(A):
    def __init__(self): super().__init__()
def f(o):
    for _ in range(2): o.keys[0].x, o.keys[0].keys.append(1)
a, b = A(), B()
f(a); f(b)
del A.x
try: f(a)
except AttributeError: print('gone')
B.x = 3
f(b)
del B.x
import math
for _ in range(2): math.sqrt(4), [].append(1), {}.keys()
"""


def test_the_type_that_is_asked_first_is_one_on_which_the_name_is_granted():
    world = World(write=lambda stream, text: None)
    world.ending.begin()
    for code in world.run(world.check(ASKED_FIRST, "<cell 1>")):
        eval(code, world.globals)
    world.ending.end()
    first = {name.partition(".")[2]: kind for name, kind in world.builtins.items() if name.startswith("last.")}
    assert set(first) >= {"x", "keys", "append()", "sqrt()"}
    assert all(kind is None or kind in world.builtins[f"read.{name}"] for name, kind in first.items())
    assert (first["append()"], first["x"]) == (list, None)
