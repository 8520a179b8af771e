#: str-subclass-name-to-getattr
#: threat: L9
#: from: agex: names that lie about themselves
#: proves: canary
#: refused: attribute
class N(str):
    def __eq__(self, o): return str(o) == 'name' or str.__eq__(self, o)
    __hash__ = str.__hash__
    def startswith(self, *a): return False
    def isidentifier(self): return True
result = getattr(vault, N('_secret'))
#: str-subclass-in-keywords
#: threat: L9
#: from: keys of ** that lie
#: proves: canary
#: refused: attribute
class N(str):
    def startswith(self, *a): return False
    __hash__ = str.__hash__
def f(**kw): return kw
result = [getattr(vault, k) for k in f(**{N('_secret'): 1})]
#: str-subclass-as-format
#: threat: L9
#: from: format strings that lie
#: proves: canary
#: refused: format
class F(str):
    def __iter__(self): return iter('harmless')
    def __contains__(self, x): return False
    def __str__(self): return 'harmless'
    def __getitem__(self, i): return 'x'
result = F('{0._secret}').format(vault)
#: str-subclass-as-percent
#: threat: L9
#: from: % with a mapping that lies
#: proves: canary
#: refused: attribute
class D(dict):
    def __getitem__(self, k): return vault.__dict__
result = '%(a)s' % D()
#: format-map-with-lying-dict
#: threat: L9
#: from: mappings asked by format_map
#: proves: canary
#: refused: format
class D(dict):
    def __missing__(self, k): return vault
result = '{x._secret}'.format_map(D())
#: format-with-dunder-format
#: threat: L9
#: from: __format__ is handed the specification
#: proves: canary
#: refused: format
class F:
    def __format__(self, spec): return spec.format(vault)
result = '{:{{0._secret}}}'.format(F()) if False else F().__format__('{0._secret}')
#: int-subclass-index
#: threat: L9
#: from: numbers that lie in format
#: proves: canary
#: refused: format
class I(int):
    def __format__(self, s): return '{0._secret}'.format(vault)
result = '{}'.format(I(3))
#: eq-runs-in-a-lookup
#: threat: L9
#: from: __eq__ called where the guard compares
#: proves: canary
#: refused: attribute
class E:
    def __hash__(self): return hash('_secret')
    def __eq__(self, o):
        return True
result = vault.__dict__[E()]
#: hash-runs-in-a-lookup
#: threat: L9
#: from: __hash__ called where the guard looks up
#: proves: canary
#: refused: class
class M(type):
    def __hash__(cls): return hash(str)
    def __eq__(cls, o): return True
class A(metaclass=M):
    pass
A._secret = property(lambda s: vars(vault))
result = A()._secret
#: metaclass-equal-to-everything
#: threat: L9
#: from: classes that equal granted ones
#: proves: canary
#: refused: class
class M(type):
    def __eq__(cls, o): return True
    def __hash__(cls): return hash(type(vault))
class A(metaclass=M):
    def read(self, o): return o._secret
result = A().read(vault)
#: bool-that-lies
#: threat: L9
#: from: truth of what the guard tests
#: proves: canary
#: refused: attribute
class B:
    n = 0
    def __bool__(self):
        B.n += 1
        return B.n > 1
result = vault._secret if not B() or B() else vault._secret
#: class-property-lies
#: threat: L9
#: from: __class__ as a property
#: proves: canary
#: refused: name
class L:
    @property
    def __class__(self): return str
    def __str__(self): return '_secret'
result = getattr(vault, str(L()))
#: class-attribute-lies
#: threat: L9
#: from: __class__ in the body of a class
#: proves: canary
#: refused: name
class L(str):
    __class__ = int
result = getattr(vault, L('_secret'))
#: isinstance-of-a-lie
#: threat: L9
#: from: isinstance believes __class__
#: proves: canary
#: refused: name
class L:
    __class__ = type(vault)
    def name(self): return vault._secret
result = L().name()
#: getattribute-of-own-class
#: threat: L9
#: from: objects that answer any name
#: proves: canary
#: refused: attribute
class A:
    def __getattribute__(self, n): return vault.__dict__
result = A().format
#: getattr-hands-dunder-names
#: threat: L9
#: from: hooks told of names that are not granted
#: proves: canary
#: refused: attribute
class A:
    seen = []
    def __getattr__(self, n):
        A.seen.append(n)
        return vars(vault)
result = A().__deepcopy__, A.seen, A().x
#: repr-reaches-the-host
#: threat: L9
#: from: repr called by the host
#: proves: canary
#: refused: attribute
class R:
    def __repr__(self): return vault._secret
result = R()
#: html-repr-reaches-the-host
#: threat: L9
#: from: _repr_html_ called by the host
#: proves: canary
#: refused: attribute
class R:
    def _repr_html_(self): return vault._secret
    def __repr__(self): return self._repr_html_()
