"""The report: tables, figures and the page with them."""

import base64
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from itertools import groupby
from math import isfinite
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from shortlist.algorithms import AlgorithmLike, find
from shortlist.errors import InvalidInput
from shortlist.formatting import percent_text
from shortlist.reproduction import findings as theorems
from shortlist.reproduction.design import (
    ADAPTIVE,
    QUICK_RUNS,
    RUNS,
    SCALE,
    SCALED,
    SWEPT,
    Design,
    Panel,
    choose,
)
from shortlist.reproduction.findings import (
    Behind,
    Curve,
    Curves,
    Judgement,
    Measured,
    behind,
    curves,
    first_decisions,
    judge,
)
from shortlist.reproduction.runs import ResultRow, replace, results
from shortlist.validation import check_sendable, whole


@dataclass(frozen=True, slots=True)
class LineStyle:
    """A colour of Okabe and Ito, and dashes and a marker for those who do not see it."""

    label: str
    colour: str
    marker: str
    dashes: tuple[float, ...] = ()
    width: float = 1.3


LINE_STYLES = {  # in drawing order
    # wide and pale, since AdaptiveTopK lies on it
    "uniform": LineStyle("uniform", "#F0E442", "", width=5),
    "adaptive-top-k": LineStyle("AdaptiveTopK", "#0072B2", "o", (4, 1.5)),
    SCALED: LineStyle(f"AdaptiveTopK, scale {SCALE:g}", "#56B4E9", "s", (1, 1)),
    "opt-mai": LineStyle("OptMAI", "#009E73", "^", (6, 1.5, 1, 1.5)),
    "clucb-pac": LineStyle("CLUCB-PAC", "#E69F00", "D"),
    "sar": LineStyle("SAR", "#CC79A7", "v", (2.5, 1)),
    "improved-top-k": LineStyle("ImprovedTopK", "#D55E00", "P", (3, 1)),
    "expected-loss": LineStyle("expected loss (ours)", "#000000", "*", width=1.8),
    "certified": LineStyle("certified (ours)", "#000000", "*", width=1.8),
}
MARKERS = ("X", "h", "p", "<", ">", "d")  # of methods without a look of their own
VERMILION = "#D55E00"


def styles_of(methods: list[str]) -> dict[str, LineStyle]:
    """The look of each of these methods, in drawing order; others than ours come last."""
    others = [method for method in methods if method not in LINE_STYLES]
    known = {method: look for method, look in LINE_STYLES.items() if method in methods}
    return known | {
        method: LineStyle(
            method.rpartition(":")[2], VERMILION, MARKERS[place % len(MARKERS)], (1 + place, 1)
        )
        for place, method in enumerate(others)
    }


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.dpi": 160,
    "svg.hashsalt": "shortlist",  # the same figure is the same file
}


def check_matplotlib() -> None:
    """Refuse to start without what draws the figures."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            "figures need matplotlib, which is not installed: pip install 'shortlist[plot]'"
        ) from error


def draw_all(folder: Path, rows: Sequence[ResultRow], curves: Curves, design: Design) -> list[str]:
    """Draw every figure as PNG and SVG; return their names."""
    import matplotlib

    folder.mkdir(exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figures = {"overview": failure_figure(curves, design.panels)}
        for dataset, own in groupby(design.panels, key=lambda panel: panel.dataset):
            figures[f"failure-{dataset}"] = failure_figure(curves, list(own))
        if design.complete:
            figures["theory"] = theory_figure(rows, design.sweep_over_n, design.sweep_over_epsilon)
        for name, figure in figures.items():
            figure.savefig(folder / f"{name}.png")
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return list(figures)


def failure_figure(curves: Curves, panels: Sequence[Panel]) -> "Figure":
    """Failure probability against budget: a row per dataset, a column per K."""
    from matplotlib.figure import Figure

    families = [list(own) for _, own in groupby(panels, key=lambda panel: panel.dataset)]
    columns = max(len(own) for own in families)
    figure = Figure(figsize=(7.2, 0.75 + 1.95 * len(families)), layout="constrained")
    grid = figure.subplots(len(families), columns, squeeze=False, sharey=True)
    for axes_row, own in zip(grid, families, strict=True):
        axes_row[0].set_ylabel("failure probability")
        for axes, panel in zip(axes_row, own, strict=False):
            draw_panel(axes, curves[panel.name], panel)
        for axes in axes_row[len(own) :]:
            axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("number of pulls")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=4, handlelength=3.2, columnspacing=1.4
    )
    return figure


def draw_panel(axes: "Axes", curves: Mapping[str, Curve], panel: Panel) -> None:
    """One panel of the paper's figures."""
    axes.set_title(panel.title, loc="left")
    axes.set_xscale("log")
    axes.set_ylim(-0.03, 1.03)
    for method, look in styles_of(list(curves)).items():
        _draw_curve(axes, curves[method], look)
    _label(axes.xaxis, 1000, "k")


