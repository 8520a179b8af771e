#: dates
#: needs: datetime
from datetime import date, timedelta
d = date(2024, 2, 28)
print(d + timedelta(days=2), d.weekday(), d.isoformat(), d.strftime("%a %d %b %Y"), (date(2024, 12, 25) - d).days, d.replace(month=1), date.fromisoformat("2023-05-06"), d.isocalendar()[1], d < date(2025, 1, 1), date.min.year, d.timetuple().tm_yday, d.toordinal())
#: datetimes
#: needs: datetime
from datetime import datetime, timedelta, timezone, time
t = datetime(2024, 3, 10, 14, 30, 15, 123456)
print(t, t.isoformat(" ", "minutes"), t.date(), t.time(), t - timedelta(hours=15, minutes=1), datetime.strptime("01/02/2023 05:06", "%d/%m/%Y %H:%M"), t.replace(tzinfo=timezone.utc).isoformat(), datetime.fromisoformat("2024-01-01T00:00:00+02:00").utcoffset(), time(5, 6).isoformat(), datetime.combine(t.date(), time(1, 2)), repr(t))
u = t.replace(tzinfo=timezone.utc)
print(u.astimezone(timezone(timedelta(hours=-5), "EST")), u.timestamp(), datetime.fromtimestamp(0, timezone.utc))
#: timedeltas
#: needs: datetime
from datetime import timedelta
d = timedelta(days=1, hours=2, seconds=3.5)
print(d, d.total_seconds(), d * 2, d / timedelta(hours=1), -d, abs(-d), d // timedelta(hours=5), sum([d, d], timedelta()), repr(d), timedelta(weeks=1).days, divmod(timedelta(hours=25), timedelta(days=1)))
#: bad-date
#: needs: datetime
#: raises: ValueError
from datetime import date
date(2023, 2, 29)
#: naive-and-aware
#: needs: datetime
#: raises: TypeError
from datetime import datetime, timezone
datetime(2024, 1, 1) < datetime(2024, 1, 1, tzinfo=timezone.utc)
#: calendar-module
#: needs: calendar
import calendar
print(calendar.isleap(2024), calendar.monthrange(2024, 2), calendar.day_name[0], calendar.month_abbr[12], calendar.leapdays(2000, 2024))
print(calendar.TextCalendar().formatmonth(2024, 2))
#: working-days
#: needs: datetime
from datetime import date, timedelta
def workdays(start, end, holidays=()):
    d, n = start, 0
    while d <= end:
        n += d.weekday() < 5 and d not in holidays
        d += timedelta(days=1)
    return n
print(workdays(date(2024, 1, 1), date(2024, 1, 31), {date(2024, 1, 1)}))
#: easter-and-leap
def easter(y):
    a, b, c = y % 19, y // 100, y % 100
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    l = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 19 * l) // 433
    month = (h + l - 7 * m + 90) // 25
    return y, month, (h + l - 7 * m + 33 * month + 19) % 32
print(easter(2024), easter(2025), [y for y in range(1896, 1910) if y % 4 == 0 and y % 100 or y % 400 == 0])
#: age-and-schedule
#: needs: datetime
from datetime import date, datetime, timedelta
def age(born, today): return today.year - born.year - ((today.month, today.day) < (born.month, born.day))
print(age(date(2000, 3, 1), date(2024, 2, 29)), age(date(2000, 2, 29), date(2024, 2, 29)))
slots = []
t = datetime(2024, 1, 1, 9)
while t.hour < 11:
    slots.append(f"{t:%H:%M}")
    t += timedelta(minutes=45)
print(slots)
#: own-datetime-subclass
#: needs: datetime
from datetime import date
class Day(date):
    @property
    def weekend(self): return self.weekday() > 4
d = Day(2024, 3, 9)
print(d.weekend, d, type(d.replace(day=11)).__name__, d.replace(day=11).weekend)
