#: private-attribute-node
#: threat: L1
#: from: every sandbox without an attribute check
#: proves: canary
result = vault._secret
#: private-through-getattr
#: threat: L1
#: from: sandboxes that check nodes only
#: proves: canary
result = getattr(vault, "_secret")
#: getattr-by-concatenated-name
#: threat: L1
#: from: pyjails that search the source for names
#: proves: canary
result = getattr(vault, "_" + "terces"[::-1])
#: getattr-by-chr
#: threat: L1
#: from: pyjails without quotes or underscores
#: proves: canary
result = getattr(vault, "".join(map(chr, (95, 115, 101, 99, 114, 101, 116))))
#: dunder-dict
#: threat: L1
#: from: early attribute filters
#: proves: canary
result = vault.__dict__["_secret"]
#: vars-of-host-object
#: threat: L1
#: from: simpleeval and asteval with vars left in
#: proves: canary
result = vars(vault)
#: str-format-attribute
#: threat: L1
#: from: format string jailbreaks, RestrictedPython and Jinja2 CVEs of 2016 to 2019
#: proves: canary
result = "{0._secret}".format(vault)
#: str-format-globals
#: threat: L1
#: from: format string jailbreaks
#: proves: canary
result = "{0.name.__globals__[CANARY]}".format(vault)
#: str-format-map
#: threat: L1
#: from: Jinja2 CVE of 2019: format_map was left out of the check
#: proves: canary
result = "{v._secret}".format_map({"v": vault})
#: format-method-taken-as-value
#: threat: L1
#: from: Jinja2 CVE of 2024: a reference to format, called later
#: proves: canary
f = "{0._secret}".format
result = list(map(f, [vault]))[0]
#: format-unbound
#: threat: L1
#: from: checks that look at the receiver only
#: proves: canary
result = str.format("{0._secret}", vault)
#: format-through-str-subclass
#: threat: L1
#: from: checks of exact str only
#: proves: canary
class S(str):
    pass
result = S("{0._secret}").format(vault)
#: format-via-super
#: threat: L1
#: from: checks that look at names of receivers
#: proves: canary
class S(str):
    def go(self, *a):
        return super().format(*a)
result = S("{0._secret}").go(vault)
#: format-nested-in-spec
#: threat: L1
#: from: format checks that parse fields once
#: proves: canary
result = "{:>{1.__class__.name.__globals__[CANARY]}}".format("x", vault) if False else "{0:{1._secret}}".format(type("F", (), {"__format__": lambda s, spec: spec})(), vault)
#: string-formatter
#: threat: L1
#: from: RestrictedPython CVE of 2023: string.Formatter
#: proves: canary
import string
result = string.Formatter().format("{0._secret}", vault)
#: string-formatter-get-field
#: threat: L1
#: from: RestrictedPython CVE of 2023
#: proves: canary
import string
result = string.Formatter().get_field("0._secret", (vault,), {})[0]
#: string-formatter-subclass
#: threat: L1
#: from: RestrictedPython CVE of 2023
#: proves: canary
import string
class F(string.Formatter):
    def get_value(self, key, args, kw):
        return vault
result = F().vformat("{x._secret}", (), {})
#: attrgetter
#: threat: L1
#: from: helpers in C that take attribute paths
#: proves: canary
from operator import attrgetter
result = attrgetter("_secret")(vault)
#: attrgetter-dotted
#: threat: L1
#: from: helpers in C that take attribute paths
#: proves: canary
import operator
result = operator.attrgetter("name.__func__.__globals__")(vault)["CANARY"]
#: methodcaller-getattribute
#: threat: L1
#: from: helpers in C that take method names
#: proves: canary
from operator import methodcaller
result = methodcaller("__getattribute__", "_secret")(vault)
#: object-getattribute
#: threat: L1
#: from: attribute gates that trust object's own methods
#: proves: canary
result = object.__getattribute__(vault, "_secret")
#: type-getattribute-on-class
#: threat: L1
#: from: attribute gates that trust type's own methods
#: proves: canary
result = type.__getattribute__(type(vault), "name").__globals__["CANARY"]
#: super-getattribute
#: threat: L1
#: from: attribute gates that trust super()
#: proves: canary
result = super(type(vault), vault).__getattribute__("_secret")
#: own-getattribute-borrowed
#: threat: L1
#: from: a method of an own class applied to a host object
#: proves: canary
class A:
    def read(self):
        return self._secret
result = A.read(vault)
#: own-mangled-name
#: threat: L1
#: from: checks before name mangling
#: proves: canary
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
match vault:
    case object(_secret=s):
        result = s
#: class-pattern-dunder
#: threat: L1
#: from: sandtrap: class patterns
#: proves: canary
match vault:
    case object(__dict__=d):
        result = d["_secret"]
#: class-pattern-match-args
#: threat: L1
#: from: class patterns by position
#: proves: canary
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
match vault:
    case object(name=object(__func__=object(__globals__={"CANARY": c}))):
        result = c
