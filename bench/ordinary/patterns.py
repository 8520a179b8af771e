"""Regular expressions over the lines of a log."""

import re

LINE = re.compile(r"(?P<day>\d{4}-\d\d-\d\d) (?P<time>[\d:]+) \[(?P<level>\w+)\] (?P<where>[\w.]+): (?P<what>.*)")
levels = ["INFO", "WARN", "ERROR", "DEBUG"]
lines = [
    f"2026-01-{i % 28 + 1:02} 10:{i % 60:02}:{i % 59:02} [{levels[i % 4]}] app.part{i % 5}: took {i % 300} ms for id={i}"
    for i in range(2500)
]
seen = {}
slow = []
for line in lines:
    found = LINE.match(line)
    if not found:
        continue
    key = found.group("level"), found["where"]
    seen[key] = seen.get(key, 0) + 1
    took = re.search(r"took (\d+) ms", found.group("what"))
    if took and int(took.group(1)) > 250:
        slow.append(found.groupdict()["day"])
masked = [re.sub(r"id=\d+", "id=*", line) for line in lines[:1500]]
words = re.findall(r"[a-z]+", " ".join(masked))
result = sorted(seen.items())[:4], len(slow), len(set(masked)), len(words)
