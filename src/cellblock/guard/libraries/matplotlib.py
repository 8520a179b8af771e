"""The audit of matplotlib: figures, axes, plots and styles, drawn by Agg and shown as outputs of the cell.

`pyplot` is made for each world, of figures alone: the real one holds the figures of the whole process, and chooses its
backend. No files, images, fonts or style files are opened, no LaTeX is run, and no other module is reached.
"""

from __future__ import annotations

import io
import string
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib import (
    artist,
    axis,
    cm,
    colorbar,
    colors,
    container,
    dates,
    figure,
    gridspec,
    legend,
    lines,
    patches,
    ticker,
    transforms,
)
from matplotlib import style as styles
from matplotlib import text as texts
from matplotlib.axes import Axes
from matplotlib.spines import Spines

from cellblock.guard.refusal import denied
from cellblock.guard.stdlib.exact import exact
from cellblock.guard.tables import ModuleAudit, Replaced, TypeAudit, names

if TYPE_CHECKING:
    from cellblock.guard.world import World

mpl: Any = matplotlib
_MOST_PIXELS = 40_000_000
_spec: Any = gridspec.SubplotSpec
_FORMATS = ("png", "svg")
_LOCK = threading.RLock()
"""Held while the process's parameters are those of one world."""

# ----------------------------------------------------------------------------------- what calls are given

_NEVER = names("usetex fontproperties font_properties font fname backend url urls agg_filter metadata pil_kwargs")
_FONT = names("size family weight style variant stretch")


def _require_plain(value: Any, *, depth: int = 4) -> None:
    """That nothing given names a file, a font file or LaTeX, in dicts however deep."""
    if isinstance(value, dict):
        for key, one in list(value.items()):
            name = exact(key)
            if name in _NEVER and one is not None and one is not False:
                raise denied(f"{name}= reaches files or programs of the host: leave it out", "builtin")
            if name == "prop" and one is not None and not (isinstance(one, dict) and {*map(exact, one)} <= _FONT):
                raise denied("prop= takes a dict of size, family, weight or style here", "builtin")
            if name in ("fmt", "format", "autopct") and isinstance(one, str):
                _require_fields(one)
            if depth:
                _require_plain(one, depth=depth - 1)
    elif isinstance(value, list | tuple) and depth and len(value) < 1000:
        for one in value:
            _require_plain(one, depth=depth - 1)


def _require_fields(form: str) -> None:
    """That a format reads no attributes; matplotlib fills it with `str.format`."""
    try:
        fields = [field for _, field, spec, _ in string.Formatter().parse(exact(form)) if field or "{" in (spec or "")]
    except ValueError:
        return
    if any("." in field or "[" in field for field in map(str, fields)):
        raise denied("Format string attribute access not allowed", "format")


def _checked(function: Callable[..., Any], *, form: bool = False) -> Callable[..., Any]:
    def called(*given: Any, **named: Any) -> Any:
        _require_plain(given)
        _require_plain(named)
        for one in given if form else ():
            if isinstance(one, str):
                _require_fields(one)
        return function(*given, **named)

    for name in ("__name__", "__qualname__"):
        setattr(called, name, getattr(function, "__name__", "method"))
    return called


def _methods(text: str) -> dict[str, Replaced]:
    """Methods that are called with what was looked at, under the world's parameters."""

    def replaced(name: str) -> Replaced:
        def make(world: World, value: Any) -> Any:
            return _checked(getattr(value, name), form="formatter" in name)

        return make

    return {name: replaced(name) for name in text.split()}


# -------------------------------------------------------------------------------------------- figures


def _require_bearable(width: Any, height: Any, dpi: Any) -> None:
    if float(width) * float(height) * float(dpi) ** 2 > _MOST_PIXELS:
        raise MemoryError(f"a figure of more than {_MOST_PIXELS:,} pixels")


