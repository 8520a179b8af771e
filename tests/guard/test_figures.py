"""matplotlib behind the guard: figures are drawn and shown, and nothing of files, fonts, programs or the process."""

# ruff: noqa: E501 - programs as they are written

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from levels import local_session, why_not_local

from cellblock import Policy

pytest.importorskip("numpy")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.skipif(bool(why_not_local()), reason=why_not_local())

POLICY = Policy(libraries=["numpy", "matplotlib"])
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
        "c = LinearSegmentedColormap.from_list('mine', ['red', 'blue'], N=10**12)\nassert c.N == 100_000 and c.name == 'mine'\n"
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
    "a file": ("plt.savefig('WRITTEN')", "builtin"),
    "a file of a figure": ("plt.gca().figure.savefig('WRITTEN.png')", "builtin"),
    "another backend": ("plt.figure().savefig(io.BytesIO(), format='pgf')", "builtin"),
    "a backend by name": ("plt.figure().savefig(io.BytesIO(), backend='module://vaults')", "builtin"),
    "LaTeX": ("plt.text(0, 0, 'x', usetex=True)", "builtin"),
    "LaTeX of a title": ("plt.gca().set_title('x', fontdict={'usetex': True})", "builtin"),
    "LaTeX for all": ("plt.rcParams['text.usetex'] = True", "store"),
    "LaTeX by rc": ("plt.rc('text', usetex=True)", "store"),
    "a font file": ("plt.gca().text(0, 0, 'x', fontproperties=':file=/etc/passwd')", "builtin"),
    "a font file of a legend": ("plt.plot([1], label='x'); plt.legend(prop={'fname': '/etc/passwd'})", "builtin"),
    "a style file": ("plt.style.use('/etc/passwd')", "builtin"),
    "attributes by a format": ("plt.gca().xaxis.set_major_formatter('{x.__class__}')", "format"),
    "attributes by a label": ("plt.gca().bar_label(plt.bar([1], [2]), fmt='{0.__class__}')", "format"),
    "the canvas": ("plt.figure().canvas", "attribute"),
    "callbacks of the process": ("plt.figure().canvas.mpl_connect", "attribute"),
    "an image file": ("plt.imread('/etc/passwd')", "import"),
    "modules of a module": ("matplotlib.cbook", "import"),
    "parameters of where things are": ("plt.rcParams['savefig.directory'] = '/'", "store"),
    "the process's parameters": ("matplotlib.rcParamsDefault", "import"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_reaches_out_is_refused(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L1, L4, L5, L8."""
    monkeypatch.chdir(tmp_path)
    source, rule = REFUSED[what]
    with local_session(policy=POLICY) as session:
        cell = session.run(HEAD + source)
        assert cell.error is not None
        assert cell.error.message.endswith(f"[{rule}]"), cell.error.message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("source", ["plt.figure(figsize=(1e4, 1e4))", "plt.figure().set_size_inches(1e4, 1e4)"])
def test_a_figure_too_large_is_not_made(source: str) -> None:
    """L10."""
    with local_session(policy=POLICY) as session:
        cell = session.run(HEAD + source)
        assert cell.error is not None
        assert cell.error.type == "MemoryError"


def test_the_hosts_own_matplotlib_stays_as_it_is() -> None:
    """L8: its parameters, its figures, and whether `pyplot` was imported at all."""
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import matplotlib
from levels import local_session
from cellblock import Policy
before = dict(dict.items(matplotlib.rcParams))
with local_session(policy=Policy(libraries=["matplotlib"])) as session:
    session.run("import matplotlib.pyplot as plt; plt.style.use('ggplot'); plt.rcParams['font.size'] = 30; plt.plot([1])")
    cell = session.run("plt.cm.viridis.set_bad('r'); plt.get_cmap('viridis').set_bad('r')")
    assert cell.error is None, cell.error
assert dict(dict.items(matplotlib.rcParams)) == before
assert "matplotlib.pyplot" not in sys.modules
print("same")
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert told.stdout == "same\n", told.stderr