def _draw_curve(axes: "Axes", curve: Curve, look: LineStyle) -> None:
    axes.fill_between(curve.budgets, *curve.band, color=look.colour, alpha=0.15, linewidth=0)
    _line(axes, curve.budgets.tolist(), curve.rates.tolist(), look, look.label)


def _line(
    axes: "Axes", x: Sequence[float], y: Sequence[float], look: LineStyle, label: str
) -> None:
    axes.plot(
        x,
        y,
        label=label,
        color=look.colour,
        marker=look.marker,
        markersize=6 if look.marker == "*" else 3.5,
        markeredgewidth=0,
        linewidth=look.width,
        dashes=look.dashes or (None, None),
        solid_capstyle="butt",
    )


def _label(axis: "Axis", unit: float = 1, suffix: str = "") -> None:
    """Numbers at 1, 2 and 5 times powers of ten of a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}{suffix}"))
    axis.set_minor_formatter(NullFormatter())


def theory_figure(
    rows: Sequence[ResultRow], over_n: Sequence[Panel], over_epsilon: Sequence[Panel]
) -> "Figure":
    """Log-log, with fitted slopes: pulls over n and epsilon, and against theory, and H and H0."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 6.2), layout="constrained")
    grid = figure.subplots(2, 2)
    for axes in grid.flat:
        axes.set_xscale("log")
        axes.set_yscale("log")
    sizes = [panel.n for panel in over_n]
    fineness = [1 / panel.epsilon for panel in over_epsilon]
    _pulls_over(grid[0, 0], rows, over_n, sizes, "n")
    _pulls_over(grid[0, 1], rows, over_epsilon, fineness, "1/ε")
    _against_theorem_1(grid[1, 0], rows, {"over n": over_n, "over ε": over_epsilon})
    _hardness_over_epsilon(grid[1, 1], over_epsilon, fineness)
    return figure


def _pulls_over(
    axes: "Axes", rows: Sequence[ResultRow], panels: Sequence[Panel], x: Sequence[float], name: str
) -> None:
    axes.set_title(f"Uniform, K = n/2: pulls over {name}", loc="left")
    axes.set(xlabel=name, ylabel="pulls", ylim=(5e3, 5e13))
    for method in SWEPT:
        look = LINE_STYLES[method.name]
        y = theorems.pulls(rows, method.name, panels)
        _line(axes, x, y, look, f"{look.label}: slope {theorems.slope(x, y):.2f}")
    _label(axes.xaxis)
    # between ImprovedTopK and the others
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(0, 0.56))


def _against_theorem_1(
    axes: "Axes", rows: Sequence[ResultRow], sweeps: Mapping[str, Sequence[Panel]]
) -> None:
    axes.set_title("AdaptiveTopK against Theorem 1", loc="left")
    axes.set(xlabel="(ln ln 1/ε + ln n + ln 1/δ) H", ylabel="pulls")
    blue = LINE_STYLES["adaptive-top-k"].colour
    looks = (LineStyle("", blue, "o", (4, 1.5)), LineStyle("", blue, "s", (1, 1)))
    for (name, panels), look in zip(sweeps.items(), looks, strict=True):
        x = [theorems.theorem_1(panel) for panel in panels]
        y = theorems.pulls(rows, "adaptive-top-k", panels)
        _line(axes, x, y, look, f"{name}: slope {theorems.slope(x, y):.2f}")
    axes.legend(fontsize=8, loc="upper left")