def _sized(name: str) -> Replaced:
    """A method that changes how large a figure is."""

    def replaced(world: World, value: Any) -> Any:
        def called(*given: Any, **named: Any) -> Any:
            width, height = value.get_size_inches()
            dpi = value.get_dpi()
            if name == "set_size_inches":
                width, height = given if len(given) == 2 else given[0] if given else (named["w"], named["h"])
            elif name == "set_dpi":
                (dpi,) = given or (named["val"],)
            else:
                (one,) = given or (named["val"],)
                width, height = (one, height) if name == "set_figwidth" else (width, one)
            width, height, dpi = float(width), float(height), float(dpi)
            _require_bearable(width, height, dpi)
            value.set_dpi(dpi)
            value.set_size_inches(width, height)

        return called

    return replaced


def _savefig(world: World, value: Any) -> Any:
    def savefig(fname: Any, *, format: Any = None, dpi: Any = None, **named: Any) -> None:
        if not isinstance(fname, io.BytesIO | io.StringIO):
            raise denied("savefig() writes no files here: show the figure, or give io.BytesIO()", "builtin")
        form = "png" if format is None else exact(format)
        if form not in _FORMATS:
            raise denied(f"savefig() makes {' and '.join(_FORMATS)} here", "builtin")
        dpi = value.get_dpi() if dpi is None or dpi == "figure" else float(dpi)
        width, height = value.get_size_inches()
        _require_bearable(width, height, dpi)
        _require_plain(named)
        value.savefig(fname, format=form, dpi=dpi, **named)

    return savefig


def _show(world: World, value: Any) -> Any:
    def show(*_: Any, **__: Any) -> None:
        pyplot(world).display(value)

    return show


_PARAMETERS = (
    *("axes.", "figure.", "font.", "lines.", "patch.", "xtick.", "ytick.", "grid.", "legend.", "image.", "scatter."),
    *("hist.", "boxplot.", "errorbar.", "contour.", "markers.", "hatch.", "mathtext.", "axes3d.", "polaraxes."),
)


def _is_parameter(name: str) -> bool:
    return name == "text.color" or (name.startswith(_PARAMETERS) and name in mpl.rcParams)


class Parameters(MutableMapping[str, Any]):
    """`rcParams` of one world. Those that say where files or programs are cannot be set."""

    def __init__(self) -> None:
        self.own: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if not _is_parameter(exact(key)):
            raise KeyError(key)
        return self.own.get(exact(key), mpl.rcParams[exact(key)])

    def __setitem__(self, key: str, value: Any) -> None:
        if not _is_parameter(exact(key)):
            raise denied(f"the parameter {exact(key)!r:.60} cannot be set", "store")
        self.own[exact(key)] = mpl.rcParams.validate[exact(key)](exact(value))

    def __delitem__(self, key: str) -> None:
        self.own.pop(exact(key), None)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in mpl.rcParams if _is_parameter(name)])

    def __len__(self) -> int:
        return len(list(iter(self)))


