# %%
from decimal import Decimal, getcontext, Context, localcontext, ROUND_UP
from fractions import Fraction
import re, uuid, datetime as dt, zoneinfo, ipaddress, string
from pathlib import Path, PurePosixPath
getcontext().prec = 7; getcontext().rounding = ROUND_UP
mine = Context(prec=3)
big = 10 ** 400; d = Decimal('1.10'); fr = Fraction(1, 3); cx = 1 + 2j; inf = float('inf')
pat = re.compile(r'(?P<a>\d+)', re.I); match = pat.match('42'); second = list(pat.finditer('1 22'))[1]
u = uuid.UUID(int=5); p = Path('a/b'); pp = PurePosixPath('/x')
now = dt.datetime(2020, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2), 'X')); z = dt.datetime(2020, 7, 1, tzinfo=dt.timezone.utc)
ip = ipaddress.ip_address('10.0.0.1'); tmpl = string.Template('$a b')
r = range(3, 10, 2); sl = slice(1, 5, 2); ba = bytearray(b'xyz'); by = b'\0\xff'; st = 'ünï\U0001f600\ud800'
e = ...; ni = NotImplemented; none = None; tr = True
# %% check
match.re is pat and match.groups() == ('42',) and second.span() == (2, 4) and second['a'] == '22'
getcontext().prec == 7 and getcontext().rounding == 'ROUND_UP' and Decimal(1) / 3 == Decimal('0.3333334')
mine.divide(1, 3) == Decimal('0.333') and big == 10 ** 400 and str(d) == '1.10' and fr * 3 == 1 and cx.imag == 2
pat.sub('n', '42 a') == 'n a' and pat.flags & re.I
u.int == 5 and p / 'c' == Path('a/b/c') and pp.name == 'x'
now.utcoffset() == dt.timedelta(hours=2) and now.tzname() == 'X' and z.tzinfo is dt.timezone.utc
ip + 1 == ipaddress.ip_address('10.0.0.2') and tmpl.substitute(a=1) == '1 b'
r[2] == 7 and sl == slice(1, 5, 2) and ba == b'xyz' and by == b'\0\xff' and st == 'ünï\U0001f600\ud800'
e is ... and ni is NotImplemented and none is None and tr is True