result = R()
#: str-of-exception-in-the-host
#: threat: L9
#: from: str of an exception called by the host
#: proves: canary
#: refused: attribute
class E(Exception):
    def __str__(self): return vault._secret
raise E
#: exception-with-lying-class-name
#: threat: L9
#: from: names of exceptions read by the host
#: proves: canary
#: refused: attribute
E = type(vault._secret, (Exception,), {})
raise E
#: exception-notes
#: threat: L9
#: from: __notes__ of an exception
#: proves: canary
#: refused: attribute
e = ValueError('x')
e.add_note(vault._secret)
result = e.__notes__
raise e
#: mapping-keys-lie
#: threat: L9
#: from: mappings asked for keys
#: proves: canary
#: refused: attribute
class M:
    def keys(self): return ['_secret']
    def __getitem__(self, k): return getattr(vault, k)
result = {**M()}
#: iterator-lies-about-length
#: threat: L9
#: from: __length_hint__ asked by list
#: proves: canary
#: refused: attribute
class I:
    def __iter__(self): return iter([vault])
    def __length_hint__(self): return 10
result = [x._secret for x in list(I())]
#: index-runs-code
#: threat: L9
#: from: __index__ called by slices and ranges
#: proves: canary
#: refused: attribute
class I:
    def __index__(self):
        global result
        result = vault._secret
        return 0
[1][I()]
#: fspath-runs-code
#: threat: L9
#: from: __fspath__ and paths
#: proves: canary
#: refused: class
import toolbox
class P:
    def __fspath__(self): return toolbox.WHERE
result = open(P()).read()
#: comparison-leaks-the-other-side
#: threat: L9
#: from: __eq__ is handed what the host compares with
#: proves: canary
#: refused: attribute
class E:
    got = []
    def __eq__(self, o):
        E.got.append(o)
        return False
    __hash__ = None
result = [vars(o) for o in [vault] if not (E() == o)]
#: hostile-argument-to-host-function
#: threat: L9
#: from: the host's functions call methods of arguments
#: proves: canary
#: refused: attribute
import toolbox
class S:
    def __str__(self): return vault._secret
result = toolbox.shout(S()).lower()
#: callback-to-host-function
#: threat: L9
#: from: the host's functions call back
#: proves: canary
#: refused: attribute
import toolbox
result = toolbox.measure([vault], key=lambda v: v._secret)
#: builtin-as-callback
#: threat: L9
#: from: the host's functions are handed built-ins
#: proves: canary
#: refused: attribute
import toolbox
result = toolbox.measure([vault], key=vars)
#: attrgetter-as-callback
#: threat: L9
#: from: the host's functions are handed helpers
#: proves: canary
#: refused: attribute
import toolbox, operator
result = toolbox.measure([vault], key=operator.attrgetter('_secret'))
#: name-attribute-of-function-lies
#: threat: L9
#: from: names of functions
#: proves: canary
#: refused: attribute
def f(): return vault._secret
f.__name__ = f.__qualname__ = 'name'
result = f()
#: qualname-of-class-lies
#: threat: L9
#: from: names of classes
#: proves: canary
#: refused: attribute
class A:
    __module__ = 'vaults'
    __qualname__ = 'Vault'
    def look(self, o): return o._secret
A.__name__ = 'Vault'
result = A().look(vault)
#: instancecheck-lies
#: threat: L9
#: from: __instancecheck__ in except and match
#: proves: canary
#: refused: pattern
class M(type):
    def __instancecheck__(cls, o): return True
class A(metaclass=M): pass
match vault:
    case A(_secret=s):
        result = s
#: decorated-lookup-order
#: threat: L9
#: from: __getattribute__ on a metaclass
#: proves: canary
#: refused: attribute
class M(type):
    def __getattribute__(cls, n): return type.__getattribute__(type(vault), 'name')
class A(metaclass=M): pass
result = A.anything.__globals__['CANARY']
#: tuple-subclass-lies
#: threat: L9
#: from: isinstance with a tuple that lies
#: proves: canary
#: refused: attribute
class T(tuple):
    def __iter__(self): return iter([int])
result = vars(vault) if isinstance(vault, T([object])) else None
#: dict-subclass-as-kwargs-lies
#: threat: L9
#: from: ** of a dict subclass
#: proves: canary
#: refused: attribute
class D(dict):
    def keys(self): return ['name']
result = vault.__getattribute__(**D()) if False else getattr(vault, *D(_secret=1))
#: own-dir
#: threat: L9
#: from: __dir__ lists what is not granted
#: proves: canary
#: refused: attribute
class A:
    def __dir__(self): return ['_secret']
result = [getattr(vault, n) for n in dir(A())]
#: sentinel-in-default
#: threat: L9
#: from: default values that are objects of the guard
#: proves: canary
#: refused: attribute
class D:
    def __eq__(self, o): return True
result = getattr(vault, '_secret', D())