class Style:
    """`pyplot.style`: the styles that come with matplotlib, for one world."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    @property
    def available(self) -> list[str]:
        return list(styles.available)

    def use(self, style: Any) -> None:
        for one in style if isinstance(style, list | tuple) else [style]:
            self._apply(one)

    @contextmanager
    def context(self, style: Any) -> Iterator[None]:
        before = dict(self._parameters.own)
        try:
            self.use(style)
            yield
        finally:
            self._parameters.own = before

    def _apply(self, style: Any) -> None:
        name = exact(style)
        if isinstance(name, dict):
            self._parameters.update(name)
        elif name == "default":
            self._parameters.own.clear()
        elif name in styles.available:
            found = styles.library[name]
            self._parameters.own.update({key: found[key] for key in found if _is_parameter(key)})
        else:
            raise denied(f"{name!r:.60} is no style that comes with matplotlib", "builtin")


class Pyplot:
    """The figures of one world, and which of them is current."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.parameters = Parameters()
        self.style = Style(self.parameters)
        self.open: dict[int, Any] = {}
        self._current: Any = None
        world.unshown.append(self.take)
        world.grant_types({one.type: one for one in _TYPES})

    def take(self) -> list[Any]:
        """The open figures, which are closed by it."""
        found = list(self.open.values())
        self.open.clear()
        self._current = None
        return found

    def display(self, value: Any) -> None:
        self.close(value)
        self._world.builtins.get("display", lambda *_: None)(value)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """With the world's parameters, which no other thread's figures see."""
        if not self.parameters.own:
            yield
            return
        with _LOCK, mpl.rc_context(self.parameters.own):
            yield

    # ------------------------------------------------------------------------ functions of pyplot

    def figure(self, num: Any = None, figsize: Any = None, dpi: Any = None, **named: Any) -> Any:
        if isinstance(num, figure.Figure):
            self._current = num
            return num
        key = len(self.open) + 1 if num is None else exact(num)
        if key not in self.open:
            for name in ("clear", "FigureClass"):
                named.pop(name, None)
            _require_plain(named)
            with self.applied():
                width, height = figsize or mpl.rcParams["figure.figsize"]
                resolution = float(dpi or mpl.rcParams["figure.dpi"])
                _require_bearable(width, height, resolution)
                self.open[key] = figure.Figure(figsize=(float(width), float(height)), dpi=resolution, **named)
                self.open[key].set_label(str(key))
        self._current = self.open[key]
        return self._current

    def gcf(self) -> Any:
        return self.figure() if self._current is None else self._current

    def gca(self) -> Any:
        with self.applied():
            return self.gcf().gca()

    def sca(self, ax: Any) -> None:
        self._current = ax.get_figure()
        self._current.sca(ax)

    def subplots(self, nrows: int = 1, ncols: int = 1, **named: Any) -> Any:
        own = {name: named.pop(name) for name in list(named) if name not in _OF_SUBPLOTS}
        made = self.figure(**own)
        _require_plain(named)
        with self.applied():
            return made, made.subplots(nrows, ncols, **named)

    def subplot_mosaic(self, mosaic: Any, **named: Any) -> Any:
        made = self.figure(**{name: named.pop(name) for name in ("figsize", "dpi", "layout") if name in named})
        _require_plain(named)
        with self.applied():
            return made, made.subplot_mosaic(mosaic, **named)

    def subplot(self, *given: Any, **named: Any) -> Any:
        _require_plain(named)
        with self.applied():
            wanted = _spec._from_subplot_args(self.gcf(), given or (1, 1, 1))
            for one in self.gcf().axes:
                if one.get_subplotspec() == wanted:
                    self.gcf().sca(one)
                    return one
            return self.gcf().add_subplot(*given, **named)

    def show(self, *_: Any, **__: Any) -> None:
        for one in self.take():
            self._world.builtins.get("display", lambda *_: None)(one)

    def close(self, fig: Any = None) -> None:
        if isinstance(fig, str) and exact(fig) == "all":
            self.open.clear()
        gone = self._current if fig is None else fig
        self.open = {key: one for key, one in self.open.items() if one is not gone and key != gone}
        if self._current not in self.open.values():
            self._current = next(reversed(self.open.values()), None)

    def clf(self) -> None:
        self.gcf().clear()

    def savefig(self, *given: Any, **named: Any) -> None:
        _savefig(self._world, self.gcf())(*given, **named)

    def colorbar(self, mappable: Any = None, cax: Any = None, ax: Any = None, **named: Any) -> Any:
        here = self.gca()
        mappable = next(reversed([*here.collections, *here.images]), None) if mappable is None else mappable
        if mappable is None:
            raise RuntimeError("No mappable was found to use for colorbar creation")
        _require_plain(named)
        with self.applied():
            return self.gcf().colorbar(mappable, cax=cax, ax=here if ax is None and cax is None else ax, **named)

    def axes(self, arg: Any = None, **named: Any) -> Any:
        _require_plain(named)
        with self.applied():
            return self.gcf().add_subplot(**named) if arg is None else self.gcf().add_axes(arg, **named)

    def limits(self, axis: str) -> Callable[..., Any]:
        def limit(*given: Any, **named: Any) -> Any:
            ax = self.gca()
            return getattr(ax, f"set_{axis}lim")(*given, **named) if given or named else getattr(ax, f"get_{axis}lim")()

        return limit

    def ticks(self, axis: str) -> Callable[..., Any]:
        def tick(ticks: Any = None, labels: Any = None, **named: Any) -> Any:
            _require_plain(named)
            ax = self.gca()
            if ticks is not None:
                getattr(ax, f"set_{axis}ticks")(ticks)
            if labels is not None:
                getattr(ax, f"set_{axis}ticklabels")(labels, **named)
            elif named:
                for one in getattr(ax, f"get_{axis}ticklabels")():
                    one.set(**named)
            return getattr(ax, f"get_{axis}ticks")(), getattr(ax, f"get_{axis}ticklabels")()

        return tick

    def rc(self, group: Any, **named: Any) -> None:
        for one in group if isinstance(group, list | tuple) else [group]:
            self.parameters.update({f"{exact(one)}.{name}": value for name, value in named.items()})