def _hardness_over_epsilon(axes: "Axes", panels: Sequence[Panel], x: Sequence[float]) -> None:
    axes.set_title("Lemma c-spread: hardness over 1/ε", loc="left")
    axes.set(xlabel="1/ε", ylabel="hardness")
    hard = [panel.hardness() for panel in panels]
    h = [each.h for each in hard]
    h0 = [each.h0 for each in hard]
    _line(
        axes, x, h0, LINE_STYLES["clucb-pac"], f"H0: slope {theorems.slope(x, h0):.2f} (lemma: 1)"
    )
    _line(
        axes,
        x,
        h,
        LINE_STYLES["adaptive-top-k"],
        f"H: slope {theorems.slope(x, h):.2f} (lemma: 1/2)",
    )
    _label(axes.xaxis)
    axes.legend(fontsize=8, loc="upper left")


@dataclass(frozen=True, slots=True)
class Table:
    """A header and rows of text; `best` are the cells to stand out, as (row, column)."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = frozenset()

    def markdown(self) -> str:
        """The table for a page of Markdown."""
        rows = [
            [self._marked(cell, (i, j)) for j, cell in enumerate(row)]
            for i, row in enumerate(self.rows)
        ]
        lines = [self.header, ["---"] * len(self.header), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _marked(self, cell: str, place: tuple[int, int]) -> str:
        return f"**{cell}**" if place in self.best else cell

    def html(self) -> str:
        """The table for a page of HTML."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.header)
        body = "".join(f"<tr>{self._html_cells(number)}</tr>\n" for number in range(len(self.rows)))
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"

    def _html_cells(self, number: int) -> str:
        tags = [
            "<td class=best>" if (number, column) in self.best else "<td>"
            for column in range(len(self.header))
        ]
        cells = zip(tags, self.rows[number], strict=True)
        return "".join(f"{tag}{escape(cell)}</td>" for tag, cell in cells)


def needs_table(curves: Curves, design: Design) -> Table:
    """Thousands of pulls until at most 10 % of the runs fail, the least of a panel standing out."""
    names = [method.name for method in design.on_budget]
    rows = []
    best = set()
    for number, panel in enumerate(design.panels):
        needs = [curves[panel.name][name].need.pulls for name in names]
        rows.append([panel.title, *map(_thousands, needs)])
        best.add((number, 1 + needs.index(min(needs))))
    return Table(("panel", *names), rows, frozenset(best))


def _thousands(pulls: float) -> str:
    return f"{pulls / 1000:.1f}" if isfinite(pulls) else "not reached"


def confidence_table(rows: Sequence[ResultRow], design: Design) -> Table:
    """Mean pulls of every method with a guarantee and, in brackets, how many times H that is."""
    found = {(row.panel, row.method): row for row in rows if row.part == "confidence"}
    names = [method.name for method in design.to_confidence]
    lines = []
    best = set()
    for number, panel in enumerate(design.panels):
        h = panel.hardness().h
        pulls = [found[panel.name, name].pulls_mean for name in names]
        cells = [f"{_short(mean)} ({_short(mean / h)})" for mean in pulls]
        lines.append([panel.title, _short(h), *cells])
        best.add((number, 2 + pulls.index(min(pulls))))
    return Table(("panel", "H", *names), lines, frozenset(best))


def confidence_details(rows: Sequence[ResultRow], design: Design) -> Table:
    """Pulls, regret and failures of every method with a guarantee on every panel."""
    header = ("panel", "H", "method", "pulls", "their sd", "pulls / H")
    lines = []
    for panel in design.panels:
        h = panel.hardness().h
        own = [row for row in rows if row.part == "confidence" and row.panel == panel.name]
        lines += [[panel.title, _short(h), *_detail_cells(row, h)] for row in own]
    return Table((*header, "mean regret", "largest regret", "failures"), lines)


def _detail_cells(row: ResultRow, h: float) -> list[str]:
    return [
        row.method,
        _short(row.pulls_mean),
        _short(row.pulls_sd),
        _short(row.pulls_mean / h),
        f"{row.regret_mean:.2g}",
        f"{row.regret_max:.2g}",
        f"{row.failures} of {row.runs}",
    ]


def guarantee_table(rows: Sequence[ResultRow], design: Design) -> Table:
    """What every method with a guarantee lost, over all panels."""
    lines = []
    for method in design.to_confidence:
        own = [row for row in rows if row.part == "confidence" and row.method == method.name]
        runs = sum(row.runs for row in own)
        failures = sum(row.failures for row in own)
        regret = sum(row.regret_mean * row.runs for row in own) / runs
        worst = max(row.regret_max for row in own)
        lines.append([method.name, f"{runs}", f"{failures}", f"{regret:.2g}", f"{worst:.2g}"])
    return Table(("method", "runs", "failures", "mean regret", "largest regret"), lines)


