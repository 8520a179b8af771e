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
