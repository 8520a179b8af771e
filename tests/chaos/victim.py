"""A program with many sessions, run while others kill its processes. Prints what became of its calls as JSON.

    python victim.py SEED

Opens, uses and closes sessions in several threads until a line comes on stdin, then once more with nobody about.
Every call must end within its time, with what was asked for or an error of cellblock's.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable

from cellblock import CellblockError, ExecutionLimits, Session, keep_ready

THREADS = 3
LIMITS = ExecutionLimits(timeout_seconds=3, interrupt_grace_seconds=0.3)
PRELOADS = ((), ("colorsys",))
CELLS = (
    "x = 1",
    "print('x' * 5000)",
    "import time\ntime.sleep(0.05)",
    "import subprocess\nsubprocess.Popen(['sleep', '1000'])",
    "import os\nos._exit(1)",
    "import os\nif os.fork() == 0: time.sleep(1000)",
    "open('f', 'w').write('1')",
)


class Log:
    """What calls did, by all threads."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self.slowest = 0.0

    def call(self, what: str, function: Callable[[], object]) -> object:
        """Do it; None when it failed as it may."""
        began = time.monotonic()
        try:
            result = function()
            self.outcomes[f"{what}: done"] += 1
            return result
        except CellblockError as error:
            self.outcomes[f"{what}: {type(error).__name__}"] += 1
            if not (str(error) and error.hint):
                self.unexpected.append(f"{what}: an error without a word or a hint: {error!r}")
        except BaseException:
            self.unexpected.append(f"{what}:\n{traceback.format_exc()}")
        finally:
            self.slowest = max(self.slowest, time.monotonic() - began)
        return None


def use(log: Log, chance: random.Random) -> None:
    """One session, from its opening to its close."""
    preload = chance.choice(PRELOADS)
    if chance.random() < 0.1:
        log.call("keep_ready", lambda: keep_ready(chance.randrange(3), preload=preload))
    session = log.call("open", lambda: Session(preload=preload, limits=LIMITS))
    if not isinstance(session, Session):
        return
    for _ in range(chance.randrange(1, 6)):
        source = chance.choice(CELLS)
        if log.call("run", lambda source=source: session.run(source)) is None:
            break
        if chance.random() < 0.3:
            log.call("write", lambda: session.files.write("g", b"1"))
    log.call("close", session.close)


def main() -> None:
    log, done = Log(), threading.Event()

    def work(seed: int) -> None:
        chance = random.Random(seed)
        while not done.is_set():
            use(log, chance)

    Session().close()  # its loop's thread, and what else is kept, is there from here on
    before = len(os.listdir("/proc/self/fd"))
    threads = [threading.Thread(target=work, args=(int(sys.argv[1]) * 1000 + number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    print("begun", flush=True)
    sys.stdin.readline()
    done.set()
    for thread in threads:
        thread.join()
    for preload in PRELOADS:
        keep_ready(0, preload=preload)
        with Session(preload=preload) as session:
            log.outcomes["last"] += session.run("6 * 7").value == 42
    after = len(os.listdir("/proc/self/fd"))
    told = {"outcomes": log.outcomes, "unexpected": log.unexpected, "slowest": log.slowest}
    print(json.dumps({**told, "descriptors": [before, after]}), flush=True)


if __name__ == "__main__":
    main()