def claims_table(judgements: Sequence[Judgement]) -> Table:
    """What the paper says about its experiments, and what we found."""
    header = ("the paper says", "measured", "verdict")
    lines = []
    for claim in judgements:
        same = claim.measured == claim.measured_scaled
        scaled = "the same" if same else claim.measured_scaled
        lines.append([claim.sentence, claim.measured, claim.verdict, scaled, claim.verdict_scaled])
    return Table((*header, "measured, scaled rounds", "verdict, scaled rounds"), lines)


def theory_table(findings: Sequence[tuple[str, str, str]]) -> Table:
    """What the theorems say, and what we found."""
    return Table(("the theory says", "measured", "verdict"), findings)


def behind_table(worse: Sequence[Behind], panels: Sequence[Panel]) -> Table:
    """Where expected-loss is neither lowest nor tied."""
    titles = {panel.name: panel.title for panel in panels}
    header = ("panel", "pulls", "expected-loss fails", "95 % band from", "lower", "which fails")
    return Table(header, [[titles[each.panel], *_behind_cells(each)] for each in worse])


def _behind_cells(each: Behind) -> list[str]:
    return [
        f"{each.budget:,}",
        f"{each.rate:.1%}",
        f"{percent_text(each.low)}%",
        each.rival,
        f"{each.rival_rate:.1%}",
    ]


def _short(value: float) -> str:
    """Three digits, as 1.23e7 if it is large."""
    return f"{value:.3g}".replace("e+0", "e").replace("e+", "e")


