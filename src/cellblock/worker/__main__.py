"""The program that is executed: `python -s -P -S __main__.py launch FD …` and `porter FD` by the host, `contained PATH
…` as the first process of a container, `zygote FD …` by a nursery.

Finds the package beside itself without touching `sys.path`: the interpreter may be of an environment that
has no cellblock, and the directory that holds ours may hold packages that must not shadow its own.
"""

import os
import socket
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader


def _adopt_package() -> None:
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.path.join(home, "__init__.py")
    package = type(sys)("cellblock")
    spec = ModuleSpec("cellblock", SourceFileLoader("cellblock", path), origin=path, is_package=True)
    spec.submodule_search_locations = [home]
    spec.has_location = True
    package.__spec__, package.__loader__ = spec, spec.loader
    package.__path__, package.__file__ = [home], path
    sys.modules["cellblock"] = package
    assert spec.loader is not None
    spec.loader.exec_module(package)


def _begin(role: str, words: list[str]) -> None:
    from cellblock.hosting import inherited

    inherited.settle()
    if role == "launch":
        from cellblock.worker.family.launch import launch

        channel, zygote_channel, idle_seconds, expose = words
        ends = _taken(channel), _taken(zygote_channel)
        launch(*ends, float(idle_seconds), expose, boot=os.path.abspath(__file__))
    elif role == "contained":
        from cellblock.worker import control
        from cellblock.worker.family.launch import launch

        meeting, idle_seconds, expose = words
        ends = _met(meeting), _met(meeting)
        control.receive(ends[0])  # the host looks first at what stands around us
        launch(*ends, float(idle_seconds), expose, boot=os.path.abspath(__file__))
    elif role == "porter":
        from cellblock.worker.family import porter

        porter.serve(_taken(words[0]))
    elif role == "relayed":
        from cellblock.worker.relayed import relay

        relay.run()
    elif role == "reduced":
        from cellblock.worker.reduced import zygote as reduced

        reduced.serve(_taken(words[0]))
    else:
        from cellblock.worker.environment import enter_packages

        enter_packages()
        from cellblock.worker.family import zygote

        host, nursery, own, tasks = words
        for descriptor in (own, tasks):
            os.set_inheritable(int(descriptor), False)
        zygote.serve(_taken(host), _taken(nursery), own=int(own), tasks=int(tasks))


def _met(path: str) -> socket.socket:
    """A connection to the host, which waits for it."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    return connection


def _taken(word: str) -> socket.socket:
    from cellblock.hosting import sockets

    channel = sockets.adopted(int(word))
    channel.set_inheritable(False)
    return channel


if __name__ == "__main__":
    _adopt_package()
    sys.path[:] = [entry for entry in sys.path if entry]
    _begin(sys.argv[1], sys.argv[2:])
