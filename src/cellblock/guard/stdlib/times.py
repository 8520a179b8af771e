"""Audits of modules about dates, times and waiting."""

from __future__ import annotations

import calendar
import datetime
import enum
import time
import zoneinfo
from collections.abc import Callable
from typing import TYPE_CHECKING

from cellblock.guard.members import listed
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, names, public

if TYPE_CHECKING:
    from cellblock.guard.world import World

_LOOK_SECONDS = 0.02
_ENUMS = [one for one in vars(calendar).values() if type(one) is enum.EnumType]


def _sleep(world: World) -> Callable[[float], None]:
    def sleep(seconds: float, /) -> None:
        """Waits in small steps: the cell can be ended between two of them."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))

    return sleep


AUDITS = (
    ModuleAudit(
        name="datetime",
        members=names("date datetime time timedelta timezone tzinfo UTC MINYEAR MAXYEAR"),
        types=(
            *(audit(kind, subclassable=True) for kind in (datetime.date, datetime.datetime, datetime.time)),
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
            "strftime strptime gmtime localtime mktime ctime asctime struct_time timezone altzone daylight tzname"
        ),
        replaced={"sleep": _sleep},
        types=(audit(time.struct_time),),
        note="nothing that sets a clock or the zone of the process",
    ),
    ModuleAudit(
        name="calendar",
        members=listed("calendar"),
        refused=names("setfirstweekday prmonth prcal prweek LocaleTextCalendar LocaleHTMLCalendar"),
        types=(
            *(
                audit(kind, but=["prmonth", "pryear", "prweek"], subclassable=True)
                for kind in (calendar.Calendar, calendar.TextCalendar, calendar.HTMLCalendar)
            ),
            TypeAudit(type=enum.EnumType),
            *(TypeAudit(type=kind, reads=public(int) | names("name value")) for kind in _ENUMS),
        ),
        note="nothing that prints past the session or changes the first day of the week for everyone",
    ),
    ModuleAudit(
        name="zoneinfo",
        members=names("ZoneInfo ZoneInfoNotFoundError available_timezones"),
        types=(audit(zoneinfo.ZoneInfo, but=["from_file", "clear_cache"]),),
        note="zones come from the system's own data; where that is, and the cache, are the process's",
    ),
)