TITLE = "Adaptive Multiple-Arm Identification, reproduced"
PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
figure { margin: 1rem 0; }
img { width: 100%; max-width: 56rem; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #ddd; }
th, td { text-align: left; vertical-align: top; }
td.best { font-weight: bold; }
pre { background: #f5f5f5; padding: 0.7rem; overflow-x: auto; }
</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")
FIGURES = "figures"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with sentences, figures and tables under it."""

    title: str
    words: str
    figures: Sequence[str] = ()
    tables: Sequence[Table] = ()

    def html(self, folder: Path) -> str:
        """The section with its figures in it."""
        pictures = "".join(
            f"<figure>{_inline(folder / FIGURES / f'{name}.svg')}</figure>\n"
            for name in self.figures
        )
        tables = "".join(f"<div class=wide>{table.html()}</div>\n" for table in self.tables)
        return f"<h2>{escape(self.title)}</h2>\n<p>{escape(self.words)}</p>\n{pictures}{tables}"

    def markdown(self) -> str:
        """The section with links to its figures."""
        pictures = [f"![{name}]({FIGURES}/{name}.png)" for name in self.figures]
        return "\n\n".join(
            [
                f"## {self.title}",
                self.words,
                *pictures,
                *(table.markdown() for table in self.tables),
            ]
        )


def write_report(design: Design, rows: Sequence[ResultRow], folder: Path) -> Path:
    """Draw the figures and write report.html and report.md; return the former."""
    drawn = curves(rows, design.panels)
    figures = draw_all(folder / FIGURES, rows, drawn, design)
    sections = [
        _failure_curves(design, drawn, [name for name in figures if name.startswith("failure")]),
        _lead(design, drawn),
        _claims(design, rows, drawn),
        _confidence(design, rows),
        *_theory(design, rows),
        _details(design, rows),
    ]
    record = json.dumps(design.record() | {"matplotlib": version("matplotlib")}, indent=2)
    replace(folder / "report.md", _markdown(sections, record))
    page = folder / "report.html"
    replace(page, _html(sections, record, folder))
    return page


def _html(sections: Sequence[Section], record: str, folder: Path) -> str:
    body = "\n".join(section.html(folder) for section in sections)
    settings = f"<h2>Settings</h2>\n<pre>{escape(record)}</pre>"
    return PAGE.substitute(title=TITLE, body=f"{body}\n{settings}")


def _markdown(sections: Sequence[Section], record: str) -> str:
    text = "\n\n".join(section.markdown() for section in sections)
    return f"# {TITLE}\n\n{text}\n\n## Settings\n\n```json\n{record}\n```\n"


def _failure_curves(design: Design, drawn: Curves, figures: Sequence[str]) -> Section:
    words = (
        f"A run fails if its set has a regret above ε = 0.01. Each point is {design.runs} runs,"
        " with its 95 % band; an anytime method (CLUCB-PAC, expected loss) gives all its points"
        " from the same runs. Budgets stand where a pilot saw the curves fall. The table has the"
        " thousands of pulls from which on at most 10 % of the runs fail."
    )
    return Section(
        "Failure probability against pulls", words, figures, [needs_table(drawn, design)]
    )


def _lead(design: Design, drawn: Curves) -> Section:
    count, worse = behind(drawn, "expected-loss")
    words = (
        f"There are {count} budgets at which the failure rate of any method is between 5 % and 95"
        f" %. At {count - len(worse)} of them expected loss has the lowest failure rate, or its 95"
        " % band holds the lowest. "
    )
    if not worse:
        return Section("Expected loss against the others", words + "There is no exception.")
    table = behind_table(worse, design.panels)
    return Section("Expected loss against the others", words + "The exceptions:", tables=[table])


def _claims(design: Design, rows: Sequence[ResultRow], drawn: Curves) -> Section:
    decisions = first_decisions(rows)
    first = [decisions[panel.name, ADAPTIVE] for panel in design.panels]
    largest = [int(drawn[panel.name][ADAPTIVE].budgets[-1]) for panel in design.panels]
    idle = sum(pulls > budget for pulls, budget in zip(first, largest, strict=True))
    words = (
        "With its printed constants AdaptiveTopK first accepts or rejects an arm after"
        f" {min(first):,} to {max(first):,} pulls. On {idle} of"
        f" {len(design.panels)} panels that is more than the largest budget shown: there it is"
        " uniform sampling, and so are its curves. So every claim is judged twice, for the printed"
        f" constants and for rounds of {SCALE:g} times their length (which void the guarantee). One"
        " method needs fewer pulls than another if the 95 % intervals of what they need for 10 %"
        " failures say so."
    )
    judgements = judge(Measured(design.panels, drawn, decisions))
    return Section(
        "What the paper says about its experiments", words, tables=[claims_table(judgements)]
    )


def _confidence(design: Design, rows: Sequence[ResultRow]) -> Section:
    words = (
        f"Mean pulls at ε = δ = 0.01 over {design.confidence_runs} runs and, in brackets, how"
        " many times H^(t, ε) that is. Batches of CLUCB-PAC and LUCB are 2 % of what is spent."
    )
    tables = [confidence_table(rows, design), guarantee_table(rows, design)]
    return Section("Fixed confidence", words, tables=tables)


def _theory(design: Design, rows: Sequence[ResultRow]) -> list[Section]:
    findings = theorems.judge_theorems(rows, design.sweep_over_n, design.sweep_over_epsilon)
    words = (
        f"Uniform with K = n/2 and δ = 0.01, which is 1-spread; means of {design.sweep_runs}"
        " runs. Slopes are those of least squares on logarithms; a verdict allows"
        f" {theorems.EXPONENT_TOLERANCE:g}."
    )
    return [Section("Theory", words, ["theory"], [theory_table(findings)])] if findings else []


def _details(design: Design, rows: Sequence[ResultRow]) -> Section:
    words = "Every method with a guarantee on every panel at ε = δ = 0.01, with H = H^(t, ε)."
    return Section("Fixed confidence in detail", words, tables=[confidence_details(rows, design)])


def _inline(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escape(path.stem)}" src="data:image/svg+xml;base64,{data}">'


def reproduce(
    folder: str | Path,
    *,
    panels: Sequence[str] = (),
    algorithms: Sequence[AlgorithmLike] = (),
    runs: int | None = None,
    seed: int = 0,
    quick: bool = False,
    workers: int | None = None,
) -> Path:
    """Measure, or continue to measure, in a folder; write its report and return its path.

    `panels` are all 15 if none is given. `algorithms` are compared with the standard methods on
    every panel, within budgets, to a confidence, or both, as each allows. `workers` processes, one
    per core by default, do not change the results."""
    check_matplotlib()
    if runs is None:
        runs = QUICK_RUNS if quick else RUNS
    design = Design(choose(panels), runs, seed, quick, tuple(algorithms))
    processes = whole("workers", os.cpu_count() if workers is None else workers, at_least=1)
    if processes > 1:
        for algorithm in algorithms:
            check_sendable(find(algorithm).name, algorithm)
    place = Path(folder)
    return write_report(design, results(design, place, processes), place)
