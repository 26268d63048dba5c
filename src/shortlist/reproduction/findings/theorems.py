"""The theorems over n and over epsilon: pulls against what they promise, in sweeps of Uniform."""

from collections.abc import Callable, Iterable, Sequence
from math import log

import numpy as np

from shortlist.reproduction.design.panels import Panel
from shortlist.reproduction.findings.finding import ALL, Finding
from shortlist.reproduction.runs.rows import ResultRow

TOLERANCE = 0.1  # of a fitted exponent
Sweep = Sequence[Panel]


def theorem_1(panel: Panel) -> float:
    """(ln ln 1/epsilon + ln n + ln 1/delta) H: what AdaptiveTopK needs, up to a constant."""
    return (log(log(1 / panel.epsilon)) + log(panel.n) + log(1 / panel.delta)) * panel.hardness().h


def theorem_2(panel: Panel) -> float:
    """(ln 1/epsilon + ln 1/delta) H: what ImprovedTopK needs, up to a constant."""
    return (log(1 / panel.epsilon) + log(1 / panel.delta)) * panel.hardness().h


def clucb_bound(panel: Panel) -> float:
    """(ln H0 + ln 1/delta) H0, H0 = H^(0, epsilon): what CLUCB-PAC needs, up to a constant."""
    h0 = panel.hardness().h0
    return (log(h0) + log(1 / panel.delta)) * h0


PROMISES: dict[str, Callable[[Panel], float]] = {
    "adaptive-top-k": theorem_1,
    "improved-top-k": theorem_2,
    "clucb-pac": clucb_bound,
}


def pulls(rows: Iterable[ResultRow], method: str, panels: Sequence[Panel]) -> list[float]:
    """The mean pulls of a method on each of these panels."""
    found = {
        (row.n, row.epsilon): row.pulls_mean
        for row in rows
        if row.part == "sweep" and row.method == method
    }
    return [found[panel.n, panel.epsilon] for panel in panels]


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The slope of the least-squares line through (ln x, ln y): the exponent of a power law."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def judge(
    rows: Sequence[ResultRow], over_n: Sweep, over_epsilon: Sweep
) -> list[tuple[str, str, str]]:
    """Every theorem with what was measured, and a verdict; nothing where nothing was swept."""
    if not over_n or not over_epsilon:
        return []
    findings = {
        "Theorem 1: AdaptiveTopK needs O((ln ln 1/ε + ln n + ln 1/δ) H) pulls.": _promise(
            rows, "adaptive-top-k", over_n, over_epsilon
        ),
        "Theorem 2: ImprovedTopK needs O((ln 1/ε + ln 1/δ) H) pulls.": _promise(
            rows, "improved-top-k", over_n, over_epsilon
        ),
        "CLUCB-PAC needs O((ln H0 + ln 1/δ) H0) pulls, H0 = H^(0, ε).": _promise(
            rows, "clucb-pac", over_n, over_epsilon
        ),
        "Lemma c-spread: H = O(n/√ε) on spread arms.": _growth(
            "H", lambda p: p.hardness().h, over_n, over_epsilon, 0.5
        ),
        "Lemma c-spread: H0 = Ω(n/ε) on spread arms.": _growth(
            "H0", lambda p: p.hardness().h0, over_n, over_epsilon, 1
        ),
    }
    return [
        (sentence, finding.measured, finding.verdict(ALL)) for sentence, finding in findings.items()
    ]


def _promise(rows: Sequence[ResultRow], method: str, over_n: Sweep, over_epsilon: Sweep) -> Finding:
    """Whether pulls grow no faster than what is promised, in either sweep."""
    checks = []
    words = []
    for name, panels in (("n", over_n), ("ε", over_epsilon)):
        promised = [PROMISES[method](panel) for panel in panels]
        measured = pulls(rows, method, panels)
        exponent = slope(promised, measured)
        ratios = [spent / bound for spent, bound in zip(measured, promised, strict=True)]
        checks.append(exponent <= 1 + TOLERANCE)
        words.append(
            f"over {name} pulls grow like its power {exponent:.2f}, at {min(ratios):.3g} to"
            f" {max(ratios):.3g} times it"
        )
    return Finding(checks, "; ".join(words))


def _growth(
    name: str,
    hardness: Callable[[Panel], float],
    over_n: Sweep,
    over_epsilon: Sweep,
    expected: float,
) -> Finding:
    """Whether a hardness grows like n and like epsilon^-expected."""
    in_n = slope([panel.n for panel in over_n], [hardness(panel) for panel in over_n])
    in_epsilon = slope(
        [1 / panel.epsilon for panel in over_epsilon], [hardness(panel) for panel in over_epsilon]
    )
    checks = [abs(in_n - 1) <= TOLERANCE, abs(in_epsilon - expected) <= TOLERANCE]
    return Finding(checks, f"{name} grows like n^{in_n:.2f} and like (1/ε)^{in_epsilon:.2f}")
