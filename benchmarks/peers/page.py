"""The page docs/peers.md: its text is in page.md next to this file, its tables are made here."""

import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from contests import DELTA, Entry, Outcome
from scipy.stats import binomtest

import shortlist
from shortlist.regret import ROUNDING

TEMPLATE = Path(__file__).parent / "page.md"


def page(
    best_arm: Sequence[Sequence[Entry]],
    keep: Sequence[Sequence[Entry]],
    versions: dict[str, str],
    runs: int,
    seconds: float,
    most: int,
) -> str:
    """The whole page."""
    known = {"shortlist": shortlist.__version__, **versions, "Python": platform.python_version()}
    listed = ", ".join(f"{package} {version}" for package, version in known.items())
    tables = [
        f"**{entries[0].arms.what}**\n\n" + "\n".join(_best_arm_table(entries)) + "\n"
        for entries in best_arm
    ]
    return TEMPLATE.read_text(encoding="utf-8").format(
        runs=runs,
        seconds=f"{seconds:g}",
        versions=listed,
        delta=f"{DELTA:.0%}",
        most=f"{most:,}",
        best_arm="\n".join(tables),
        keep="\n".join(_keep_table(keep)) + "\n",
    )


def _best_arm_table(entries: Sequence[Entry]) -> Iterator[str]:
    columns = "runs | stopped | pulls | × | wrong | 95 % interval | promise | ms per run | ×"
    yield f"| method | {columns} |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    first = entries[0].outcomes
    for entry in entries:
        if not entry.outcomes:
            yield f"| {entry.method} | 0 | {entry.error} |" + " |" * 7
            continue
        stopped = [outcome for outcome in entry.outcomes if outcome.stopped]
        wrong = sum(_failed(entry, outcome) for outcome in stopped)
        cells = [
            entry.method,
            _count(entry),
            str(len(stopped)),
            f"{_mean(entry.outcomes, 'pulls'):,.0f}",
        ]
        cells += [
            _ratio(entry.outcomes, first, "pulls"),
            str(wrong),
            *_verdict(wrong, len(stopped)),
        ]
        cells += [
            f"{1e3 * _mean(entry.outcomes, 'seconds'):,.0f}",
            _ratio(entry.outcomes, first, "seconds"),
        ]
        yield "| " + " | ".join(cells) + " |"


def _keep_table(duels: Sequence[Sequence[Entry]]) -> Iterator[str]:
    yield "| method | runs | pulls | regret | × | regret above 0.01 | ms per run | × |"
    yield "|---|---|---|---|---|---|---|---|"
    for entries in duels:
        if not entries[0].outcomes:
            yield f"| {entries[0].method} | 0 | {entries[0].error} |" + " |" * 5
            continue
        first = entries[1].outcomes
        for entry in entries:
            own = entry.outcomes
            failed = sum(_failed(entry, outcome) for outcome in own)
            cells = [
                entry.method,
                _count(entry),
                f"{_mean(own, 'pulls'):,.0f}",
                f"{_mean(own, 'regret'):.4f}",
            ]
            cells += [_ratio(own, first, "regret"), f"{failed / len(own):.0%}"]
            cells += [f"{1e3 * _mean(own, 'seconds'):,.0f}", _ratio(own, first, "seconds")]
            yield "| " + " | ".join(cells) + " |"


def _failed(entry: Entry, outcome: Outcome) -> bool:
    return outcome.regret > entry.arms.epsilon + ROUNDING


def _count(entry: Entry) -> str:
    return str(len(entry.outcomes)) + (f", {entry.crashed} crashed" if entry.crashed else "")


def _verdict(wrong: int, runs: int) -> tuple[str, str]:
    """The interval of the rate, and whether the promise was kept."""
    if runs == 0:
        return "", ""
    interval = binomtest(wrong, runs).proportion_ci(0.95, "exact")
    promise = (
        "broken" if interval.low > DELTA else "kept" if wrong / runs <= DELTA else "not settled"
    )
    return f"{interval.low:.1%} to {interval.high:.1%}", promise


def _mean(outcomes: Sequence[Outcome], what: str) -> float:
    return float(np.mean([getattr(outcome, what) for outcome in outcomes]))


def _ratio(own: Sequence[Outcome], first: Sequence[Outcome], what: str) -> str:
    """Ratio to the first method, over the runs that both made."""
    both = {outcome.run for outcome in own} & {outcome.run for outcome in first}
    mine, base = (
        _mean([each for each in some if each.run in both], what) if both else 0.0
        for some in (own, first)
    )
    return f"{mine / base:.2g}" if base else "-"
