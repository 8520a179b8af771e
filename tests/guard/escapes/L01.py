#: private-attribute-node
#: threat: L1
#: from: every sandbox without an attribute check
#: proves: canary
#: refused: attribute
result = vault._secret
#: private-through-getattr
#: threat: L1
#: from: sandboxes that check nodes only
#: proves: canary
#: refused: attribute
result = getattr(vault, "_secret")
#: getattr-by-concatenated-name
#: threat: L1
#: from: pyjails that search the source for names
#: proves: canary
#: refused: attribute
result = getattr(vault, "_" + "terces"[::-1])
#: getattr-by-chr
#: threat: L1
#: from: pyjails without quotes or underscores
#: proves: canary
#: refused: attribute
result = getattr(vault, "".join(map(chr, (95, 115, 101, 99, 114, 101, 116))))
#: dunder-dict
#: threat: L1
#: from: early attribute filters
#: proves: canary
#: refused: attribute
result = vault.__dict__["_secret"]
#: vars-of-host-object
#: threat: L1
#: from: simpleeval and asteval with vars left in
#: proves: canary
#: refused: attribute
result = vars(vault)
#: str-format-attribute
#: threat: L1
#: from: format string jailbreaks, RestrictedPython and Jinja2 CVEs of 2016 to 2019
#: proves: canary
#: refused: format
result = "{0._secret}".format(vault)
#: str-format-globals
#: threat: L1
#: from: format string jailbreaks
#: proves: canary
#: refused: format
result = "{0.name.__globals__[CANARY]}".format(vault)
#: str-format-map
#: threat: L1
#: from: Jinja2 CVE of 2019: format_map was left out of the check
#: proves: canary
#: refused: format
result = "{v._secret}".format_map({"v": vault})
#: format-method-taken-as-value
#: threat: L1
#: from: Jinja2 CVE of 2024: a reference to format, called later
#: proves: canary
#: refused: format
f = "{0._secret}".format
result = list(map(f, [vault]))[0]
#: format-unbound
#: threat: L1
#: from: checks that look at the receiver only
#: proves: canary
#: refused: format
result = str.format("{0._secret}", vault)
#: format-through-str-subclass
#: threat: L1
#: from: checks of exact str only
#: proves: canary
#: refused: format
class S(str):
    pass
result = S("{0._secret}").format(vault)
#: format-via-super
#: threat: L1
#: from: checks that look at names of receivers
#: proves: canary
#: refused: format
class S(str):
    def go(self, *a):
        return super().format(*a)
result = S("{0._secret}").go(vault)
#: format-nested-in-spec
#: threat: L1
#: from: format checks that parse fields once
#: proves: canary
#: refused: format
result = "{:>{1.__class__.name.__globals__[CANARY]}}".format("x", vault) if False else "{0:{1._secret}}".format(type("F", (), {"__format__": lambda s, spec: spec})(), vault)
#: string-formatter
#: threat: L1
#: from: RestrictedPython CVE of 2023: string.Formatter
#: proves: canary
#: refused: format
import string
result = string.Formatter().format("{0._secret}", vault)
#: string-formatter-get-field
#: threat: L1
#: from: RestrictedPython CVE of 2023
#: proves: canary
#: refused: format
import string
result = string.Formatter().get_field("0._secret", (vault,), {})[0]
#: string-formatter-subclass
#: threat: L1
#: from: RestrictedPython CVE of 2023
#: proves: canary
#: refused: format
import string
class F(string.Formatter):
    def get_value(self, key, args, kw):
        return vault
