"""The report: a page of HTML that needs nothing else, and the same tables in Markdown."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from string import Template

from shortlist.reproduction.design.design import Design
from shortlist.reproduction.design.methods import ADAPTIVE, SCALE
from shortlist.reproduction.findings import theorems
from shortlist.reproduction.findings.claims import Measured, judge
from shortlist.reproduction.findings.curves import Curves, curves
from shortlist.reproduction.findings.decisions import first_decisions
from shortlist.reproduction.findings.lead import behind
from shortlist.reproduction.report.figures import draw_all
from shortlist.reproduction.report.tables import (
    Table,
    behind_table,
    claims_table,
    confidence_details,
    confidence_table,
    guarantee_table,
    needs_table,
    theory_table,
)
from shortlist.reproduction.runs.results_file import replace
from shortlist.reproduction.runs.rows import ResultRow

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
    findings = theorems.judge(rows, design.sweep_over_n, design.sweep_over_epsilon)
    words = (
        f"Uniform with K = n/2 and δ = 0.01, which is 1-spread; means of {design.sweep_runs}"
        " runs. Slopes are those of least squares on logarithms; a verdict allows"
        f" {theorems.TOLERANCE:g}."
    )
    return [Section("Theory", words, ["theory"], [theory_table(findings)])] if findings else []


def _details(design: Design, rows: Sequence[ResultRow]) -> Section:
    words = (
        "Every method with a guarantee on every panel at ε = δ = 0.01, with H = H^(t, ε) beside it."
    )
    return Section("Fixed confidence in detail", words, tables=[confidence_details(rows, design)])


def _inline(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escape(path.stem)}" src="data:image/svg+xml;base64,{data}">'