#: getattr-str-subclass
#: threat: L1
#: from: agex: getattr with a str subclass whose methods lie
#: proves: canary
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
result = list(map(getattr, [vault], ["_secret"]))
#: getattr-partial
#: threat: L1
#: from: checks of calls by name only
#: proves: canary
import functools
result = functools.partial(getattr, vault)("_secret")
#: getattr-rebound
#: threat: L1
#: from: checks of calls by name only
#: proves: canary
g = [getattr][0]
result = (lambda h=g: h(vault, "_secret"))()
#: getattr-default-exception-order
#: threat: L1
#: from: gates that fall back to the real getattr when a default is given
#: proves: canary
result = getattr(vault, "_secret", None)
#: hasattr-oracle-then-read
#: threat: L1
#: from: gates on getattr but not on hasattr
#: proves: canary
if hasattr(vault, "_secret"):
    result = vars(vault)["_secret"]
#: nfkc-identifier
#: threat: L1
#: from: smolagents and pyjails: identifiers normalised after the check
#: proves: canary
result = vault._ſecret
#: nfkc-dunder
#: threat: L1
#: from: pyjails: full-width letters
#: proves: canary
result = vault.__𝓭𝓲𝓬𝓽__["_secret"]
#: keyword-class-argument
#: threat: L1
#: from: class statement keywords handed to a host's __init_subclass__
#: proves: canary
import toolbox
class Mine(toolbox.Tool):
    pass
result = Mine("x")._maker
#: subclass-reads-hosts-private
#: threat: L1
#: from: what is one's own by inheritance
#: proves: canary
import toolbox
class Mine(toolbox.Tool):
    def tell(self):
        return self._maker
result = Mine("x").tell()
#: subclass-getattr-super
#: threat: L1
#: from: what is one's own by inheritance
#: proves: canary
#: open: an instance of a subclass shows what the host's class wrote into it
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
#: open: an instance of a subclass shows what the host's class wrote into it
import toolbox
class Mine(toolbox.Tool):
    pass
result = vars(Mine("x"))
#: subclass-attribute-error-hook
#: threat: L1
#: from: __getattribute__ of an own subclass of a host class
#: proves: canary
import toolbox
class Mine(toolbox.Tool):
    def __getattribute__(self, name):
        return object.__getattribute__(self, "_maker")
result = Mine("x").anything
#: module-private-name
#: threat: L1
#: from: modules handed out whole
#: proves: canary
import toolbox
result = toolbox._hidden
#: module-dict
#: threat: L1
#: from: modules handed out whole
#: proves: canary
import toolbox
result = toolbox.__dict__["_hidden"]
#: from-import-private
#: threat: L1
#: from: import-from that does not check members
#: proves: canary
from toolbox import _hidden as result
#: vars-of-module
#: threat: L1
#: from: vars left in
#: proves: canary
import toolbox
result = vars(toolbox)["_hidden"]
#: dataclass-fields-of-host-name
#: threat: L1
#: from: dataclasses.asdict and fields read attributes by name
#: proves: canary
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
result = vault.__reduce_ex__(2)
#: getstate
#: threat: L1
#: from: __getstate__, new in 3.11
#: proves: canary
result = vault.__getstate__()
#: delattr-oracle-sort-key
#: threat: L1
#: from: sorted with a C key that takes attributes
#: proves: canary
import operator
result = max([vault], key=operator.attrgetter("_secret"))._secret
#: pprint-and-json-default
#: threat: L1
#: from: hooks that are handed objects: json default
#: proves: canary
import json
result = json.dumps([vault], default=lambda o: o.__dict__)
#: json-default-vars
#: threat: L1
#: from: hooks that are handed built-ins
#: proves: canary
import json
result = json.dumps(vault, default=vars)
#: singledispatch-registry
#: threat: L1
#: from: functools hands out what it wraps
#: proves: canary
import functools
@functools.singledispatch
def f(x):
    return x.__dict__
result = f(vault)
#: property-of-own-read-by-fget
#: threat: L1
#: from: property.fget applied to a host object
#: proves: canary
class A:
    @property
    def p(self):
        return self._secret
result = A.p.fget(vault)
#: descriptor-get-on-host
#: threat: L1
#: from: descriptor methods applied by hand
#: proves: canary
result = type(vault).__dict__["name"].__get__(vault).__globals__["CANARY"]
#: slot-descriptor-dict
#: threat: L1
#: from: type.__dict__['__dict__'] gives any class's namespace
#: proves: canary
result = type.__dict__["__dict__"].__get__(type(vault))["name"].__globals__["CANARY"]
#: format-of-an-audited-str-subclass
#: threat: L1
#: from: tables that name a method again for a subclass
#: proves: canary
import enum
result = type(enum.STRICT).format("{0._secret}", vault)
