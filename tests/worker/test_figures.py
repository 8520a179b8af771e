"""Figures reach the notebook without ceremony, once each, whenever matplotlib is imported (R8).

Each test is a process of its own: what counts is the order of imports.
"""

import os
import subprocess
import sys

import pytest

START = """
import sys
def show(bundle):
    print("shown", bundle.data["text/plain"], *(f"{mime} {data[:8]!r}" for mime, data in bundle.buffers.items()))
def install():
    from cellblock.worker.show import figures
    figures.install(show)
    return figures
"""
PNG = r"image/png b'\x89PNG\r\n\x1a\n'"
SHOWN = f"shown <Figure size 640x480 with 1 Axes> {PNG}\n"


def output_of(code: str, **environment: str) -> str:
    keep = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", START + code],
        env={**keep, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == ""
    return result.stdout


ORDERS = {
    "imported later": "f = install()\nimport matplotlib.pyplot as plt\n",
    "preloaded": "import matplotlib.pyplot as plt\nf = install()\n",
    "matplotlib preloaded": "import matplotlib\nf = install()\nimport matplotlib.pyplot as plt\n",
    "reloaded": "f = install()\nimport importlib, matplotlib.pyplot as plt\nimportlib.reload(plt)\n",
    "backend chosen": "f = install()\nimport matplotlib as m\nm.use('Agg')\nimport matplotlib.pyplot as plt\n",
    "installed twice": "install()\nf = install()\nimport matplotlib.pyplot as plt\n",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_show_shows_open_figures_once(order: str) -> None:
    assert output_of(order + "plt.plot([1]); plt.show(); plt.show(); print(f.flush(), plt.get_backend())") == (
        SHOWN + "[] agg\n"
    )


@pytest.mark.sampled(0)
def test_show_takes_the_arguments_of_pyplot() -> None:
    assert output_of(ORDERS["preloaded"] + "plt.plot([1]); plt.show(block=True)") == SHOWN


@pytest.mark.sampled(0)
def test_imported_name_show_works() -> None:
    assert output_of("install()\nfrom matplotlib.pyplot import plot, show as s\nplot([1]); s()") == SHOWN
    assert output_of("install()\nfrom pylab import *\nplot([1])\nimport pylab\npylab.show()") == SHOWN


@pytest.mark.sampled(0)
def test_figure_shows_itself_and_the_others_stay_open() -> None:
    code = "a, _ = plt.subplots(); b, _ = plt.subplots(); a.show(); print(plt.get_fignums())"
    assert output_of(ORDERS["preloaded"] + code) == SHOWN + "[2]\n"
    assert output_of(ORDERS["preloaded"] + "from matplotlib.figure import Figure\nFigure().show()") == (
        f"shown <Figure size 640x480 with 0 Axes> {PNG}\n"
    )


@pytest.mark.sampled(0)
def test_flush_shows_figures_in_order_and_closes_them() -> None:
    code = """
for width in (1, 2):
    plt.figure(figsize=(width, 1), facecolor="red").add_subplot()
for bundle in f.flush(): show(bundle)
print(f.flush(), plt.get_fignums())
"""
    assert output_of(ORDERS["imported later"] + code) == (
        f"shown <Figure size 100x100 with 1 Axes> {PNG}\nshown <Figure size 200x100 with 1 Axes> {PNG}\n[] []\n"
    )


@pytest.mark.sampled(0)
def test_background_and_resolution_of_the_figure_are_kept() -> None:
    code = """
import io
from PIL import Image
plt.figure(figsize=(2, 1), dpi=50, facecolor="red")
(bundle,) = f.flush()
image = Image.open(io.BytesIO(bundle.buffers["image/png"]))
print(image.size, image.convert("RGB").getpixel((0, 0)))
"""
    assert output_of(ORDERS["imported later"] + code) in (
        "(110, 60) (255, 0, 0)\n",
        "(100, 50) (255, 0, 0)\n",
    )


@pytest.mark.sampled(0)
def test_figure_shown_as_a_value_is_not_shown_again() -> None:
    code = "fig, _ = plt.subplots(); plt.subplots(); f.close_shown(fig); f.close_shown(1); print(len(f.flush()))"
    assert output_of(ORDERS["preloaded"] + code) == "1\n"


@pytest.mark.sampled(0)
def test_figure_that_cannot_be_drawn_says_so_and_is_closed() -> None:
    code = "plt.title('$\\\\bad$'); plt.figure(figsize=(1, 1)); plt.show(); print(plt.get_fignums())"
    output = output_of(ORDERS["preloaded"] + code)
    assert output.startswith("shown <Figure size 640x480 with 1 Axes>\n[could not be drawn: ValueError: \n\\bad\n")
    assert output.endswith(f"shown <Figure size 100x100 with 0 Axes> {PNG}\n[]\n")


@pytest.mark.sampled(0)
def test_interrupt_while_drawing_passes_and_closes() -> None:
    code = """
from matplotlib.figure import Figure
class Slow(Figure):
    def savefig(self, *args, **options): raise KeyboardInterrupt
plt.figure(FigureClass=Slow)
try: f.flush()
except KeyboardInterrupt: print("interrupted", plt.get_fignums())
"""
    assert output_of(ORDERS["preloaded"] + code) == "interrupted []\n"


@pytest.mark.sampled(0)
def test_pyplot_keeps_its_loader_and_source() -> None:
    code = """
import inspect
loader = plt.__spec__.loader
print(type(loader).__name__, "exec_module" in vars(loader), len(inspect.getsource(plt)) > 1000)
"""
    assert output_of(ORDERS["imported later"] + code) == "SourceFileLoader False True\n"


def test_other_imports_and_missing_matplotlib_are_untouched() -> None:
    code = """
install()
import colorsys
sys.meta_path[:] = sys.meta_path[:1]
try: import matplotlib.pyplot
except ModuleNotFoundError as error: print(error)
"""
    assert output_of(code) == "No module named 'matplotlib'\n"
