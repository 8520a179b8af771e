#: methods
s = "Hello, World"
print(s.upper(), s.lower(), s.title(), s.swapcase(), s.capitalize(), s.casefold(), s[::-1], s.find("o"), s.rfind("o"), s.index("W"), s.count("l"))
#: predicates
for s in ("abc", "ABC", "123", "a1", " ", "", "Title Case", "½", "é", "_x1"):
    print(repr(s), s.isalpha(), s.isdigit(), s.isalnum(), s.isspace(), s.isupper(), s.islower(), s.istitle(), s.isnumeric(), s.isidentifier(), s.isascii())
#: split-and-join
print("a,b,,c".split(","), "a b  c ".split(), "a b c d".split(None, 2), "a.b.c".rsplit(".", 1), "l1\nl2\r\nl3".splitlines(), "x=1=2".partition("="), "x=1=2".rpartition("="), "-".join("abc"))
#: strip-and-prefix
print("  x ".strip() + "|", "xxabxx".strip("x"), "abc".lstrip("a"), "abc".rstrip("c"), "prefix_name".removeprefix("prefix_"), "file.txt".removesuffix(".txt"), "abc".startswith(("x", "a")), "abc".endswith("bc"))
#: replace-and-translate
print("a-b-c".replace("-", "+", 1), "hello".translate(str.maketrans("el", "ip", "o")), "abc".translate({97: "A", 98: None}), str.maketrans({"a": "1"}))
#: slicing
s = "abcdefgh"
print(s[2:5], s[:3], s[-3:], s[::2], s[::-2], s[5:1:-1], s[100:], s[-100:2], s[slice(1, None, 3)])
#: comparisons-and-concat
print("a" < "b", "a" < "B", "abc" < "abd", "" < "a", "a" * 3, "ab" + "cd", "a" in "abc", max("hello"), sorted("hello"))
#: unicode
s = "naïve café 🎉 日本"
print(len(s), s.encode("utf-8"), s.upper(), [hex(ord(c)) for c in s[-2:]], "\u00e9" == "é", ascii(s), "ß".upper(), "İ".lower().encode())
#: normalisation
#: needs: unicodedata
import unicodedata
print(len(unicodedata.normalize("NFD", "é")), unicodedata.name("é"), unicodedata.category("A"))
#: escapes
print("tab\there", 'quote\'s "x"', "back\\slash", "\x41\u0042\103", r"raw\n", repr("a\nb\t'\"\\\x00\x7f"))
#: multiline-and-concatenation
t = ("one "
     "two "
     f"{'three'}")
print(t, """a
  b
c""", sep="\n")
#: char-arithmetic
def caesar(s, k):
    out = []
    for c in s:
        if c.isalpha():
            base = ord("A") if c.isupper() else ord("a")
            out.append(chr((ord(c) - base + k) % 26 + base))
        else:
            out.append(c)
    return "".join(out)

print(caesar("Hello, World!", 3), caesar(caesar("Round Trip", 5), -5))
#: palindrome-and-anagram
def pal(s):
    t = [c.lower() for c in s if c.isalnum()]
    return t == t[::-1]

print(pal("A man, a plan, a canal: Panama"), pal("nope"), sorted("listen") == sorted("silent"))
#: word-frequency
text = "the cat and the hat and the bat"
freq = {}
for w in text.split():
    freq[w] = freq.get(w, 0) + 1
print(sorted(freq.items(), key=lambda kv: (-kv[1], kv[0])))
#: string-module
#: needs: string
import string
print(string.ascii_lowercase, string.digits, string.punctuation, string.capwords("a bc d"), string.hexdigits)
#: textwrap
#: needs: textwrap
import textwrap
t = "The quick brown fox jumps over the lazy dog near the river bank"
print(textwrap.fill(t, 24), textwrap.wrap(t, 30), textwrap.shorten(t, 25), textwrap.indent("a\nb", "> "), textwrap.dedent("   x\n     y"), sep="\n")
#: levenshtein
def lev(a, b):
    prev = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        cur = [i]
        for j, y in enumerate(b, 1):
            cur.append(min(prev[j] + 1, cur[-1] + 1, prev[j - 1] + (x != y)))
        prev = cur
    return prev[-1]

print(lev("kitten", "sitting"), lev("", "abc"), lev("same", "same"))
#: run-length
def enc(s):
    out, i = [], 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i]:
            j += 1
        out.append(f"{j - i}{s[i]}")
        i = j
    return "".join(out)

print(enc("aaabccd"), enc(""))
#: slugify-camel-snake
def snake(s):
    return "".join("_" + c.lower() if c.isupper() else c for c in s).lstrip("_")

def camel(s):
    head, *tail = s.split("_")
    return head + "".join(w.capitalize() for w in tail)

print(snake("someVariableName"), camel("some_variable_name"), "-".join("Hello Big World".lower().split()))
#: immutable
#: raises: TypeError
s = "abc"
s[0] = "x"
#: difflib
#: needs: difflib
import difflib
print(difflib.get_close_matches("appel", ["ape", "apple", "peach"]), round(difflib.SequenceMatcher(None, "abcd", "bcde").ratio(), 2))
#: roman-numerals
def roman(n):
    out = ""
    for v, s in ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        while n >= v:
            out += s
            n -= v
    return out

print([roman(n) for n in (1, 4, 9, 14, 40, 90, 400, 1994, 2024)])