result = F().vformat("{x._secret}", (), {})
#: attrgetter
#: threat: L1
#: from: helpers in C that take attribute paths
#: proves: canary
#: refused: attribute
from operator import attrgetter
result = attrgetter("_secret")(vault)
#: attrgetter-dotted
#: threat: L1
#: from: helpers in C that take attribute paths
#: proves: canary
#: refused: attribute
import operator
result = operator.attrgetter("name.__func__.__globals__")(vault)["CANARY"]
#: methodcaller-getattribute
#: threat: L1
#: from: helpers in C that take method names
#: proves: canary
#: refused: attribute
from operator import methodcaller
result = methodcaller("__getattribute__", "_secret")(vault)
#: object-getattribute
#: threat: L1
#: from: attribute gates that trust object's own methods
#: proves: canary
#: refused: attribute
result = object.__getattribute__(vault, "_secret")
#: type-getattribute-on-class
#: threat: L1
#: from: attribute gates that trust type's own methods
#: proves: canary
#: refused: attribute
result = type.__getattribute__(type(vault), "name").__globals__["CANARY"]
#: super-getattribute
#: threat: L1
#: from: attribute gates that trust super()
#: proves: canary
#: refused: attribute
result = super(type(vault), vault).__getattribute__("_secret")
#: own-getattribute-borrowed
#: threat: L1
#: from: a method of an own class applied to a host object
#: proves: canary
#: refused: attribute
class A:
    def read(self):
        return self._secret
result = A.read(vault)
#: own-mangled-name
#: threat: L1
#: from: checks before name mangling
#: proves: canary
#: refused: attribute
class ecret:
    def read(self, v):
        return v.__dict__
class A:
    def look(self, o):
        return o.__dict__["_secret"]
result = A().look(vault)
#: class-pattern-keyword
#: threat: L1
#: from: sandtrap: class patterns read attributes without an attribute node
#: proves: canary
#: refused: pattern
match vault:
    case object(_secret=s):
        result = s
#: class-pattern-dunder
#: threat: L1
#: from: sandtrap: class patterns
#: proves: canary
#: refused: pattern
match vault:
    case object(__dict__=d):
        result = d["_secret"]
#: class-pattern-match-args
#: threat: L1
#: from: class patterns by position
#: proves: canary
#: refused: pattern
class M(type):
    def __instancecheck__(cls, x):
        return True
class P(metaclass=M):
    __match_args__ = ("_secret",)
match vault:
    case P(s):
        result = s
#: class-pattern-match-args-lying-str
#: threat: L1
#: from: __match_args__ of a str subclass
#: proves: canary
#: refused: pattern
class M(type):
    def __instancecheck__(cls, x):
        return True
class P(metaclass=M):
    __match_args__ = ("_sec" + "ret",)
    P = 1
match [vault]:
    case [P(s)]:
        result = s
#: class-pattern-nested-globals
#: threat: L1
#: from: class patterns, nested
#: proves: canary
#: refused: attribute
match vault:
    case object(name=object(__func__=object(__globals__={"CANARY": c}))):
        result = c
#: getattr-str-subclass
#: threat: L1
#: from: agex: getattr with a str subclass whose methods lie
#: proves: canary
#: refused: attribute
class N(str):
    def startswith(self, *a):
        return False
    def __getitem__(self, i):
        return "x"
    def __str__(self):
        return "name"
result = getattr(vault, N("_secret"))
#: getattr-in-map
#: threat: L1
#: from: checks of calls by name only
#: proves: canary
#: refused: attribute
result = list(map(getattr, [vault], ["_secret"]))
#: getattr-partial
#: threat: L1
#: from: checks of calls by name only
#: proves: canary
#: refused: attribute
import functools
result = functools.partial(getattr, vault)("_secret")
#: getattr-rebound
#: threat: L1
#: from: checks of calls by name only
#: proves: canary
#: refused: attribute
g = [getattr][0]
result = (lambda h=g: h(vault, "_secret"))()
#: getattr-default-exception-order
#: threat: L1
#: from: gates that fall back to the real getattr when a default is given
#: proves: canary
#: refused: attribute
result = getattr(vault, "_secret", None)
#: hasattr-oracle-then-read
#: threat: L1
#: from: gates on getattr but not on hasattr
#: proves: canary
#: refused: attribute
if hasattr(vault, "_secret"):
    result = vars(vault)["_secret"]
#: nfkc-identifier
#: threat: L1
#: from: smolagents and pyjails: identifiers normalised after the check
#: proves: canary
#: refused: attribute
result = vault._ſecret
#: nfkc-dunder
#: threat: L1
#: from: pyjails: full-width letters
#: proves: canary
#: refused: attribute
result = vault.__𝓭𝓲𝓬𝓽__["_secret"]
#: keyword-class-argument
#: threat: L1
#: from: class statement keywords handed to a host's __init_subclass__
#: proves: canary
#: refused: attribute
import toolbox
class Mine(toolbox.Tool):
    pass
