"""matplotlib at the level `local`: figures are outputs of the cell, each session's own, and the program's stay its own."""

# ruff: noqa: E501 - programs as they are written

from __future__ import annotations

import threading

import pytest
from levels import local_session, why_not_local

from cellblock import Cell, Policy

pytest.importorskip("numpy")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.skipif(bool(why_not_local()), reason=why_not_local())

POLICY = Policy(trusted=["numpy", "matplotlib"])
HEAD = "import io\nimport numpy as np\nimport matplotlib\nimport matplotlib.pyplot as plt\n"


def _images(cell):
    return sum("image/png" in output.data for output in cell.outputs)


DRAWN = {
    "the state machine": (
        "plt.figure(figsize=(4, 3))\nplt.plot([1, 2, 3], 'r--', label='a')\nplt.title('$x^2$'); plt.xlabel('x'); plt.legend()\n"
        "plt.grid(True); plt.xlim(0, 2); plt.xticks([0, 1], ['a', 'b'], rotation=45)\nplt.show()",
        1,
    ),
    "axes of their own": (
        "fig, ax = plt.subplots(1, 2, figsize=(6, 3))\nbars = ax[0].bar(['a', 'b'], [1, 2], color='g')\n"
        "ax[0].set(title='t', ylabel='y'); ax[0].spines['top'].set_visible(False); ax[0].bar_label(bars, fmt='{:.1f}')\n"
        "fig.colorbar(ax[1].imshow(np.eye(3), cmap='viridis'), ax=ax[1]); fig.tight_layout()\nfig",
        1,
    ),
    "two figures that nobody shows": ("plt.figure(); plt.hist([1, 2, 2]); plt.figure(); plt.axvline(0); None", 2),
    "colours of points": ("plt.scatter([1, 2], [3, 4], c=[1, 2]); plt.colorbar(); plt.show()", 1),
    "maps of one's own colours": (
        "from matplotlib.colors import LinearSegmentedColormap\n"
        "c = LinearSegmentedColormap.from_list('mine', ['red', 'blue'], N=100)\nassert c.N == 100 and c.name == 'mine'\n"
        "plt.imshow(np.eye(3), cmap=LinearSegmentedColormap.from_list('own', [(0, 'white'), (1, 'green')])); plt.show()",
        1,
    ),
    "shapes, ticks and dates": (
        "from matplotlib.patches import Rectangle\nfrom matplotlib.ticker import FuncFormatter, MultipleLocator\n"
        "import matplotlib.dates as mdates\nfig, ax = plt.subplots()\nax.add_patch(Rectangle((0, 0), 1, 1, color='r'))\n"
        "ax.xaxis.set_major_locator(MultipleLocator(1)); ax.yaxis.set_major_formatter(FuncFormatter(lambda v, p: f'{v:.0f}'))\n"
        "ax.annotate('x', (0, 0), xytext=(1, 1), arrowprops=dict(arrowstyle='->')); ax.twinx().plot([1, 2])\nplt.show()",
        1,
    ),
    "styles": (
        "plt.style.use('ggplot'); plt.rcParams['lines.linewidth'] = 3\nplt.subplot(2, 1, 1); plt.plot([1]); None",
        1,
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", DRAWN)
def test_figures_are_outputs_of_the_cell(what: str) -> None:
    source, images = DRAWN[what]
    with local_session(policy=POLICY) as session:
        cell = session.run(HEAD + source)
        assert cell.error is None, cell.error
        assert _images(cell) == images


def test_a_figure_is_saved_in_memory() -> None:
    with local_session(policy=POLICY) as session:
        source = "b = io.BytesIO(); plt.plot([1]); plt.savefig(b); plt.close(); b.getvalue()[1:4]"
        assert session.run(HEAD + source).value == b"PNG"


REFUSED = {
    "modules of a module": "matplotlib.cbook.os",
    "programs": "matplotlib.animation.subprocess",
    "what starts programs": "from matplotlib.animation import subprocess",
    "files of another module": "matplotlib.animation.TemporaryDirectory()",
    "the canvas's own": "plt.figure().canvas._key",
    "parameters in place of others": "matplotlib.rcParams = {}",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_reaches_out_is_refused(what: str) -> None:
    """L1, L4, L8."""
    with local_session(policy=POLICY) as session:
        cell = session.run(HEAD + "import matplotlib.animation\n" + REFUSED[what])
        assert cell.error is not None
        assert cell.error.message.rpartition(" ")[2] in ("[import]", "[attribute]", "[store]"), cell.error.message


def test_a_figure_too_large_for_the_session_is_not_drawn() -> None:
    """L10."""
    with local_session(policy=POLICY) as session:
        cell = session.run(HEAD + "plt.figure(figsize=(300, 300)); None")
        assert not _images(cell)
        assert "30000 by 30000 pixels; the most are 40,000,000" in cell.text


def test_a_table_draws_itself() -> None:
    pytest.importorskip("pandas")
    with local_session(policy=Policy(trusted=["pandas", "matplotlib"])) as session:
        cell = session.run(
            "import pandas as pd\nax = pd.DataFrame({'a': [1, 2]}).plot(title='t')\nax.set_xlabel('x'); ax.get_title()"
        )
        assert cell.value == "t"
        assert _images(cell) == 1


def test_figures_that_a_package_draws_are_shown_though_only_it_is_trusted() -> None:
    pytest.importorskip("pandas")
    with local_session(policy=Policy(trusted=["pandas"])) as session:
        assert _images(session.run("import pandas as pd\npd.Series([1, 2]).plot.bar(); None")) == 1


def test_a_figure_is_shown_once() -> None:
    with local_session(policy=POLICY) as session:
        session.run(HEAD)
        assert _images(session.run("fig, ax = plt.subplots()\ndisplay(fig)\nfig")) == 2
        assert _images(session.run("ax.plot([1]); None")) == 0
        assert _images(session.run("plt.figure().show(); plt.figure(); plt.show(); plt.gcf(); plt.close()")) == 2
        cell = session.run("plt.plot([1]); 1 / 0")
        assert cell.error is not None
        assert session.run("plt.get_fignums()").value == []


def test_each_session_has_figures_of_its_own_and_the_program_has_its() -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    inside, go_on = threading.Event(), threading.Event()

    def meet() -> None:
        inside.set()
        go_on.wait(20)

    mine = plt.figure()
    shows = plt.show
    with local_session(policy=POLICY.fn(meet)) as one, local_session(policy=POLICY) as other:
        cells: list[Cell] = []
        thread = threading.Thread(
            target=lambda: cells.append(one.run(HEAD + "plt.plot([1])\nmeet()\nplt.get_fignums()"))
        )
        thread.start()
        assert inside.wait(20)
        assert other.run(HEAD + "plt.get_fignums()").value == []
        assert plt.get_fignums() == [mine.number]
        go_on.set()
        thread.join()
    assert cells[0].value == [1]
    assert _images(cells[0]) == 1
    assert plt.get_fignums() == [mine.number]
    assert plt.show is shows
    plt.close(mine)