_OF_SUBPLOTS = names("sharex sharey squeeze width_ratios height_ratios subplot_kw gridspec_kw")


def pyplot(world: World) -> Pyplot:
    """The figures of a world."""
    found: Pyplot = world.values.get("pyplot") or Pyplot(world)
    world.values["pyplot"] = found
    return found


def _of_pyplot(name: str) -> Callable[[World], Any]:
    return lambda world: getattr(pyplot(world), name)


def _of_current(owner: str, method: str) -> Callable[[World], Any]:
    """A function of pyplot that calls a method of the current figure or axes."""

    def make(world: World) -> Any:
        here = pyplot(world)

        def called(*given: Any, **named: Any) -> Any:
            with here.applied():
                value = here.gca() if owner == "axes" else here.gcf()
                return world.builtins["getattr"](value, method)(*given, **named)

        called.__name__ = called.__qualname__ = method
        return called

    return make


# ------------------------------------------------------------------------------------------ the tables

_DRAWN = (
    "plot scatter bar barh hist hist2d boxplot violinplot pie errorbar fill fill_between fill_betweenx step stem "
    "stackplot stairs semilogx semilogy loglog axhline axvline axline axhspan axvspan hlines vlines eventplot hexbin "
    "imshow matshow pcolor pcolormesh contour contourf tricontour tricontourf tripcolor triplot quiver barbs "
    "streamplot spy text annotate table legend grid margins bar_label clabel broken_barh ecdf quiverkey "
    "acorr xcorr angle_spectrum cohere csd magnitude_spectrum phase_spectrum psd specgram autoscale tick_params "
    "ticklabel_format locator_params minorticks_on minorticks_off twinx twiny"
)
_AXES = (
    "set_title set_xlabel set_ylabel set_xlim set_ylim set_xscale set_yscale set_xticks set_yticks set_xticklabels "
    "set_yticklabels set_aspect set_facecolor set_axis_on set_axis_off set_axisbelow set_box_aspect set_prop_cycle "
    "set_xbound set_ybound set_xmargin set_ymargin set_position set_anchor set_frame_on invert_xaxis invert_yaxis "
    "get_title get_xlabel get_ylabel get_xlim get_ylim get_xscale get_yscale get_xticks get_yticks get_xticklabels "
    "get_yticklabels get_aspect get_facecolor get_legend get_legend_handles_labels get_lines get_position "
    "get_xaxis get_yaxis get_xbound get_ybound get_images get_figure get_subplotspec add_patch add_line add_collection "
    "add_artist add_table inset_axes indicate_inset indicate_inset_zoom secondary_xaxis secondary_yaxis axis clear "
    "cla has_data label_outer relim autoscale_view sharex sharey set_zlabel set_zlim view_init plot_surface "
    "plot_wireframe scatter3D plot3D set_theta_zero_location set_theta_direction set_rmax set_rmin set_rticks"
)
_FIGURE = (
    "add_axes add_subplot subplots subplot_mosaic add_gridspec colorbar legend suptitle supxlabel supylabel text "
    "tight_layout subplots_adjust get_size_inches set_facecolor get_facecolor set_edgecolor get_edgecolor get_dpi "
    "get_figwidth get_figheight autofmt_xdate align_labels align_xlabels align_ylabels align_titles clear clf gca "
    "get_axes delaxes sca set_layout_engine set_tight_layout set_constrained_layout get_layout_engine add_artist "
    "get_suptitle subfigures"
)
_ARTIST = (
    "set_color get_color set_alpha get_alpha set_label get_label set_visible get_visible set_zorder get_zorder "
    "set_linewidth get_linewidth set_lw set_linestyle get_linestyle set_ls set_marker get_marker set_markersize "
    "get_markersize set_markerfacecolor set_markeredgecolor set_markeredgewidth set_facecolor get_facecolor "
    "set_edgecolor get_edgecolor set_hatch get_hatch set_fill get_fill set_antialiased set_clip_on set_data get_data "
    "set_xdata set_ydata get_xdata get_ydata set_offsets get_offsets set_sizes get_sizes set_array get_array set_cmap "
    "get_cmap set_clim get_clim set_norm set_drawstyle set_dash_capstyle set_solid_capstyle set_capstyle set_joinstyle "
    "get_x get_y get_width get_height set_x set_y set_width set_height get_xy set_xy get_center set_radius get_radius "
    "set_bounds set_text get_text set_fontsize get_fontsize set_size set_fontweight set_weight set_fontstyle set_style "
    "set_fontfamily set_family set_rotation get_rotation set_ha set_va set_horizontalalignment set_verticalalignment "
    "set_multialignment set_wrap set_backgroundcolor set_bbox set_position get_position set_title get_title get_texts "
    "get_lines get_patches get_frame set_loc set_bbox_to_anchor set_ticks get_ticklabels get_ticklines get_ticklocs "
    "get_majorticklabels get_minorticklabels get_major_ticks get_minor_ticks set_ticklabels set_major_formatter "
    "set_minor_formatter set_major_locator set_minor_locator set_tick_params set_ticks_position set_label_position "
    "set_label_text set_label_coords set_inverted grid tick_left tick_right tick_top tick_bottom set_draggable remove "
    "set get_children set_interpolation set_extent get_extent set_transform get_transform"
)
_READ = names(
    "figure axes lines patches texts collections images tables artists legend_ xaxis yaxis zaxis spines transAxes "
    "transData transFigure dataLim viewLim name label offsetText title dpi patch colorbar norm cmap ax errorbar "
    "markerline stemlines baseline datavalues orientation majorTicks minorTicks legend_handles"
)


