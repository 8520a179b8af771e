#: guess-at-a-dialect
#: threat: L10
#: from: patterns within the library: csv.Sniffer
#: proves: hangs
#: ended: memory
import csv
csv.Sniffer().sniff(',"' * 50_000)
#: guess-at-a-header
#: threat: L10
#: from: patterns within the library: csv.Sniffer
#: proves: hangs
#: ended: memory
import csv
csv.Sniffer().has_header(',"' * 50_000)
#: marks-in-a-row
#: threat: L10
#: from: Unicode: marks are put in order one by one
#: proves: hangs
#: ended: memory
import unicodedata
unicodedata.normalize("NFD", "a" + "\u0315\u0300" * 300_000)
#: marks-in-a-row-compatible
#: threat: L10
#: from: Unicode: marks are put in order one by one
#: proves: hangs
#: ended: memory
import unicodedata
unicodedata.normalize("NFKC", "a" + "\u0300\u0315" * 300_000)
#: tee-into-many
#: threat: L10
#: from: C loops as long as they are told
#: proves: hangs
#: ended: memory
import itertools
itertools.tee([1], 10**8)
#: batches-of-many
#: threat: L10
#: from: room that is made beforehand
#: proves: memory
#: ended: memory
#: python: 3.12
import itertools
next(itertools.batched([1], 10**9))
#: calendar-of-wide-columns
#: threat: L10
#: from: widths within the library
#: proves: memory
#: ended: memory
import calendar
calendar.TextCalendar().formatyear(2020, w=10**8)
#: calendar-of-wide-columns-by-function
#: threat: L10
#: from: widths within the library
#: proves: memory
#: ended: memory
import calendar
calendar.month(2020, 1, 10**8)
#: calendar-of-wide-columns-by-an-heir
#: threat: L10
#: from: widths within the library
#: proves: memory
#: ended: memory
import calendar
class C(calendar.TextCalendar): pass
C().formatweek([(1, 1)], 10**9)
#: indent-of-pprint
#: threat: L10
#: from: widths within the library
#: proves: memory
#: ended: memory
import pprint
pprint.pformat([[1] * 3] * 40, indent=10**9)
#: indent-of-an-encoder
#: threat: L10
#: from: widths within the library
#: proves: memory
#: ended: memory
import json
json.JSONEncoder(indent=10**9).encode([1])
#: indent-of-an-encoder-set-later
#: threat: L10
#: from: widths within the library
#: proves: memory
#: ended: memory
import json
class E(json.JSONEncoder): pass
e = E()
e.indent = 10**9
e.encode([1])
#: indent-that-is-a-text
#: threat: L10
#: from: widths within the library
#: proves: memory
#: ended: memory
import json
json.dumps([[[[1]]]], indent="x" * 10**7)
#: separators-that-are-long
#: threat: L10
#: from: widths within the library
#: proves: memory
#: ended: memory
import json
json.dumps(list(range(1000)), separators=("," * 10**6, ":"))
#: tabs-that-are-wide
#: threat: L10
#: from: widths within the library
#: proves: memory
#: ended: memory
import textwrap
textwrap.wrap("\t", tabsize=2 * 10**9)
#: tabs-that-are-wide-set-later
#: threat: L10
#: from: widths within the library
#: proves: memory
#: ended: memory
import textwrap
wrapper = textwrap.TextWrapper()
wrapper.tabsize = 2 * 10**9
wrapper.fill("\t")
#: format-of-a-date-that-is-long
#: threat: L10
#: from: formats that are gone through in C
#: proves: hangs
#: ended: memory
import datetime
datetime.datetime(2020, 1, 1).strftime("%c" * 10**7)
#: format-of-a-date-in-a-specification
#: threat: L10
#: from: formats that are gone through in C
#: proves: hangs
#: ended: memory
import datetime
format(datetime.date(2020, 1, 1), "%c" * 10**7)
#: format-of-a-time-that-is-long
#: threat: L10
#: from: formats that are gone through in C
#: proves: hangs
#: ended: memory
import time
time.strftime("%c" * 10**7)
#: width-by-dunder
#: threat: L10
#: from: methods behind formats
#: proves: memory
#: ended: memory
(1).__format__("2000000000")
#: width-by-dunder-of-the-class
#: threat: L10
#: from: methods behind formats
#: proves: memory
#: ended: memory
int.__format__(1, "2000000000")
#: width-by-dunder-of-an-heir
#: threat: L10
#: from: methods behind formats
#: proves: memory
#: ended: memory
class N(int): pass
N.__format__(N(1), "2000000000")
#: width-by-super
#: threat: L10
#: from: methods behind formats
#: proves: memory
#: ended: memory
class N(int):
    def __format__(self, spec):
        return super().__format__("2000000000")
f"{N(1):x}"
#: integer-of-many-bytes
#: threat: L10
#: from: integers that are read, and not calculated
#: proves: hangs
#: refused: size
one, other = int.from_bytes(b"\xff" * 10**6), int.from_bytes(b"\xfe" * 5 * 10**5)
[one // other for _ in range(100)]
#: integer-of-many-bytes-by-an-heir
#: threat: L10
#: from: integers that are read, and not calculated
#: proves: hangs
#: refused: size
class N(int): pass
one = N.from_bytes(b"\xff" * 10**6, "big")
one % int.from_bytes(b"\xfe" * 5 * 10**5, "big")
#: logarithm-of-many-digits
#: threat: L10
#: from: decimal
#: proves: hangs
#: refused: size
import decimal
decimal.getcontext().prec = 50_000
decimal.Decimal(2).ln()
#: logarithm-of-many-digits-by-context
#: threat: L10
#: from: decimal
#: proves: hangs
#: refused: size
import decimal
decimal.Context(prec=50_000).log10(decimal.Decimal(3))
#: logarithm-of-many-digits-in-a-context
#: threat: L10
#: from: decimal
#: proves: hangs
#: refused: size
import decimal
decimal.Decimal(3).exp(decimal.Context(prec=50_000))
#: root-of-many-digits
#: threat: L10
#: from: decimal
#: proves: hangs
#: refused: size
import decimal
decimal.getcontext().prec = 50_000
decimal.Decimal(2) ** decimal.Decimal("0.5001")
#: strip-of-many-characters
#: threat: L10
#: from: C loops within C loops
#: proves: hangs
#: ended: completed, timeout, memory
("a" * 10**7).strip("b" * 10**6 + "a")
#: strip-of-many-characters-by-class
#: threat: L10
#: from: C loops within C loops
#: proves: hangs
#: ended: completed, timeout, memory
str.rstrip("a" * 10**7, "b" * 10**6 + "a")
#: strip-of-many-bytes
#: threat: L10
#: from: C loops within C loops
#: proves: hangs
#: ended: completed, timeout, memory
(lambda text, given: text.lstrip(given))(b"a" * 10**7, b"b" * 10**6 + b"a")
