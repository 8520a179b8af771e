#: deep-isinstance
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: raised, timeout, memory
x = int
for _ in range(10**5):
    x = (x,)
isinstance('a', x)
#: deep-json
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: raised, timeout, memory
import json
json.loads('[' * 10**5)
#: deep-repr
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
x = []
for _ in range(10**5):
    x = [x]
repr(x)
#: deep-last-value
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
x = []
for _ in range(10**5):
    x = [x]
x
#: deep-equal
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
x, y = [], []
for _ in range(10**5):
    x, y = [x], [y]
x == y
#: deep-literal
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: refused: size
import ast
ast.literal_eval('-' * 10**5 + '1')
#: deep-exception
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
e = None
for _ in range(10**5):
    n = ValueError()
    n.__cause__ = e
    e = n
raise e
#: deep-group
#: threat: L10
#: from: C code that recurses
#: proves: hangs
#: ended: timeout, memory, raised
e = ValueError()
for _ in range(10**4):
    e = ExceptionGroup('a', [e])
raise e
#: exception-many-args
#: threat: L10
#: from: messages that the host makes
#: proves: hangs
#: ended: timeout, memory, raised
raise ValueError(*range(3 * 10**6))
#: exception-long-name
#: threat: L10
#: from: messages that the host makes
#: proves: memory
#: ended: raised, timeout, memory
raise type('A' * 10**7, (Exception,), {})()
#: difflib-quadratic
#: threat: L10
#: from: difflib
#: proves: hangs
#: ended: timeout, memory, raised
import difflib
difflib.get_close_matches('a' * 10**5, ['b' * 10**5 + 'a' * 10**5] * 100)
#: csv-field
#: threat: L10
#: from: csv
#: proves: memory
#: ended: memory, timeout, raised
import csv, io
list(csv.reader(io.StringIO('a' * 5 * 10**7)))
#: csv-sniff
#: threat: L10
#: from: regexes in granted modules
#: proves: hangs
#: ended: completed, timeout, memory, raised
import csv
csv.Sniffer().sniff('"' * 20000 + 'a' * 20000)
#: zlib-bomb
#: threat: L10
#: from: zlib
#: proves: memory
#: ended: timeout, memory, raised
import zlib
x = zlib.compress(bytes(9 * 10**7))
[zlib.decompress(x) for _ in range(50)]
#: struct-pad
#: threat: L10
#: from: struct
#: proves: memory
#: ended: memory, timeout, raised
import struct
struct.pack('9999999x' * 100)
#: uuid-many
#: threat: L10
#: from: loops that end
#: proves: hangs
#: ended: timeout, memory, raised
import uuid
for _ in range(10**8): uuid.uuid4()
#: calendar-years
#: threat: L10
#: from: calendar
#: proves: memory
#: ended: memory, timeout, raised
import calendar
calendar.calendar(2024, 10**7)
#: time-sleep
#: threat: L10
#: from: waiting
#: proves: hangs
#: ended: timeout, memory, raised
import time
time.sleep(100)
#: strptime-percent
#: threat: L10
#: from: regexes in granted modules
#: proves: hangs
#: ended: raised, timeout, memory
from datetime import datetime
datetime.strptime('1' * 60 + 'x', '%d' * 30)
#: strftime-wide
#: threat: L10
#: from: datetime
#: proves: hangs
#: ended: completed, timeout, memory, raised
from datetime import datetime
datetime(2024, 1, 1).strftime('%Y' * 10**6)
#: fnmatch-stars
#: threat: L10
#: from: regexes in granted modules
#: proves: hangs
#: ended: completed, timeout, memory, raised
import fnmatch
fnmatch.fnmatch('a' * 100, '*a' * 25 + 'b')
#: string-template-pattern
#: threat: L10
#: from: regexes in granted modules
#: proves: hangs
#: ended: timeout, memory, raised
import string
string.Template('$' * 10**7).safe_substitute()
#: regex-polynomial
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.search(r'(.*)(.*)(.*)(.*)(.*)x', 'a' * 3000)
#: regex-trailing-space
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.sub(r'\s+$', '', ' ' * 200000 + 'a')
#: regex-counted
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(a?){30}a{30}', 'a' * 30)
re.match(r'(x{1,30}){1,30}y', 'x' * 60)
#: regex-bordering
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(?:a+ba+)*$', 'ab' + 'aaaab' * 30 + 'x')
#: regex-finditer
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
for m in re.finditer(r'(a|a)+b', 'a' * 40): pass
#: regex-callable
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.sub(r'(a|a)+b', lambda m: '', 'a' * 40)
#: regex-unbound
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.Pattern.match(re.compile(r'(a|a)+b'), 'a' * 40)
#: regex-mapped
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
list(map(re.compile(r'(a|a)+b').match, ['a' * 40]))
#: regex-getattr
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
getattr(re.compile(r'(a|a)+b'), 'fullmatch')('a' * 40)
#: regex-letters-beyond-ascii
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(яb?|\wb?)*z', 'я' * 40)
#: regex-ignoring-case
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(?i)(ky?|\u212ay?)*z', 'k' * 40)
#: regex-lookahead
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(?=(a+)+b)', 'a' * 40)
#: regex-backreference
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(a*)*\1b', 'a' * 40)
#: regex-conditional
#: threat: L10
#: from: regexes
#: proves: hangs
#: ended: memory, timeout, raised
import re
re.match(r'(a)?(?(1)(a|a)*|b)c', 'a' * 40)