def _artist(kind: type, methods: str = "", more: Mapping[str, Replaced] | None = None) -> TypeAudit:
    replaced = _methods(methods) | dict(more or {})
    return TypeAudit(
        type=kind,
        reads=_READ - frozenset(replaced),
        replaced=replaced,
        constructable=False,
    )


_SHAPES = names(
    "Rectangle Circle Ellipse Polygon Wedge Arc Arrow FancyArrow FancyArrowPatch FancyBboxPatch Patch RegularPolygon "
    "CirclePolygon ConnectionPatch Annulus StepPatch"
)
_TICKERS = names(
    "FuncFormatter PercentFormatter FormatStrFormatter ScalarFormatter NullFormatter EngFormatter LogFormatter "
    "FixedFormatter MaxNLocator MultipleLocator AutoLocator AutoMinorLocator FixedLocator LinearLocator LogLocator "
    "NullLocator IndexLocator"
)
_COLORS = names(
    "Normalize LogNorm SymLogNorm PowerNorm TwoSlopeNorm CenteredNorm BoundaryNorm NoNorm ListedColormap "
    "LinearSegmentedColormap to_rgb to_rgba to_rgba_array to_hex is_color_like same_color hsv_to_rgb rgb_to_hsv "
    "TABLEAU_COLORS CSS4_COLORS BASE_COLORS XKCD_COLORS"
)
_DATES = names(
    "DateFormatter AutoDateFormatter ConciseDateFormatter AutoDateLocator YearLocator MonthLocator WeekdayLocator "
    "DayLocator HourLocator MinuteLocator SecondLocator date2num num2date datestr2num MO TU WE TH FR SA SU"
)


