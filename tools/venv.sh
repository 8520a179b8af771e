#!/bin/sh
# Makes .venv in the project root from a Python >= 3.11, with whatever the machine has for making one.
# Called by the Makefile. PYTHON names the interpreter; otherwise the first fit on PATH is taken.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONHOME PYTHONPATH

say() { printf '%s\n' "-- $*"; }
fail() { printf '%s\n' "error: $*" >&2; exit 1; }
fits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
has_pip() { .venv/bin/python -m pip --version >/dev/null 2>&1; }

choose_python() {
    if [ -n "${PYTHON:-}" ]; then
        fits "$PYTHON" || fail "PYTHON=$PYTHON is not a Python >= 3.11"
        echo "$PYTHON"
        return
    fi
    # the full path comes last: a version manager's shim may stand before it and not work
    for name in python3 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if fits "$name"; then command -v "$name"; return; fi
    done
    fail "no Python >= 3.11 on PATH (Debian 12: sudo apt-get install python3 python3-venv; elsewhere: make PYTHON=/path/to/python3)"
}

# Debian parts venv from its Python, in a package named after the version.
venv_package() {
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    default=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true)
    if [ "$version" = "$default" ]; then echo python3-venv; else echo "python$version-venv"; fi
}

# Each way answers 0 when .venv/bin/python has pip. What a way printed is shown only if all of them fail.
attempt() {
    rm -rf .venv
    { echo "\$ $*"; "$@"; } >>build/venv.log 2>&1 && has_pip
}

with_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    case $("$python" -c 'import sys; print(sys._base_executable)') in /usr/bin/*) ;; *) return 1 ;; esac
    package=$(venv_package)
    say "apt-get install $package"
    {
        apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package"
    } >>build/venv.log 2>&1 && attempt "$python" -m venv .venv
}

# virtualenv, put into build/ so that nothing outside the project changes
with_virtualenv() {
    "$python" -m pip --version >>build/venv.log 2>&1 || return 1
    say "$python cannot make environments by itself: fetching virtualenv into build/"
    "$python" -m pip install --quiet --disable-pip-version-check --target build/virtualenv virtualenv \
        >>build/venv.log 2>&1 && attempt env PYTHONPATH=build/virtualenv "$python" -m virtualenv --quiet .venv
}

python=$(choose_python)

if [ -x .venv/bin/python ] && fits .venv/bin/python && has_pip && [ "${1:-}" != --new ]; then
    say "using the .venv that is here"
    exit 0
fi

mkdir -p build
: >build/venv.log
say "making .venv with $python ($("$python" -c 'import platform; print(platform.python_version())'))"
attempt "$python" -m venv .venv ||
    attempt "$python" -m virtualenv --quiet .venv ||
    with_apt ||
    with_virtualenv || {
        rm -rf .venv
        cat build/venv.log >&2
        fail "$python can make no environment; install its venv module: sudo apt-get install $(venv_package)"
    }
