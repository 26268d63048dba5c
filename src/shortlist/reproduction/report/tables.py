"""The tables of the report, each once as HTML and once as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite

from shortlist.digits import percent_text
from shortlist.reproduction.design.design import Design
from shortlist.reproduction.design.panels import Panel
from shortlist.reproduction.findings.claims import Judgement
from shortlist.reproduction.findings.curves import Curves
from shortlist.reproduction.findings.lead import Behind
from shortlist.reproduction.runs.rows import ResultRow


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
