"""The tables of the report, each once as HTML and once as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite

from shortlist.reproduction.claims import Judgement
from shortlist.reproduction.curves import Curves
from shortlist.reproduction.lead import Behind
from shortlist.reproduction.methods import ON_BUDGET, TO_CONFIDENCE
from shortlist.reproduction.panels import Panel
from shortlist.reproduction.rows import Row


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
        body = "".join(
            "<tr>"
            + "".join(
                f"<td class=best>{escape(cell)}</td>"
                if (i, j) in self.best
                else f"<td>{escape(cell)}</td>"
                for j, cell in enumerate(row)
            )
            + "</tr>\n"
            for i, row in enumerate(self.rows)
        )
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"


def needs_table(curves: Curves, panels: Sequence[Panel]) -> Table:
    """Thousands of pulls from which on at most 10 % of the runs fail, the least of each panel
    standing out."""
    rows, best = [], set()
    for number, panel in enumerate(panels):
        needs = [curves[panel.name][method].need.pulls for method in ON_BUDGET]
        rows.append(
            [
                panel.title,
                *(f"{need / 1000:.1f}" if isfinite(need) else "not reached" for need in needs),
            ]
        )
        best.add((number, 1 + needs.index(min(needs))))
    return Table(("panel", *ON_BUDGET), rows, frozenset(best))


def confidence_table(rows: Sequence[Row], panels: Sequence[Panel]) -> Table:
    """Mean pulls of every method with a guarantee and, in brackets, how many times H that is."""
    found = {(row.panel, row.method): row for row in rows if row.part == "confidence"}
    lines, best = [], set()
    for number, panel in enumerate(panels):
        h = panel.hardness().h
        pulls = [found[panel.name, method].pulls_mean for method in TO_CONFIDENCE]
        lines.append(
            [panel.title, _short(h), *(f"{_short(mean)} ({_short(mean / h)})" for mean in pulls)]
        )
        best.add((number, 2 + pulls.index(min(pulls))))
    return Table(("panel", "H", *TO_CONFIDENCE), lines, frozenset(best))


def confidence_details(rows: Sequence[Row], panels: Sequence[Panel]) -> Table:
    """Pulls, regret and failures of every method with a guarantee on every panel."""
    lines = []
    for panel in panels:
        h = panel.hardness().h
        for row in (row for row in rows if row.part == "confidence" and row.panel == panel.name):
            pulls = [_short(value) for value in (row.pulls_mean, row.pulls_sd, row.pulls_mean / h)]
            regret = [f"{row.regret_mean:.2g}", f"{row.regret_max:.2g}"]
            lines.append(
                [
                    panel.title,
                    _short(h),
                    row.method,
                    *pulls,
                    *regret,
                    f"{row.failures} of {row.runs}",
                ]
            )
    header = (
        "panel",
        "H",
        "method",
        "pulls",
        "their sd",
        "pulls / H",
        "mean regret",
        "largest regret",
        "failures",
    )
    return Table(header, lines)


def guarantee_table(rows: Sequence[Row]) -> Table:
    """What every method with a guarantee lost, over all panels."""
    lines = []
    for method in TO_CONFIDENCE:
        own = [row for row in rows if row.part == "confidence" and row.method == method]
        runs, failures = sum(row.runs for row in own), sum(row.failures for row in own)
        regret = sum(row.regret_mean * row.runs for row in own) / runs
        worst = max(row.regret_max for row in own)
        lines.append([method, f"{runs}", f"{failures}", f"{regret:.2g}", f"{worst:.2g}"])
    return Table(("method", "runs", "failures", "mean regret", "largest regret"), lines)


def claims_table(judgements: Sequence[Judgement]) -> Table:
    """What the paper says about its experiments, and what we found."""
    lines = []
    for claim in judgements:
        same = claim.measured == claim.measured_scaled
        scaled = (
            ("the same", claim.verdict_scaled)
            if same
            else (claim.measured_scaled, claim.verdict_scaled)
        )
        lines.append([claim.sentence, claim.measured, claim.verdict, *scaled])
    return Table(
        (
            "the paper says",
            "measured",
            "verdict",
            "measured, scaled rounds",
            "verdict, scaled rounds",
        ),
        lines,
    )


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
        f"{each.low:.1%}",
        each.rival,
        f"{each.rival_rate:.1%}",
    ]


def _short(value: float) -> str:
    """Three digits, as 1.23e7 if it is large."""
    return f"{value:.3g}".replace("e+0", "e").replace("e+", "e")