result = Mine("x")._maker
#: subclass-reads-hosts-private
#: threat: L1
#: from: what is one's own by inheritance
#: proves: canary
#: refused: attribute
import toolbox
class Mine(toolbox.Tool):
    def tell(self):
        return self._maker
result = Mine("x").tell()
#: subclass-getattr-super
#: threat: L1
#: from: what is one's own by inheritance
#: proves: canary
#: harmless: names that a class of the host keeps to itself are not shown
import toolbox
class Mine(toolbox.Tool):
    def __init__(self):
        super().__init__("x")
        self.seen = dict(self.__dict__)
result = Mine().seen
#: subclass-vars
#: threat: L1
#: from: what is one's own by inheritance
#: proves: canary
#: harmless: names that a class of the host keeps to itself are not shown
import toolbox
class Mine(toolbox.Tool):
    pass
result = vars(Mine("x"))
#: subclass-attribute-error-hook
#: threat: L1
#: from: __getattribute__ of an own subclass of a host class
#: proves: canary
#: refused: class
import toolbox
class Mine(toolbox.Tool):
    def __getattribute__(self, name):
        return object.__getattribute__(self, "_maker")
result = Mine("x").anything
#: module-private-name
#: threat: L1
#: from: modules handed out whole
#: proves: canary
#: refused: attribute
import toolbox
result = toolbox._hidden
#: module-dict
#: threat: L1
#: from: modules handed out whole
#: proves: canary
#: harmless: the stand-in of a module holds nothing but members
import toolbox
result = toolbox.__dict__["_hidden"]
#: from-import-private
#: threat: L1
#: from: import-from that does not check members
#: proves: canary
#: refused: import
from toolbox import _hidden as result
#: vars-of-module
#: threat: L1
#: from: vars left in
#: proves: canary
#: harmless: the stand-in of a module holds nothing but members
import toolbox
result = vars(toolbox)["_hidden"]
#: dataclass-fields-of-host-name
#: threat: L1
#: from: dataclasses.asdict and fields read attributes by name
#: proves: canary
#: refused: attribute
import dataclasses
class Fake:
    pass
@dataclasses.dataclass
class D:
    _secret: str
vaultish = dataclasses.fields(D)
result = [getattr(vault, f.name) for f in vaultish]
#: copy-into-own-dict
#: threat: L1
#: from: __reduce_ex__ tells the state of an object
#: proves: canary
#: refused: attribute
result = vault.__reduce_ex__(2)
#: getstate
#: threat: L1
#: from: __getstate__, new in 3.11
#: proves: canary
#: refused: attribute
result = vault.__getstate__()
#: delattr-oracle-sort-key
#: threat: L1
#: from: sorted with a C key that takes attributes
#: proves: canary
#: refused: attribute
import operator
result = max([vault], key=operator.attrgetter("_secret"))._secret
#: pprint-and-json-default
#: threat: L1
#: from: hooks that are handed objects: json default
#: proves: canary
#: refused: attribute
import json
result = json.dumps([vault], default=lambda o: o.__dict__)
#: json-default-vars
#: threat: L1
#: from: hooks that are handed built-ins
#: proves: canary
#: refused: attribute
import json
result = json.dumps(vault, default=vars)
#: singledispatch-registry
#: threat: L1
#: from: functools hands out what it wraps
#: proves: canary
#: refused: attribute
import functools
@functools.singledispatch
def f(x):
    return x.__dict__
result = f(vault)
#: property-of-own-read-by-fget
#: threat: L1
#: from: property.fget applied to a host object
#: proves: canary
#: refused: attribute
class A:
    @property
    def p(self):
        return self._secret