def _made(module: Any, name: str) -> Callable[[World], Any]:
    """A class whose instances code makes, by a function that looks at what it is given."""
    kind = getattr(module, name)

    def make(world: World) -> Any:
        pyplot(world)
        made = _checked(kind)
        if kind is colors.LinearSegmentedColormap:
            made.from_list = _from_list  # type: ignore[attr-defined]
            world.open_functions[made] = frozenset(["from_list"])
        return made

    return make


def _from_list(name: Any, given: Any, N: int = 256, gamma: float = 1.0) -> Any:
    """A colour map that goes through some colours, in at most 100,000 steps."""
    _require_plain((name, given, N, gamma))
    return colors.LinearSegmentedColormap.from_list(exact(name), given, min(int(N), 100_000), gamma)


def _each(module: Any, listed: frozenset[str]) -> dict[str, Callable[[World], Any]]:
    """Makers of the classes of a module that take styles; its functions and values are handed out as they are."""
    return {name: _made(module, name) for name in sorted(listed) if isinstance(getattr(module, name, None), type)}


def _get_cmap(world: World) -> Any:
    def get_cmap(name: Any = None, lut: Any = None) -> Any:
        if isinstance(name, colors.Colormap):
            return name.copy()
        found = mpl.colormaps[exact(name) if name is not None else pyplot(world).parameters["image.cmap"]]
        return found.copy() if lut is None else found.resampled(min(int(lut), 100_000))

    return get_cmap


class _Maps:
    """`cm`: colour maps by their names."""

    def __call__(self, name: str) -> Any:
        return self[name]

    def __getitem__(self, name: str) -> Any:
        return mpl.colormaps[exact(name)].copy()


def _map(name: str) -> Callable[[World], Any]:
    return lambda world: mpl.colormaps[name].copy()


def _nothing(world: World) -> Any:
    return lambda *_, **__: None


_PYPLOT: dict[str, Callable[[World], Any]] = {
    **{name: _of_current("axes", name) for name in _DRAWN.split() if hasattr(Axes, name)},
    **{name: _of_current("axes", name) for name in ("axis", "cla")},
    **{name: _of_current("axes", f"set_{name}") for name in ("title", "xlabel", "ylabel", "xscale", "yscale")},
    **{name: _of_current("figure", name) for name in ("suptitle", "tight_layout", "subplots_adjust", "delaxes")},
    "figtext": _of_current("figure", "text"),
    **{
        name: _of_pyplot(name)
        for name in names(
            "figure gcf gca sca subplots subplot subplot_mosaic show close clf savefig colorbar axes rc style"
        )
    },
    "xlim": lambda world: pyplot(world).limits("x"),
    "ylim": lambda world: pyplot(world).limits("y"),
    "xticks": lambda world: pyplot(world).ticks("x"),
    "yticks": lambda world: pyplot(world).ticks("y"),
    "rcParams": _of_pyplot("parameters"),
    "get_cmap": _get_cmap,
    "colormaps": lambda world: lambda: sorted(mpl.colormaps),
    "cm": lambda world: world.importer.module("matplotlib.cm"),
    **dict.fromkeys(("ion", "ioff", "draw", "pause", "switch_backend"), _nothing),
    **{name: _made(patches, name) for name in ("Rectangle", "Circle", "Polygon")},
    "Line2D": _made(lines, "Line2D"),
    "Figure": lambda world: world.typeof_class(figure.Figure),
    "Axes": lambda world: world.typeof_class(Axes),
}

