"""`python -m arena CANARY NAME…`: run attacks in one session and print what became of each, a JSON line each."""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import replace

from arena import reduced
from arena.attack import Attack, prelude
from arena.host import LIMITS, WALLS, Host, hosting, outcome_of
from arena.tables import BY_NAME as FULL
from cellblock import Session

_HANG_SECONDS = 25.0


def main(canary: str, names: list[str]) -> None:
    attacks = reduced.BY_NAME if WALLS == "reduced" else FULL
    with hosting(canary) as host:
        for name in names:
            attack = attacks[name]
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
            print(json.dumps(result, default=repr), flush=True)


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
    """What is no longer as it was on the host."""
    found = sorted(path.name for path in host.folder.iterdir())
    harm = [] if found == ["listener", "secret", "victim"] else [f"files: {found}"]
    if (host.folder / "victim").read_text() != "unharmed" or (host.folder / "secret").read_text() != host.canary:
        harm.append("a file's content")
    return harm


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