result = A.p.fget(vault)
#: descriptor-get-on-host
#: threat: L1
#: from: descriptor methods applied by hand
#: proves: canary
#: refused: attribute
result = type(vault).__dict__["name"].__get__(vault).__globals__["CANARY"]
#: slot-descriptor-dict
#: threat: L1
#: from: type.__dict__['__dict__'] gives any class's namespace
#: proves: canary
#: refused: attribute
result = type.__dict__["__dict__"].__get__(type(vault))["name"].__globals__["CANARY"]
#: format-of-an-audited-str-subclass
#: threat: L1
#: from: tables that name a method again for a subclass
#: proves: canary
#: refused: type
import enum
result = type(enum.STRICT).format("{0._secret}", vault)
#: heir-hides-by-class-attribute
#: threat: L1
#: from: an instance's own dict comes before a class attribute that code defined
#: proves: canary
#: refused: attribute
import toolbox
class Mine(toolbox.Tool):
    _maker = None
result = Mine("x")._maker
#: heir-beside-a-mixin
#: threat: L1
#: from: what is one's own by another base
#: proves: canary
#: refused: attribute
import toolbox
class A:
    _maker = 1
class Mine(A, toolbox.Tool):
    pass
result = Mine("x")._maker
#: heir-slot-takes-what-the-host-sets
#: threat: L1
#: from: a slot is a descriptor that the host's own __init__ writes to
#: proves: canary
#: refused: class
import toolbox
class Mine(toolbox.Tool):
    __slots__ = ("_maker",)
result = Mine("x")._maker
#: heir-setter-is-told
#: threat: L1
#: from: a property that the host's own __init__ writes to
#: proves: canary
#: refused: class
import toolbox
class Mine(toolbox.Tool):
    @property
    def _maker(self):
        return 1
    @_maker.setter
    def _maker(self, value):
        global result
        result = value
Mine("x")
#: heir-setattr-is-told
#: threat: L1
#: from: __setattr__ sees what the host's own methods set
#: proves: canary
#: refused: class
import toolbox
class Mine(toolbox.Tool):
    def __setattr__(self, name, value):
        global result
        result = value
Mine("x")
#: heir-mixin-setattr-is-told
#: threat: L1
#: from: __setattr__ of another base
#: proves: canary
#: refused: class
import toolbox
class Base:
    def __setattr__(self, name, value):
        global result
        result = value
class Mine(Base, toolbox.Tool):
    pass
Mine("x")
#: heir-mixin-gets-a-descriptor-later
#: threat: L1
#: from: a descriptor that comes into another base afterwards
#: proves: canary
#: refused: store
import toolbox
class Base:
    pass
class Mine(Base, toolbox.Tool):
    pass
class D:
    def __set__(self, owner, value):
        global result
        result = value
Base._maker = D()
Mine("x")
#: heir-cached-property
#: threat: L1
#: from: a cached property reads the dict that the host writes to
#: proves: canary
#: refused: class
import functools
import toolbox
class Mine(toolbox.Tool):
    _maker = functools.cached_property(lambda self: 1)
result = Mine("x")._maker
#: heir-metaclass-setattr
#: threat: L8
#: from: a metaclass sees what is set on its classes
#: proves: mutates
#: refused: class
import toolbox
class M(type):
    def __setattr__(cls, name, value):
        pass
class Mine(toolbox.Tool, metaclass=M):
    pass
toolbox.Tool.kinds.append(Mine)
#: generic-alias-of-an-object
#: threat: L1
#: from: what an alias of a generic class is asked for, its origin is asked for
#: proves: canary
#: refused: attribute
import types
result = types.GenericAlias(vault, int)._secret
#: generic-alias-by-getattr
#: threat: L1
#: from: what an alias of a generic class is asked for, its origin is asked for
#: proves: canary
#: refused: attribute
import types
result = getattr(types.GenericAlias(types.GenericAlias(vault, int), int), "_sec" + "ret")
#: string-formatter-parse-made-up
#: threat: L1
#: from: a subclass of string.Formatter says itself what the fields are
#: proves: canary
#: refused: format
import string
class F(string.Formatter):
    def parse(self, text):
        if text:
            yield "", "0._secret", "", None
result = F().format("x", vault)
#: generic-alias-by-attrgetter
#: threat: L1
#: from: what an alias of a generic class is asked for, its origin is asked for
#: proves: canary
#: refused: attribute
import operator, types
result = operator.attrgetter("_secret")(types.GenericAlias(vault, int))