_TYPES = (
    _artist(artist.Artist, _ARTIST),
    _artist(axis.Tick, _ARTIST + " label1 label2"),
    _artist(Axes, f"{_DRAWN} {_AXES} {_ARTIST}"),
    _artist(texts.Text, _ARTIST),
    _artist(legend.Legend, _ARTIST),
    _artist(
        figure.FigureBase,
        f"{_FIGURE} {_ARTIST}",
        {
            "savefig": _savefig,
            "show": _show,
            **{name: _sized(name) for name in ("set_size_inches", "set_dpi", "set_figwidth", "set_figheight")},
        },
    ),
    _artist(colorbar.Colorbar, _ARTIST + " set_label update_normal minorticks_on minorticks_off"),
    TypeAudit(type=container.Container, reads=_READ | names("get_label count index"), constructable=False),
    TypeAudit(type=Spines, reads=names("top bottom left right keys values items get"), constructable=False),
    TypeAudit(
        type=gridspec.GridSpecBase, reads=names("nrows ncols get_geometry get_height_ratios get_width_ratios update")
    ),
    TypeAudit(type=gridspec.SubplotSpec, reads=names("rowspan colspan num1 num2 get_geometry"), constructable=False),
    TypeAudit(type=transforms.Transform, reads=names("transform inverted"), constructable=False),
    TypeAudit(type=transforms.BboxBase, reads=names("x0 x1 y0 y1 width height bounds xmin xmax ymin ymax")),
    TypeAudit(type=ticker.TickHelper, reads=names("set_major_formatter set_powerlimits set_scientific set_useOffset")),
    TypeAudit(
        type=colors.Colormap,
        reads=names("name N set_bad set_over set_under copy reversed resampled colors"),
        constructable=False,
    ),
    TypeAudit(type=colors.Normalize, reads=names("vmin vmax autoscale inverse"), writes=names("vmin vmax")),
    TypeAudit(
        type=Parameters, reads=names("get items keys values update setdefault pop copy clear"), constructable=False
    ),
    TypeAudit(type=Style, reads=names("use available context"), constructable=False),
    TypeAudit(type=_Maps, constructable=False),
)

AUDITS = (
    ModuleAudit(
        name="matplotlib",
        replaced={
            "use": _nothing,
            "rcParams": _of_pyplot("parameters"),
            "rc": _of_pyplot("rc"),
            "style": _of_pyplot("style"),
            "colormaps": lambda world: _Maps(),
            "__version__": lambda world: mpl.__version__,
        },
        types=_TYPES,
        submodules=names("pyplot patches ticker colors cm lines dates gridspec"),
        note="drawn by Agg alone: use() does nothing; parameters and styles are the session's own",
    ),
    ModuleAudit(
        name="matplotlib.pyplot",
        replaced=_PYPLOT,
        note="the session's own figures, shown as outputs of the cell; savefig() writes PNG and SVG into io.BytesIO; "
        "no images are read, no LaTeX is run, no font or style files are opened",
    ),
    ModuleAudit(name="matplotlib.patches", replaced=_each(patches, _SHAPES), note="shapes; styles of arrows by name"),
    ModuleAudit(
        name="matplotlib.lines", replaced={"Line2D": _made(lines, "Line2D")}, note="lines, for legends of one's own"
    ),
    ModuleAudit(
        name="matplotlib.ticker",
        replaced=_each(ticker, _TICKERS),
        note="not StrMethodFormatter, whose format reads attributes: use FuncFormatter",
    ),
    ModuleAudit(
        name="matplotlib.colors",
        members=frozenset(name for name in _COLORS if not isinstance(getattr(colors, name), type)),
        replaced=_each(colors, _COLORS),
        note="colours and norms",
    ),
    ModuleAudit(
        name="matplotlib.dates",
        members=frozenset(name for name in _DATES if not isinstance(getattr(dates, name), type)),
        replaced=_each(dates, _DATES),
        note="locators and formatters of dates; rules of dateutil are left out",
    ),
    ModuleAudit(
        name="matplotlib.gridspec",
        replaced={"GridSpec": _made(gridspec, "GridSpec")},
        note="grids of axes",
    ),
    ModuleAudit(
        name="matplotlib.cm",
        replaced={
            "get_cmap": _get_cmap,
            "ScalarMappable": _made(cm, "ScalarMappable"),
            **{name: _map(name) for name in sorted(mpl.colormaps) if not name.endswith("_r")},
        },
        note="copies of the maps: those of the process stay as they are",
    ),
)
