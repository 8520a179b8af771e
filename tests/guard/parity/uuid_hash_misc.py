#: uuids
#: needs: uuid
import uuid
u = uuid.uuid5(uuid.NAMESPACE_DNS, "example.org")
print(u, u.hex, u.version, uuid.UUID(int=5), uuid.uuid3(uuid.NAMESPACE_URL, "x"), uuid.UUID(str(u)) == u)
#: hashing
#: needs: hashlib
import hashlib
h = hashlib.sha256()
for part in (b"a", b"b"):
    h.update(part)
print(h.hexdigest()[:20], h.name, h.digest_size, hashlib.blake2b(b"x", digest_size=8).hexdigest(), hashlib.sha512(b"").hexdigest()[:10], h.copy().digest() == h.digest())
#: merkle-tree
#: needs: hashlib
import hashlib
def root(xs):
    level = [hashlib.sha256(x.encode()).digest() for x in xs]
    while len(level) > 1:
        if len(level) % 2: level.append(level[-1])
        level = [hashlib.sha256(a + b).digest() for a, b in zip(level[::2], level[1::2])]
    return level[0].hex()
print(root(["a", "b", "c"])[:24])
#: secrets-free-token-format
#: needs: base64, json
import base64, json
payload = base64.urlsafe_b64encode(json.dumps({"u": 1}).encode()).rstrip(b"=").decode()
print(payload, json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))
#: zlib-round-trip
#: needs: zlib
import zlib
d = b"abc" * 1000
z = zlib.compress(d)
print(len(z) < 50, zlib.decompress(z) == d, zlib.adler32(b"x"))
#: operator-and-functools
#: needs: operator, functools
import operator, functools
print(functools.reduce(operator.or_, [1, 2, 4]), operator.itemgetter(slice(1, 3))("abcd"), operator.methodcaller("replace", "a", "b")("aa"), operator.attrgetter("real", "imag")(1 + 2j), operator.length_hint([1, 2]))
#: unicodedata
#: needs: unicodedata
import unicodedata
strip = lambda s: "".join(c for c in unicodedata.normalize("NFKD", s) if not unicodedata.combining(c))
print(strip("Crème Brûlée"), unicodedata.lookup("GREEK SMALL LETTER ALPHA"), unicodedata.numeric("½"))
#: shlex
#: needs: shlex
import shlex
print(shlex.split("cmd 'a b' --x=\"y z\""), shlex.quote("it's"), shlex.join(["a", "b c"]))
#: bisect-grades
#: needs: bisect
from bisect import bisect
print([("FDCBA")[bisect([60, 70, 80, 90], s)] for s in (33, 99, 77, 70, 89, 90, 100)])
#: colorsys-and-numbers
#: needs: colorsys, numbers
import colorsys, numbers
print([round(v, 3) for v in colorsys.rgb_to_hsv(0.2, 0.4, 0.4)], isinstance(1, numbers.Integral), isinstance(1.5, numbers.Rational), isinstance(1j, numbers.Number))
#: keyword-module
#: needs: keyword
import keyword
print(keyword.iskeyword("for"), "match" in keyword.softkwlist, len(keyword.kwlist) >= 35)
#: string-builder-with-contextlib
#: needs: contextlib
import contextlib
class XML:
    def __init__(self): self.out, self.depth = [], 0
    @contextlib.contextmanager
    def tag(self, name, **attrs):
        a = "".join(f' {k}="{v}"' for k, v in attrs.items())
        self.out.append("  " * self.depth + f"<{name}{a}>")
        self.depth += 1
        try:
            yield self
        finally:
            self.depth -= 1
            self.out.append("  " * self.depth + f"</{name}>")
x = XML()
with x.tag("a", id=1), x.tag("b"):
    x.out.append("    text")
print("\n".join(x.out))
#: builtins-tour
print(abs(-3), bin(5), callable(len), chr(97), divmod(7, 2), list(filter(str.isalpha, "a1b")), format(3.14159, ".2f"), hash(1), hex(255), isinstance(True, int), issubclass(bool, int), len("abc"), max(1, 2), min([3, 1]), oct(8), ord("a"), pow(2, 3, 5), repr("x"), list(reversed("ab")), round(2.567, 1), sorted("ba"), sum([1, 2], 10), tuple("ab"), type(1).__name__, ascii("é"), any([0, 1]), all([1, 0]), bool([]), slice(1, 2), complex(1, 2), frozenset("a"), bytes(2), id(1) == id(1), iter([1]).__next__(), object() is object(), print.__name__)
