"""What is executed: `python -s -P -S __main__.py launch FD` and `porter FD` by the host, `zygote FD ...` by a nursery.

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


def _begin(role: str, descriptors: list[int]) -> None:
    channel = socket.socket(fileno=descriptors[0])
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    if role == "launch":
        from cellblock.worker.launch import launch

        launch(channel, boot=os.path.abspath(__file__))
    elif role == "porter":
        from cellblock.worker import porter

        porter.serve(channel)
    elif role == "reduced":
        from cellblock.worker.reduced import zygote as reduced

        reduced.serve(channel)
    else:
        from cellblock.worker import zygote

        zygote.serve(channel, socket.socket(fileno=descriptors[1]), own=descriptors[2], tasks=descriptors[3])


if __name__ == "__main__":
    _adopt_package()
    sys.path[:] = [entry for entry in sys.path if entry]
    _begin(sys.argv[1], [int(word) for word in sys.argv[2:]])
