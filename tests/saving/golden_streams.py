"""Records of all scenarios as they were saved once, and whether they are read still.

    python golden_streams.py make FILE
    python golden_streams.py load FILE

`make` writes the golden file of this version of Python: once, when a format is released, and never again. It keeps the
scenarios beside their records: they may change. `load` reads each in a process of its own, and prints as JSON what does
not hold any more.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import lzma
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import driver

import cellblock

HERE = Path(__file__).parent
PACKAGES = ("numpy", "pandas")
"""Whose values are among the golden ones; those of others change more often than formats do."""
PLACE = "/tmp/cb-00000000"  # as long as what `mkdtemp` gives: it stands within the streams
NEEDS = "# needs: "


def needs(text: str) -> list[str]:
    lines = [line.removeprefix(NEEDS) for line in text.splitlines() if line.startswith(NEEDS)]
    return [one.strip() for line in lines for one in line.split(",")]


def major(package: str) -> str | None:
    """The first number of the package's version; None where it is not installed."""
    try:
        return version(package).partition(".")[0]
    except PackageNotFoundError:
        return None


# ------------------------------------------------------------------------------------- made once


def make(path: Path) -> None:
    scenarios = {}
    for scenario in sorted((HERE / "scenarios").glob("*.py")):
        text = scenario.read_text()
        if set(needs(text)) <= {*PACKAGES}:
            scenarios[scenario.stem] = {"text": text, **saved(scenario)}
    golden = {"packages": {one: major(one) for one in PACKAGES}, "scenarios": scenarios}
    whole = json.dumps(golden, sort_keys=True).encode()
    path.write_bytes(lzma.compress(whole, preset=9 | lzma.PRESET_EXTREME))


def saved(scenario: Path) -> dict[str, Any]:
    place = Path(PLACE)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"}
    subprocess.run([sys.executable, str(HERE / "driver.py"), "save", str(scenario), PLACE], env=environment, check=True)
    stored = json.loads((place / "stored.json").read_text())
    without_its_process(stored["record"], stored["objects"])
    stored = without_its_directories(stored)
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        tar.add(place / "then", "then")
    shutil.rmtree(place)
    return {**stored, "files": base64.b64encode(whole.getvalue()).decode()}


def without_its_directories(stored: dict[str, Any]) -> dict[str, Any]:
    """Where Python lies is in what is saved of its functions: there it is another place, by a name of equal length."""
    source = Path(cellblock.__file__).parents[1]
    places = {place: "/opt/".ljust(len(place), "-") for place in (str(source), sys.prefix, sys.base_prefix)}
    objects = {}
    for address, encoded in stored["objects"].items():
        data = base64.b64decode(encoded)
        for place, other in places.items():
            data = data.replace(place.encode(), other.encode())
        objects[address] = base64.b64encode(data).decode()
    record = json.dumps(stored["record"])
    for place, other in places.items():
        record = record.replace(place, other).replace(place[:10], other[:10])  # previews shorten what is long
    return {"record": json.loads(record), "objects": objects}


def without_its_process(record: dict[str, Any], objects: dict[str, str]) -> None:
    """Take this machine's environment and its Python's directories out of what is saved of the process."""
    (key,) = [key for label, key in record["ambient"] if label == "@process"]
    (group,) = [group for group in record["groups"] if group["key"] == key]
    (address,) = group["stream"]
    data = base64.b64decode(objects.pop(address))
    assert data.startswith(b"\n")
    process = pickle.loads(data[1:])
    process["environment"].pop("PYTHONPATH")
    process["path"] = [one for one in process["path"] if one.startswith(PLACE) or not one.startswith("/")]
    data = b"\n" + pickle.dumps(process, 5)
    group["stream"] = [f"sha256-{hashlib.sha256(data).hexdigest()}"]
    objects[group["stream"][0]] = base64.b64encode(data).decode()


# ------------------------------------------------------------------------------------- read for ever


def load(path: Path) -> None:
    golden = json.loads(lzma.decompress(path.read_bytes()))
    for package, saved_with in golden["packages"].items():
        if major(package) == saved_with:
            __import__(package)  # once, and not in each process
    told = {}
    for name, one in golden["scenarios"].items():
        if all(major(package) == golden["packages"][package] for package in needs(one["text"])):
            told[name] = loaded(one)
    print(json.dumps(told))


def loaded(golden: dict[str, Any]) -> list[str]:
    """What does not hold of a record in a process that loads it."""
    with tempfile.TemporaryDirectory(prefix="cb-", dir="/tmp") as place:
        assert len(place) == len(PLACE)
        directory = Path(place)
        here = {
            address: base64.b64encode(base64.b64decode(data).replace(PLACE.encode(), place.encode())).decode()
            for address, data in golden["objects"].items()
        }
        record = json.loads(json.dumps(golden["record"]).replace(PLACE, place))
        (directory / "stored.json").write_text(json.dumps({"record": record, "objects": here}))
        (directory / "scenario.py").write_text(golden["text"])
        (directory / "workspace").mkdir()
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(golden["files"]))) as tar:
            tar.extractall(directory, filter="tar")
        child = os.fork()
        if not child:
            run(directory)
        _, status = os.waitpid(child, 0)
        if status:
            return [f"the process ended with {status}: {(directory / 'heard').read_text()[-2000:]}"]
        found = json.loads((directory / "load.json").read_text())
        return [*map(str, found["failed"]), *(f"{line}: {why}" for line, why in found["checks"] if why)]


def run(directory: Path) -> None:
    signal.alarm(60)
    heard = os.open(directory / "heard", os.O_WRONLY | os.O_CREAT)
    os.dup2(heard, 1)
    os.dup2(heard, 2)
    try:
        driver.main("load", str(directory / "scenario.py"), str(directory))
    except BaseException as error:
        os.write(heard, repr(error).encode())
    finally:
        os._exit(1)


if __name__ == "__main__":
    {"make": make, "load": load}[sys.argv[1]](Path(sys.argv[2]))
