"""Audits of modules about dates, times and waiting."""

from __future__ import annotations

import calendar
import datetime
import enum
import time
import zoneinfo
from typing import Any

from cellblock.guard.anatomy import exactly
from cellblock.guard.names import names
from cellblock.guard.sizes import check_spec, narrow
from cellblock.guard.tables import Method, ModuleAudit, TypeAudit, audit, listed, public

_LOOK_SECONDS = 0.02
_ENUMS = [one for one in vars(calendar).values() if type(one) is enum.EnumType]


def _sleep(seconds: float, /) -> None:
    """Waits in small steps: the cell can be ended between two of them."""
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, _LOOK_SECONDS))


def _strftime(kind: type) -> Method:
    function: Any = vars(kind)["strftime"]
    return Method(
        f"{kind.__name__}.strftime", lambda world: lambda self, format: function(self, check_spec(str.__str__(format)))
    )


def _strftime_of_tuple(format: str, *given: Any) -> str:
    return time.strftime(check_spec(str.__str__(format)), *given)


def _strptime(base: type) -> dict[str, Any]:
    """`strptime`, which keeps formats for the whole process, where a class has one."""
    function: Any = vars(base).get("strptime")

    def bound(_: Any, value: Any) -> Any:
        return exactly(function.__get__(None, value if issubclass(type(value), type) else type(value)))

    return {} if function is None else {"strptime": bound}


_KINDS: tuple[Any, ...] = (datetime.date, datetime.time, datetime.datetime)
_PARSED = {kind: _strptime(kind) for kind in _KINDS}
_MOVED: dict[Any, dict[str, Any]] = {
    kind: {"strftime": _strftime(datetime.time if kind is datetime.time else datetime.date), **_PARSED[kind]}
    for kind in _KINDS
}

_WIDTHS = names("formatday formatweek formatweekday formatweekheader formatmonthname formatmonth formatyear")
TextCalendar: Any = type(
    "TextCalendar",
    (calendar.TextCalendar,),
    {"__module__": "calendar", **{name: narrow(getattr(calendar.TextCalendar, name)) for name in _WIDTHS}},
)
"""A calendar of columns that are not wider than can be borne."""


_DRAWN = names("calendar month weekheader")

AUDITS = (
    ModuleAudit(
        name="datetime",
        members=names("date datetime time timedelta timezone tzinfo UTC MINYEAR MAXYEAR"),
        types=(
            *(
                audit(kind, but=moved, subclassable=True, replaced=moved, static_replaced=_PARSED[kind])
                for kind, moved in _MOVED.items()
            ),
            *(audit(kind, subclassable=True) for kind in (datetime.timedelta, datetime.tzinfo)),
            audit(datetime.timezone),
            audit(type(datetime.date(2000, 1, 1).isocalendar()), constructable=False),
            audit(time.struct_time),
        ),
    ),
    ModuleAudit(
        name="time",
        members=names(
            "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns thread_time "
            "gmtime localtime mktime ctime asctime struct_time timezone altzone daylight tzname"
        ),
        instead={"sleep": _sleep, "strftime": _strftime_of_tuple, "strptime": exactly(time.strptime)},
        types=(audit(time.struct_time),),
        note="nothing that sets a clock or the zone of the process",
    ),
    ModuleAudit(
        name="calendar",
        members=listed("calendar") - _DRAWN - {"TextCalendar"},
        instead={"TextCalendar": TextCalendar, **{name: narrow(getattr(calendar, name)) for name in _DRAWN}},
        refused=names("setfirstweekday prmonth prcal prweek LocaleTextCalendar LocaleHTMLCalendar"),
        types=(
            *(
                audit(kind, but=["prmonth", "pryear", "prweek"], subclassable=True)
                for kind in (calendar.Calendar, TextCalendar, calendar.HTMLCalendar)
            ),
            TypeAudit(type=enum.EnumType),
            *(TypeAudit(type=kind, reads=public(int) | names("name value")) for kind in _ENUMS),
        ),
        note="nothing that prints past the session or changes the first day of the week for everyone",
    ),
    ModuleAudit(
        name="zoneinfo",
        members=names("ZoneInfo ZoneInfoNotFoundError available_timezones"),
        naming=names("ZoneInfo"),
        types=(audit(zoneinfo.ZoneInfo, but=["from_file", "clear_cache"]),),
        note="zones come from the system's own data; where that is, and the cache, are the process's",
    ),
)
