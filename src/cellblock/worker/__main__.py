"""What the host executes: `python -s -P __main__.py NURSERY_FD ZYGOTE_FD`.

Finds the package beside itself without touching `sys.path`: the interpreter may be of an environment that
has no cellblock, and the directory that holds ours may hold packages that must not shadow its own.
"""

import importlib.util
import os
import socket
import sys


def _adopt_package() -> None:
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(
        "cellblock", os.path.join(home, "__init__.py"), submodule_search_locations=[home]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package at {home}")
    package = importlib.util.module_from_spec(spec)
    sys.modules["cellblock"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    _adopt_package()
    from cellblock.worker.launch import launch

    sys.path[:] = [entry for entry in sys.path if entry]
    launch(socket.socket(fileno=int(sys.argv[1])), socket.socket(fileno=int(sys.argv[2])))
