#: json-round-trip
#: needs: json
import json
d = {"a": [1, 2.5, None, True], "b": {"c": "é\n"}, "1": []}
s = json.dumps(d)
print(s, json.loads(s) == d, json.dumps(d, sort_keys=True, indent=2), json.dumps("é", ensure_ascii=False), json.dumps([1, 2], separators=(",", ":")))
#: json-hooks
#: needs: json
import json
class P:
    def __init__(self, x): self.x = x
print(json.dumps({"p": P(1)}, default=lambda o: vars(o)), json.loads('{"x": 1}', object_hook=lambda d: P(**d)).x, json.loads("[1.5]", parse_float=str), json.loads('{"a": 1, "a": 2}', object_pairs_hook=list))
class E(json.JSONEncoder):
    def default(self, o):
        return {"set": sorted(o)} if isinstance(o, set) else super().default(o)
print(json.dumps({"s": {2, 1}}, cls=E))
#: json-errors
#: needs: json
import json
for bad in ("{", "[1,]", "nope", '{"a" 1}', ""):
    try:
        json.loads(bad)
    except json.JSONDecodeError as e:
        print(e, e.pos, e.lineno)
try:
    json.dumps({1, 2})
except TypeError as e:
    print(e)
#: json-odd-values
#: needs: json
import json
print(json.dumps([float("inf"), float("nan")]), json.loads("[NaN, -Infinity]"), json.dumps({1: 1, None: 2, True: 3}), json.dumps((1, 2)), json.loads("1e5"), json.loads('"\\u00e9"'))
#: csv-reader-and-writer
#: needs: csv, io
import csv, io
text = "name,qty\nann,3\n\"bob, jr\",5\n"
rows = list(csv.reader(io.StringIO(text)))
dicts = list(csv.DictReader(io.StringIO(text)))
print(rows, dicts, sum(int(d["qty"]) for d in dicts))
out = io.StringIO()
w = csv.writer(out, delimiter=";", lineterminator="\n")
w.writerow(["a", "b;c", 1]); w.writerows([[1, 2], ["x", None]])
print(out.getvalue())
out = io.StringIO()
dw = csv.DictWriter(out, fieldnames=["k", "v"], lineterminator="\n", extrasaction="ignore")
dw.writeheader(); dw.writerow({"k": 1, "v": 2, "z": 3})
print(out.getvalue())
#: stringio-and-bytesio
#: needs: io
import io
b = io.StringIO("line1\nline2\nline3")
print(b.readline(), b.read(3), b.tell(), b.readlines(), b.seek(0), [l.strip() for l in b])
b = io.StringIO(); print("x", 1, file=b, sep="-"); b.write("end"); print(repr(b.getvalue()))
y = io.BytesIO(b"abc"); print(y.read(1), y.getvalue(), y.seek(-1, 2), y.read())
with io.StringIO() as f:
    f.write("in with")
    print(f.getvalue())
#: print-options
#: needs: io
import io
buf = io.StringIO()
print(1, "a", None, sep="|", end="!\n")
print("to buffer", file=buf, flush=True)
print(repr(buf.getvalue()), end="")
print()
#: regex-tour
#: needs: re
import re
s = "Ann: 25, Bob: 30; cid: 7"
print(re.findall(r"(\w+): (\d+)", s), re.search(r"\d+", s).group(), re.sub(r"\d+", lambda m: str(int(m[0]) + 1), s), re.split(r"[,;]\s*", s), re.match(r"B", s), re.fullmatch(r"\w+", "abc").span())
m = re.search(r"(?P<name>\w+): (?P<age>\d+)", s)
print(m["name"], m.groupdict(), m.groups(), m.start("age"), m.lastgroup, m.expand(r"\g<age>-\1"), m.re.pattern, m.string is s)
p = re.compile(r"^b\w+", re.I | re.M)
print(p.findall("abc\nBob\nbill"), p.flags & re.I == re.I, re.escape("a.b*c"), re.subn("a", "b", "banana"), [x.span() for x in re.finditer("an", "banana")], re.sub(r"(\w)(\d)", r"\2\1", "a1 b2"))
#: regex-lookaround-and-verbose
#: needs: re
import re
p = re.compile(r"""
    (?<!\d)(\d{3})   # area
    [-.\s]?
    (\d{4})(?!\d)    # number
""", re.VERBOSE)
print(p.findall("call 555-1234 or 5551234 not 55512345"), re.findall(r"(?i)the\b", "The theme the"), re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", "1234567"), re.findall(r"(a|b)+?c", "abac"), re.match(r"(.)(.)\2\1", "abba")[0])
#: regex-error
#: needs: re
import re
try:
    re.compile("(a")
except re.error as e:
    print(e, e.pos)
#: tokenizer-with-re
#: needs: re
import re
spec = [("NUM", r"\d+(\.\d+)?"), ("ID", r"[A-Za-z_]\w*"), ("OP", r"[-+*/=()]"), ("WS", r"\s+"), ("BAD", r".")]
master = re.compile("|".join(f"(?P<{n}>{p})" for n, p in spec))
print([(m.lastgroup, m.group()) for m in master.finditer("x = 3.5*(y+2) $") if m.lastgroup != "WS"])
#: log-parsing
#: needs: re, collections
import re
from collections import Counter
log = """10:00 INFO start
10:01 ERROR disk full
10:02 WARN slow
10:03 ERROR disk full
10:04 ERROR net down"""
rx = re.compile(r"(\d\d:\d\d) (\w+) (.+)")
rows = [rx.match(l).groups() for l in log.splitlines()]
print(Counter(r[1] for r in rows).most_common(), Counter(r[2] for r in rows if r[1] == "ERROR"))
#: pprint
#: needs: pprint
from pprint import pformat, pprint
print(pformat({"b": [1] * 30, "a": {"x": "y" * 30}}, width=40))
pprint([3, 1], width=20)
#: html-and-urllib-parse
#: needs: html, urllib.parse
import html
from urllib.parse import urlparse, parse_qs, quote, urlencode, urljoin
print(html.escape("<a & b>"), html.unescape("&lt;&eacute;"), urlparse("http://x.org:80/p?q=1#f").netloc, parse_qs("a=1&a=2&b="), quote("a b/é"), urlencode({"k": "v w"}), urljoin("http://x/a/b", "../c"))
#: json-decoder-and-encoder-by-their-modules
import json
import json.decoder
from json.encoder import JSONEncoder

try:
    json.loads("{]")
except json.decoder.JSONDecodeError as e:
    print(e, json.decoder.JSONDecodeError is json.JSONDecodeError, JSONEncoder is json.encoder.JSONEncoder)
