"""How a session is opened: preloads, interpreters, seeds, what is refused and with which words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock import (
    AsyncSession,
    CodeAgent,
    ExecutionLimits,
    IsolationUnavailable,
    PreloadFailed,
    ScriptedModel,
    Session,
)
from cellblock.walls import Applied


def test_preloaded_packages_are_imported_already(open_session: Callable[..., Session]) -> None:
    assert open_session(preload=["decimal"]).run("import sys\n'decimal' in sys.modules").value is True


def test_preload_of_a_missing_package_says_which_and_where(tmp_path: Path) -> None:
    with pytest.raises(PreloadFailed) as caught:
        Session(preload=["json", "no_such_package"])
    assert str(caught.value) == (
        "cannot preload no_such_package: ModuleNotFoundError: No module named 'no_such_package' "
        f"(install it into the environment of {sys.executable}, or leave it out of preload= (--preload))"
    )


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_preload_that_fails_can_be_tried_again() -> None:
    for _ in range(2):
        with pytest.raises(PreloadFailed):
            await AsyncSession(preload=["no_such_package"]).open()
    async with AsyncSession() as session:
        assert (await session.run("1")).value == 1


def test_python_that_names_nothing_is_refused() -> None:
    with pytest.raises(IsolationUnavailable) as caught:
        Session(python="/nowhere/bin/python")
    assert caught.value.mechanism == "python"
    assert "/nowhere/bin/python cannot be started" in str(caught.value)
    assert caught.value.hint.startswith("python= must name CPython 3.11 or newer")


def test_python_that_is_no_python_is_refused() -> None:
    with pytest.raises(IsolationUnavailable) as caught:
        Session(python="/bin/true")
    assert caught.value.mechanism == "start"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment with a package of its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True, timeout=60)
    (packages,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    (packages / "only_here.py").write_text("where = __file__\n")
    return packages


@pytest.mark.sampled(0)
def test_environment_of_python_is_the_sessions(environment: Path, open_session: Callable[..., Session]) -> None:
    session = open_session(python=str(environment.parents[2] / "bin" / "python"), preload=["only_here"])
    assert session.run("import only_here, sys\nonly_here.where, sys.prefix, sys.flags.no_site").value == (
        str(environment / "only_here.py"),
        str(environment.parents[2]),
        0,
    )


@pytest.mark.sampled(0)
def test_what_an_environment_executes_as_it_starts_stands_behind_walls(
    environment: Path, tmp_path: Path, open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_SECRET", "canary")
    mark = tmp_path / "mark"
    (environment / "early.pth").write_text(
        "import sys, os; sys.early = [os.path.exists('/etc/shadow'), 'HOST_SECRET' in os.environ]\n"
    )
    (environment / "sitecustomize.py").write_text(f"open({str(mark)!r}, 'w').close()\nran = True\n")
    session = open_session(python=str(environment.parents[2] / "bin" / "python"))
    assert session.run("import sys, sitecustomize\nsys.early, sitecustomize.ran").value == ([False, False], True)
    assert not mark.exists()  # what it wrote was a file of the zygote's own


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"preload": "numpy"}, "preload is a list of modules, not 'numpy'"),
        ({"preload": [3]}, "preload is a list of modules by their names, not of 3"),
        ({"seed": "x"}, "seed must be a whole number, not str"),
        ({"mounts": {"data": 3}}, "mounts must map names to paths, both str, not 'data' to 3"),
    ],
    ids=["text", "number", "seed", "mount"],
)
@pytest.mark.parametrize("open_one", [Session, lambda **options: CodeAgent(ScriptedModel(["x"]), **options).run("x")])
def test_option_of_another_type_is_refused_by_its_name(
    open_one: Callable[..., object], options: dict[str, object], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        open_one(**options)


def test_unknown_trust_level_is_refused() -> None:
    with pytest.raises(ValueError, match=r"trust_level must be .*'isolated'.*, not 'none'"):
        Session(trust_level="none")  # type: ignore[arg-type]


def test_session_that_failed_to_open_leaves_others_alone(session: Session) -> None:
    with pytest.raises(IsolationUnavailable):
        Session(python="/nowhere/bin/python")
    assert session.run("1").value == 1


def test_capabilities_name_what_was_applied(session: Session) -> None:
    told = session.capabilities
    assert (told.trust_level, told.python) == (
        "isolated",
        session.run("import platform\nplatform.python_version()").value,
    )
    assert {"namespaces", "root", "rlimits", "capabilities", "landlock", "seccomp"} <= {
        wall.mechanism for wall in told.walls if isinstance(wall, Applied)
    }


def test_same_seed_same_random_numbers_hash_order_and_cell_ids(open_session: Callable[..., Session]) -> None:
    source = (
        "import random\n(random.random(), random.sample(range(1000), 5), list({'a', 'b', 'c', 'd', 'e'}), hash('x'))"
    )
    told = []
    for seed in (7, 7, 8):
        session = open_session(seed=seed)
        told.append((session.run(source).value, [cell.id for cell in session.notebook], session.seed))
    assert told[0] == told[1]
    assert told[0][1] != told[2][1]
    assert told[0][0] != told[2][0]


def test_sessions_without_a_seed_draw_different_ones(open_session: Callable[..., Session]) -> None:
    one, two = (open_session().run("import random\nrandom.random()").value for _ in range(2))
    assert one != two


@pytest.mark.sampled(0)
def test_numpy_is_seeded_too(open_session: Callable[..., Session]) -> None:
    pytest.importorskip("numpy")
    source = "import numpy\nfloat(numpy.random.rand())"
    for preload in ((), ("numpy",)):
        one, two = (open_session(seed=7, preload=preload).run(source).value for _ in range(2))
        assert one == two


def test_random_numbers_go_on_after_a_death_where_they_were(open_session: Callable[..., Session]) -> None:
    drawn = []
    for dies in (False, True):
        session = open_session(seed=7)
        if dies:
            session.run("import os, random\nrandom.random()\nos._exit(1)")
        first = session.run("import random\nrandom.random()").value
        if dies:
            session.run("import os\nrandom.random()\nos._exit(1)")
        drawn.append((first, session.run("random.random()").value))
    assert drawn[0] == drawn[1]


def test_without_checkpoints_the_seed_holds_after_a_death(open_session: Callable[..., Session]) -> None:
    session = open_session(seed=7, limits=ExecutionLimits(max_checkpoints=0))
    first = session.run("import random\nrandom.random()").value
    session.run("import os\nos._exit(1)")
    assert session.run("import random\nrandom.random()").value == first


def test_environment_of_the_host_does_not_enter(
    open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_SECRET", "canary")
    assert "canary" not in open_session().run("import os\nstr(dict(os.environ))").text


@pytest.mark.parametrize("module", ["asyncio", "anyio", "sqlite3", "subprocess", "numpy", "pydantic"])
def test_importing_cellblock_imports_nothing_heavy(module: str) -> None:
    source = f"import cellblock, sys\nsys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", source], timeout=30).returncode == 0


def test_every_public_name_loads() -> None:
    import cellblock

    for name in cellblock.__all__:
        assert getattr(cellblock, name) is not None
    with pytest.raises(AttributeError, match="module 'cellblock' has no attribute 'nothing'"):
        cellblock.nothing  # noqa: B018


def test_every_error_can_be_caught_by_a_public_name() -> None:
    import cellblock
    from cellblock import errors

    assert {name for name, kind in vars(errors).items() if isinstance(kind, type)} <= set(cellblock.__all__)
