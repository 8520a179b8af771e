"""`python -m cellblock_attacks [--twice] CANARY NAME…`: makes attacks in one session, and prints what became of each.

A JSON line an attack, with what it `reached` and what else `failed`. With `--twice` one that reached nothing and did
not meet its wall either is made again, since on a busy machine some come too late; the second outcome counts. Where no
session opens, one line with `failure` and the `mechanism` that is missing.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from cellblock import CellblockError, IsolationUnavailable, Session
from cellblock_attacks import reduced
from cellblock_attacks.attack import Attack, prelude
from cellblock_attacks.host import LIMITS, WALLS, Host, hosting, outcome_of
from cellblock_attacks.tables import BY_NAME
from cellblock_attacks.tables import BY_NAME as FULL

_HANG_SECONDS = 25.0


def main(canary: str, names: list[str], *, tries: int = 1) -> None:
    attacks = reduced.BY_NAME if WALLS == "reduced" else FULL
    with hosting(canary) as host:
        for name in names:
            attack = attacks[name]
            for left in reversed(range(tries)):
                host = replace(host, prelude=prelude(host.facts))
                result: dict[str, object] = {}
                thread = threading.Thread(target=_run, args=(host, attack, result), daemon=True)
                began = time.monotonic()
                thread.start()
                thread.join(_HANG_SECONDS)
                if thread.is_alive():
                    result = {"answer": f"no answer in {_HANG_SECONDS:g} s", "alive": False}
                if attack.lasting or not result.get("alive"):  # the next attack deserves a session that works
                    threading.Thread(target=host.session.close, daemon=True).start()
                    host = replace(host, session=Session(limits=LIMITS))
                result |= {"name": name, "seconds": round(time.monotonic() - began, 2)}
                outcome = json.loads(json.dumps(result, default=repr))
                outcome["reached"] = list(reached(outcome))
                outcome["failed"] = list(failed(attack, outcome, walls=WALLS))
                if not left or outcome["reached"] or not outcome["failed"]:
                    break
            print(json.dumps(outcome), flush=True)


def _run(host: Host, attack: Attack, result: dict[str, object]) -> None:
    session = host.session
    try:
        session.run("kept_name = 'kept'")
        session.files.write("kept_file", b"kept")
        before = len(session.notebook.cells)
        touched = len(host.listeners.touched)
        answer = host.cell(attack.cell) if attack.host is None else attack.host(host)
        shown = session.notebook.cells[before:]
        result["answer"] = answer
        result["leaked"] = host.canary in repr((answer, [(c.outputs, c.text, c.error, c.lost) for c in shown]))
        result["touched"] = host.listeners.touched[touched:]
        result["harmed"] = _harm(host)
        settled = [outcome_of(session, "1+1")]
        if settled != [2]:  # what the attack left behind may end the process only now
            settled.append(outcome_of(session, "1+1"))
        result["alive"] = settled[-1] == 2
        result["then"] = settled
        lost = {one.name for cell in session.notebook.cells[before:] for one in cell.lost}
        result["lost"] = sorted(lost & {"kept_name"})
        result["kept"] = [outcome_of(session, "kept_name"), session.files.read("kept_file").decode()]
        result["rolled_back"] = any(cell.rolled_back for cell in shown)
    except BaseException as error:
        result["answer"] = f"the host raised {type(error).__name__}: {error}"
        result["alive"] = False


def _harm(host: Host) -> list[str]:
    """Changes on the host, in words."""
    found = sorted(path.name for path in host.folder.iterdir())
    harm = [] if found == ["listener", "secret", "victim"] else [f"files: {found}"]
    if (host.folder / "victim").read_text() != "unharmed" or (host.folder / "secret").read_text() != host.canary:
        harm.append("a file's content")
    return harm


def _end(number: int, frame: object) -> None:
    """Leave as one does who has finished: what was laid out on the host is taken away."""
    raise SystemExit(128 + number)


Outcome = Mapping[str, object]
"""One line of `python -m cellblock_attacks`: an attack's answer, and what was found on the host afterwards."""


def reached(outcome: Outcome) -> Iterator[str]:
    """The things outside of its session that an attack got at, or changed."""
    if outcome.get("leaked") is not False:
        yield "a secret of the host came out"
    if outcome.get("touched") != []:
        yield f"services of the host were reached: {outcome.get('touched')}"
    if outcome.get("harmed") != []:
        yield f"the host was changed: {outcome.get('harmed')}"


def failed(attack: Attack, outcome: Outcome, *, walls: str = "full") -> Iterator[str]:
    """Faults beside that: another answer than the wall's, a session that is over, state that is gone."""
    answer = outcome.get("answer")
    if not _expected(attack, answer, walls):
        yield f"the answer was {answer!r:.300}, that of the wall is {attack.expect!r:.300}"
    if outcome.get("alive") is not True:
        yield f"the session did not go on: {outcome.get('then')!r:.300}"
    lost, kept = outcome.get("lost"), outcome.get("kept") == ["kept", "kept"]
    if attack.dies and walls == "reduced":  # there are no checkpoints
        if lost != ["kept_name"]:
            yield f"names that were lost: {lost}"
    elif not kept or (walls == "full" and lost != []):
        yield "names or files of before were lost"
    if attack.dies and walls == "full" and outcome.get("rolled_back") is not True:
        yield "the session did not go back to before the cell"


def _expected(attack: Attack, answer: object, walls: str) -> bool:
    """Without namespaces, an attack of isolated sessions may be refused before it comes to its wall."""
    if answer == attack.expect:
        return True
    if walls == "full" or attack.name not in BY_NAME:
        return False
    return answer == reduced.ANSWERS.get(attack.name, attack.expect) or reduced.refused(answer)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    words = [word for word in sys.argv[1:] if word != "--twice"]
    try:
        main(words[0], words[1:], tries=1 + ("--twice" in sys.argv))
    except CellblockError as error:
        mechanism = error.mechanism if isinstance(error, IsolationUnavailable) else ""
        print(json.dumps({"failure": str(error), "mechanism": mechanism}), flush=True)
