"""Makes a root that has Python small and ready for sessions. Runs inside it, as root, by the Python it has.

Packages that are to be added lie beside this file; it moves them to where that Python looks, and tries them.
"""

from __future__ import annotations

import compileall
import importlib
import os
import shutil
import stat
import sys
import sysconfig
from pathlib import Path
from py_compile import PycInvalidationMode

_BUILD = Path(__file__).parent
_OLDEST = (3, 11)
_ACCOUNT = "cellblock:x:1000:1000:cellblock:/tmp:/usr/sbin/nologin\n"
_EMPTIED = ("/var/cache", "/var/lib/apt/lists", "/var/log", "/usr/share/man", "/usr/share/info", "/usr/share/locale")
_TESTED = ("numpy", "pandas", "matplotlib", "mpl_toolkits")
_PIP = '#!/bin/sh\nexec python3 -m pip "$@"\n'
_SETS_USER = stat.S_ISUID | stat.S_ISGID


def main() -> None:
    """Do all of it, or leave with what is wrong."""
    if sys.version_info < _OLDEST:
        sys.exit(f"its python3 is {sys.version.split()[0]}: cellblock needs 3.11 or newer")
    _add_account()
    _add_packages()
    _shrink()
    _take_set_user_bits()
    _let_pip_install()
    _compile()
    shutil.rmtree(_BUILD)


def _add_account() -> None:
    """An ordinary user 1000, where there is none: some programs look themselves up."""
    users = Path("/etc/passwd")
    if not any(line.split(":")[2:3] == ["1000"] for line in users.read_text(encoding="utf-8").splitlines()):
        for path, line in ((users, _ACCOUNT), (Path("/etc/group"), "cellblock:x:1000:\n")):
            with path.open("a", encoding="utf-8") as file:
                file.write(line)


def _add_packages() -> None:
    """Move the packages, and import what is imported by name: a wheel for another Python or C library ends here."""
    packages = _BUILD / "packages"
    if not packages.is_dir():
        return
    site = next(path for path in _sites() if path.is_relative_to("/usr/local"))
    for path in packages.rglob("*"):  # whatever the umask was where they were fetched
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    for entry in packages.iterdir():
        shutil.move(entry, site / entry.name)
    importlib.invalidate_caches()
    for name in ("pip", *_TESTED):
        if (site / name).is_dir():
            importlib.import_module(name)


def _shrink() -> None:
    """Remove what nobody reads inside. Licences stay, and Debian's list of its packages, which scanners read."""
    for folder in map(Path, _EMPTIED):
        for entry in folder.iterdir() if folder.is_dir() else ():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    for path in Path("/usr/share/doc").rglob("*"):
        if path.is_file() and path.name != "copyright":
            path.unlink()
    for site in _sites():
        for package in _TESTED:
            for folder in [path for path in (site / package).rglob("tests") if path.is_dir()]:
                shutil.rmtree(folder)


def _take_set_user_bits() -> None:
    """Nobody is to become anybody else."""
    device = os.stat("/").st_dev
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if os.lstat(os.path.join(folder, name)).st_dev == device]
        for path in (os.path.join(folder, name) for name in files):
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode) and mode & _SETS_USER:
                os.chmod(path, stat.S_IMODE(mode) & ~_SETS_USER)


def _let_pip_install() -> None:
    """Debian's mark would have pip refuse, for the sake of a package manager that is of no use inside."""
    Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").unlink(missing_ok=True)
    if shutil.which("pip") is None and any((site / "pip").is_dir() for site in _sites()):
        script = Path("/usr/local/bin/pip")
        script.write_text(_PIP, encoding="utf-8")
        script.chmod(0o755)


def _compile() -> None:
    """Compile every module: the tree is read-only later, and each start would compile what it imports."""
    for folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), *map(str, _sites())}:
        compileall.compile_dir(folder, quiet=2, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)


def _sites() -> list[Path]:
    """Directories of packages. Debian's python3 has its own next to the usual."""
    return [Path(folder) for folder in sys.path if folder.endswith("-packages") and os.path.isdir(folder)]


if __name__ == "__main__":
    main()
