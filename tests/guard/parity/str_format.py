#: positional-and-named
print("{} {}".format(1, 2), "{1} {0}".format("a", "b"), "{x} {y}".format(x=1, y=2), "{0}{0}{k}".format("z", k=3))
#: specs-and-conversions
print("{:>6}|{:<6}|{:^6}|{:.3f}|{:,}|{:08.2f}|{!r}|{!s:>5}|{:{}}|{:{w}.{p}}".format("a", "b", "c", 3.14159, 10**6, 2.5, "q", "s", "d", 4, "abcdef", w=5, p=2))
#: indexing
data = {"name": "Ann", "tags": ["x", "y"]}
print("{0[name]} {0[tags][1]} {d[name]}".format(data, d=data), "{[1]}".format([10, 20]))
#: braces
print("{{}} {{{}}}".format(1), "100%{}".format("!"))
#: format-map
print("{a}-{b}".format_map({"a": 1, "b": 2}))
class Default(dict):
    def __missing__(self, k): return "<" + k + ">"
print("{a}-{zz}".format_map(Default(a=1)))
#: templates-in-loop
t = "{name:<6}{score:>5.1f}"
for r in ({"name": "a", "score": 1}, {"name": "bb", "score": 22.25}):
    print(t.format(**r))
#: own-format
class M:
    def __format__(self, s): return "M:" + s
print("{:abc} {}".format(M(), M()))
#: missing-index
#: raises: IndexError
"{} {}".format(1)
#: missing-key
#: raises: KeyError
"{name}".format(nam=1)
#: mixing-numbering
#: raises: ValueError
"{} {0}".format(1, 2)
#: unmatched-brace
#: raises: ValueError
"{".format(1)
#: unknown-code
#: raises: ValueError
"{:q}".format(1)
#: percent-formatting
print("%s %r %d %5d|%-5d|%05d %x %o %e %.2f %g %c %% %5s|%-5s|%+d" % ("a", "b", 3, 4, 5, 6, 255, 8, 12345.678, 2.345, 1e10, "z", "s", "t", 7))
#: percent-mapping-and-star
print("%(a)s %(b)05.1f" % {"a": 1, "b": 2.25}, "%*d|%.*f" % (5, 42, 2, 3.14159), "%s" % (1,), "%s" % [1, 2], "%(k)s %%" % {"k": None})
#: percent-errors
for f, a in (("%d", "x"), ("%s %s", (1,)), ("%s", (1, 2)), ("%z", 1), ("%(a)s", 3), ("%c", "ab")):
    try:
        print(f % a)
    except (TypeError, ValueError, KeyError) as e:
        print(type(e).__name__, e)
#: template
#: needs: string
from string import Template
t = Template("$name owes $$${amount}")
print(t.substitute(name="Ann", amount=5), t.safe_substitute(name="Bob"))
try:
    t.substitute(name="x")
except KeyError as e:
    print("missing", e)
#: formatter-class
#: needs: string
import string
print(string.Formatter().format("{0} {k:>4}", 1, k="a"), list(string.Formatter().parse("a{b!r:c}d")))
#: as-bound-method
f = "{}:{}".format
print(f(1, 2), list(map("<{}>".format, "ab")), [t.format(5) for t in ("{}", "{:03}", "{0:.1f}")])
#: str-format-unbound
print(str.format("{}-{}", 1, 2), str.format_map("{a}", {"a": 3}))
#: alignment-methods
print("ab".ljust(5, ".") + "|", "ab".rjust(5) + "|", "ab".center(6, "*"), "7".zfill(3), "-7".zfill(4), "a\tb".expandtabs(4))
#: format-builtin
print(format(255, "x"), format(3.14159, ".2f"), format("a", ">3"), format(1234567, ","), format(True), format(None))
#: no-auto-escape
user = "{0.__class__}"
print("hello {}".format(user), "{{{}}}".format(user))
