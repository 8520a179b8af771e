# %%
lines = [
    f"2024-03-{day:02} {hour:02}:00 {level} worker-{day % 3} took {day * hour % 97} ms"
    for day in range(1, 29)
    for hour in range(0, 24, 6)
    for level in (["INFO"] if day % 7 else ["INFO", "ERROR"])
]
len(lines)

# %%
import re

pattern = re.compile(r"(?P<day>\S+) (?P<time>\S+) (?P<level>[A-Z]+) (?P<worker>\S+) took (?P<ms>\d+) ms")
rows = [match.groupdict() for match in map(pattern.match, lines) if match]
rows[0]

# %%
import pandas as pd

frame = pd.DataFrame(rows).astype({"ms": int})
frame["when"] = pd.to_datetime(frame.pop("day") + " " + frame.pop("time"))
frame = frame.set_index("when")
frame.head(3)

# %%
frame.groupby(["worker", "level"])["ms"].agg(["count", "mean", "max"]).round(1)

# %%
daily = frame["ms"].resample("D").mean()
smooth = daily.rolling(7, min_periods=1).mean()
smooth.tail(3)

# %%
ax = daily.plot(alpha=0.4)
smooth.plot(ax=ax, title="milliseconds a day")

# %%
assert (frame["level"] == "ERROR").sum() == 16 and pattern.groups == 5
