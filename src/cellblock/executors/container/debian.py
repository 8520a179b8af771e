"""A root of Debian's packages, as a tar file: for an image where no registry can be reached.

Packages are checked against Debian's keys, whichever program fetches them. mmdebstrap makes the smaller root, with
security updates, and needs no root where user namespaces are given; debootstrap is the other.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tarfile
from pathlib import Path

from cellblock.errors import ImageNotBuilt
from cellblock.executors.container.steps import Failed, Step, run

_MIRROR, _SECURITY = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
_PACKAGES = "python3,ca-certificates,libstdc++6"
"""Wheels of compiled packages count on the last."""
_FINISH = "python3 -I /build/finish.py"
_DEBOOTSTRAP = f"""\
set -eu
debootstrap --force-check-gpg --variant=minbase --include="$1" "$2" "$3" "$4"
tar -C "$3" -xf "$5"
chroot "$3" {_FINISH}
tar -C "$3" --one-file-system --numeric-owner -cf "$6" .
"""


async def make_root(program: str, suite: str, build: Path, folder: Path, step: Step) -> Path:
    """Make the tar file of a root, in a folder that is there for it. ImageNotBuilt says what failed.

    `program` is one that `maker` names. `build` is put into the root, and its `finish.py` executed there.
    """
    added, root = folder / "added.tar", folder / "root.tar"
    words = _by_mmdebstrap(suite, added, root) if program == "mmdebstrap" else _by_debootstrap(suite, added, root)
    async with step(f"make a root of Debian {suite}") as line:
        _pack(build, added)
        try:
            await run(words, line, environment={"TMPDIR": str(folder), "LC_ALL": "C.UTF-8"})
        except Failed as failure:
            raise ImageNotBuilt(
                f"{program} could not make a root of Debian {suite}: {failure}",
                hint="" if _FINISH in str(failure) else f"it needs {_MIRROR}, and the package debian-archive-keyring",
            ) from None
        line.outcome = program
    return root


def maker() -> str:
    """The program that makes the root: `mmdebstrap` or `debootstrap`. ImageNotBuilt if neither can."""
    if shutil.which("mmdebstrap"):
        return "mmdebstrap"
    if not shutil.which("debootstrap"):
        raise ImageNotBuilt("neither mmdebstrap nor debootstrap is installed", hint="apt-get install mmdebstrap")
    if os.getuid():
        raise ImageNotBuilt("debootstrap needs root", hint="apt-get install mmdebstrap, which does not; or run as root")
    return "debootstrap"


def _by_mmdebstrap(suite: str, added: Path, root: Path) -> list[str]:
    sources = (
        f"deb {_MIRROR} {suite} main",
        f"deb {_MIRROR} {suite}-updates main",
        f"deb {_SECURITY} {suite}-security main",
    )
    return [
        "mmdebstrap", "--variant=essential", "--format=tar", f"--include={_PACKAGES}",
        f"--customize-hook=tar-in {shlex.quote(str(added))} /",
        f'--customize-hook=chroot "$1" {_FINISH}',
        suite, str(root), *sources,
    ]  # fmt: skip


def _by_debootstrap(suite: str, added: Path, root: Path) -> list[str]:
    """Words that run debootstrap in namespaces of its own, so that its mounts and processes end with it."""
    apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
    target = root.with_suffix("")
    words = [_PACKAGES, suite, str(target), _MIRROR, str(added), str(root)]
    return [*apart, "sh", "-c", _DEBOOTSTRAP, "sh", *words]


def _pack(build: Path, target: Path) -> None:
    """Pack all that goes into the root besides Debian's packages, as root's own."""
    with tarfile.open(target, "w") as tar:
        tar.add(build, "build", filter=_as_roots)


def _as_roots(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
