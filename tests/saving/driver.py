"""Runs one half of a scenario in a process of its own, as a worker would: `save` after the cells, `load` in a new one.

Writes what it found as JSON: for each check whether it held, and what the record tells. Takes the half, the scenario's
file and a directory for what is saved. What was loaded is saved once more, in place of what it was loaded from.
"""

from __future__ import annotations

import base64
import hashlib
import os
import random
import shutil
import sys
import traceback
from json import dumps, loads
from pathlib import Path
from typing import Any

from cellblock.worker.integrity import take_out
from cellblock.worker.interpreter import Interpreter
from cellblock.worker.saving import load, offer, save


def sections(text: str) -> list[tuple[str, str]]:
    """The parts of a scenario: `# %%` begins a cell, `# %% then` one for afterwards, and so on."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("# %%"):
            found.append((line[4:].strip() or "cell", []))
        elif found:
            found[-1][1].append(line)
    return [(kind, "\n".join(lines).strip("\n")) for kind, lines in found]


def forked(namespace: dict[str, Any], place: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Save in a copy of this process, as sessions do: the code of values runs there."""
    sys.stdout.flush()
    state = random.getstate()  # a forked copy seeds it anew
    copy = os.fork()
    if copy:
        _, status = os.waitpid(copy, 0)
        assert status == 0
        record, objects = loads(place.read_text())
        return record, objects
    try:
        random.setstate(state)
        objects = {}

        def put(piece: memoryview | bytes) -> str:
            address = "sha256-" + hashlib.sha256(piece).hexdigest()
            assert len(piece) <= 2**20
            objects[address] = base64.b64encode(piece).decode()
            return address

        place.write_text(dumps([save(namespace, put=put), objects]))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names that are saved as other bytes than those they were loaded from."""
    groups = [{group["key"]: group for group in record["groups"]} for record in (before, after)]
    keys = [{row[0]: row[1] for row in record["names"]} for record in (before, after)]
    return [name for name, key in keys[0].items() if groups[0][key] != groups[1].get(keys[1].get(name))]


def main(half: str, scenario: str, directory: str) -> None:
    parts = sections(Path(scenario).read_text())
    stored = Path(directory, "stored.json")
    workspace, then = Path(directory, "workspace"), Path(directory, "then")
    if half == "load":  # the files as they were
        shutil.rmtree(workspace)
        shutil.copytree(then, workspace)
    os.makedirs(workspace, exist_ok=True)
    os.chdir(workspace)
    sys.path.append(os.getcwd())
    sys.dont_write_bytecode = True
    kept = take_out()
    interpreter = Interpreter()
    offer()
    told: dict[str, object] = {}
    random.seed(0)
    if half == "save":
        number = 0
        for kind, text in parts:
            if kind == "cell":
                number += 1
                interpreter.run(text, f"<cell {number}>")
        record, encoded = forked(interpreter.namespace, Path(directory, "first"))
        again, _ = forked(interpreter.namespace, Path(directory, "again"))
        unstable = [one["key"] for one, other in zip(record["groups"], again["groups"], strict=True) if one != other]
        shutil.copytree(workspace, then, ignore=lambda *_: {"__pycache__"})
        bound = interpreter.names()
        stored.write_text(dumps({"record": record, "objects": encoded}))
        told = {"bound": bound, "names": [row[0] for row in record["names"]], "lost": record["lost"]}
        told["unstable"] = unstable
        told["groups"] = [group["key"] for group in record["groups"]]
    else:
        saved = loads(stored.read_text())
        rows = load(interpreter.namespace, saved["record"], get=lambda one: base64.b64decode(saved["objects"][one]))
        record, encoded = forked(interpreter.namespace, Path(directory, "first"))
        stored.write_text(dumps({"record": record, "objects": encoded}))
        told = {"failed": rows, "names": [row[0] for row in record["names"]]}
        told["changed"] = changed(saved["record"], record)
    checks = []
    for number, (kind, text) in enumerate(parts):
        if kind == "then" or (kind == "warm" and half == "save"):
            try:
                interpreter.run(text, f"<then {number}>")
            except BaseException:
                checks.append([text, traceback.format_exc()])
        elif kind in ("check", "check warm" if half == "save" else "check loaded"):
            for line in filter(None, text.splitlines()):
                try:
                    value = eval(compile(line, f"<check {line}>", "eval"), interpreter.namespace)
                    checks.append([line, "" if bool(value) else f"was {value!r}"])
                except BaseException:
                    checks.append([line, traceback.format_exc(limit=-3)])
    told["checks"] = checks
    sys.modules.update((module.__name__, module) for module in kept)
    Path(directory, f"{half}.json").write_text(dumps(told))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
