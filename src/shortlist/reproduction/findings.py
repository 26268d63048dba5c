"""Findings from the rows: curves, needed pulls, and verdicts on claims and theorems."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite, isinf, log
from statistics import median

import numpy as np
from scipy.special import logit

from shortlist.arrays import FloatArray, IntArray
from shortlist.reproduction.design import ADAPTIVE, DATASETS, SCALED, Panel
from shortlist.reproduction.runs import ResultRow

Z = 1.959964  # 95 % of a normal distribution
RARELY = 0.1  # the failure probability at which methods are compared


def wilson(failures: IntArray, runs: IntArray) -> tuple[FloatArray, FloatArray]:
    """The 95 % band of Wilson (1927) for the probability of a failure."""
    rate = failures / runs
    centre = rate + Z**2 / (2 * runs)
    half = Z * np.sqrt(rate * (1 - rate) / runs + (Z / (2 * runs)) ** 2)
    scale = 1 + Z**2 / runs
    return np.maximum(0, (centre - half) / scale), np.minimum(1, (centre + half) / scale)


@dataclass(frozen=True, slots=True)
class Need:
    """Pulls from which on at most 10 % of the runs fail, with a 95 % interval.

    Infinite if no budget was enough."""

    pulls: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there were runs enough to bound it, or to see that no budget is enough."""
        return isfinite(self.high) or isinf(self.low)

    def surely_less(self, other: "Need") -> bool:
        """Whether the intervals say so."""
        return self.high < other.low


@dataclass(frozen=True)
class Curve:
    """The failure probability of one method on one panel against the budget."""

    method: str
    budgets: IntArray
    failures: IntArray
    runs: IntArray

    @cached_property
    def rates(self) -> FloatArray:
        """The share of runs that failed."""
        return self.failures / self.runs

    @cached_property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Its 95 % band."""
        return wilson(self.failures, self.runs)

    @cached_property
    def need(self) -> Need:
        """Where the curve falls to 10 %, and where the two ends of its band do."""
        least = min(0.5 / (float(self.runs.min()) + 1), RARELY / 2)  # half a failure
        return Need(*(crossing(self.budgets, rates, least) for rates in (self.rates, *self.band)))


def crossing(budgets: IntArray, rates: FloatArray, least: float, level: float = RARELY) -> float:
    """The budget from which on the rate is at most `level`.

    Between two budgets the log-odds of the rate are taken to be a line in the logarithm of the
    budget, as failure curves nearly are; rates within `least` of 0 or 1 are moved there, as their
    log-odds are unknown."""
    above = np.flatnonzero(rates > level)
    if above.size == 0:
        return float(budgets[0])
    last = int(above[-1])
    if last == budgets.size - 1:
        return inf
    before, after = logit(np.clip(rates[last : last + 2], least, 1 - least))
    share = (before - logit(level)) / (before - after)
    return float(budgets[last] * (budgets[last + 1] / budgets[last]) ** share)


Curves = Mapping[str, Mapping[str, Curve]]  # panel -> method -> curve


def curves(rows: Iterable[ResultRow], panels: Iterable[Panel]) -> Curves:
    """The curves of these panels."""
    of_panel = {panel.name: list[ResultRow]() for panel in panels}
    for row in rows:
        if row.part == "curve" and row.panel in of_panel:
            of_panel[row.panel].append(row)
    return {name: _of_panel(own) for name, own in of_panel.items()}


def _of_panel(rows: list[ResultRow]) -> dict[str, Curve]:
    found = {}
    for method in dict.fromkeys(row.method for row in rows):
        own = sorted((row for row in rows if row.method == method), key=lambda row: row.budget)
        found[method] = Curve(
            method,
            budgets=np.array([row.budget for row in own]),
            failures=np.array([row.failures for row in own]),
            runs=np.array([row.runs for row in own]),
        )
    return found


Decisions = Mapping[tuple[str, str], int]  # panel, method -> pulls before the first decision


def first_decisions(rows: Iterable[ResultRow]) -> Decisions:
    """The pulls before the first decision of every form on every panel."""
    return {(row.panel, row.method): int(row.pulls_mean) for row in rows if row.part == "decision"}


ALL = 1.0
ALMOST_ALL = 0.8
MOST_CHECKS = 0.5 + 1e-9  # more than half


@dataclass(frozen=True, slots=True)
class Finding:
    """The checks of a claim, and a summary of the measurements."""

    checks: Sequence[bool]
    words: str

    @property
    def measured(self) -> str:
        """The words, if there is anything behind them."""
        return self.words if self.checks else "nothing"

    def verdict(self, share: float) -> str:
        """The verdict, if that share of the checks ought to be true."""
        if not self.checks:
            return "not measured"
        true = sum(self.checks) / len(self.checks)
        if true >= share:
            return "holds"
        return "holds in part" if true >= share / 2 else "does not hold"


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements that claims are judged by."""

    panels: tuple[Panel, ...]
    curves: Curves
    decisions: Decisions

    def need(self, panel: Panel, method: str) -> Need:
        """Pulls until a method rarely fails."""
        return self.curves[panel.name][method].need

    def of(self, dataset: str) -> list[Panel]:
        """The panels of a dataset, by K."""
        return [panel for panel in self.panels if panel.dataset == dataset]

    def families(self) -> list[list[Panel]]:
        """The panels of every dataset that has all its K."""
        families = [self.of(dataset) for dataset in DATASETS]
        return [
            family
            for family in families
            if family and len(family) == len(DATASETS[family[0].dataset].ks)
        ]

    def advantage(self, panel: Panel, adaptive: str) -> float:
        """How many times as many pulls OptMAI needs."""
        return self.need(panel, "opt-mai").pulls / self.need(panel, adaptive).pulls


Judge = Callable[[Measured, str], Finding]  # by what was measured, for a form of AdaptiveTopK


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of Section 5, the share of checks it asks for, and how it is judged."""

    sentence: str
    share: float
    judge: Judge


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim as judged for AdaptiveTopK as printed, and for the scaled form."""

    sentence: str
    measured: str
    verdict: str
    measured_scaled: str
    verdict_scaled: str


def duel(pairs: Iterable[tuple[Need, Need]]) -> Finding:
    """Whether the first of each pair needs fewer pulls.

    Pairs that too few runs leave open do not count."""
    pairs = [(ours, theirs) for ours, theirs in pairs if ours.known and theirs.known]
    fewer = [ours.surely_less(theirs) for ours, theirs in pairs]
    more = sum(theirs.surely_less(ours) for ours, theirs in pairs)
    words = f"fewer pulls in {sum(fewer)} of {len(pairs)} cases, more in {more}"
    if pairs:
        ratio = median(theirs.pulls / ours.pulls for ours, theirs in pairs)
        several = " in the median" if len(pairs) > 1 else ""
        words += f"; its rival needs {ratio:.2f} times as many{several}"
    return Finding(fewer, words)


def against_clucb(measured: Measured, adaptive: str) -> Finding:
    """AdaptiveTopK against CLUCB-PAC, on every panel."""
    return duel(
        (measured.need(panel, adaptive), measured.need(panel, "clucb-pac"))
        for panel in measured.panels
    )


def opt_mai_at_small_k(measured: Measured, adaptive: str) -> Finding:
    """Whether neither of its rivals needs fewer pulls than OptMAI at the smallest K."""
    checks = []
    words = []
    for family in measured.families():
        needs = {
            name: measured.need(family[0], name) for name in ("opt-mai", adaptive, "clucb-pac")
        }
        if not all(need.known for need in needs.values()):
            continue
        checks.append(not any(need.surely_less(needs["opt-mai"]) for need in needs.values()))
        ratio = needs["opt-mai"].pulls / min(need.pulls for need in needs.values())
        words.append(f"{DATASETS[family[0].dataset].title} {ratio:.2f}")
    found = f"best or tied on {sum(checks)} of {len(checks)}"
    return Finding(checks, f"{found}; its pulls over the least: {', '.join(words)}")


def against_opt_mai_at_large_k(measured: Measured, adaptive: str) -> Finding:
    """AdaptiveTopK against OptMAI, at the largest K of every dataset."""
    last = [family[-1] for family in measured.families()]
    return duel((measured.need(panel, adaptive), measured.need(panel, "opt-mai")) for panel in last)


def two_group(measured: Measured, adaptive: str) -> Finding:
    """AdaptiveTopK against the paper's two others on TwoGroup."""
    rivals = ("opt-mai", "clucb-pac")
    panels = measured.of("two-group")
    return duel(
        (measured.need(panel, adaptive), measured.need(panel, name))
        for panel in panels
        for name in rivals
    )


def two_group_by_adaptivity(measured: Measured, adaptive: str) -> Finding:
    """Whether AdaptiveTopK decides on any arm before it rarely fails on TwoGroup."""
    checks = []
    words = []
    for panel in measured.of("two-group"):
        decided = measured.decisions[panel.name, adaptive]
        need = measured.need(panel, adaptive).pulls
        checks.append(decided < need)
        words.append(f"K = {panel.k}: first after {decided:,}, {need:,.0f} needed")
    return Finding(checks, f"pulls before an arm is accepted or rejected: {'; '.join(words)}")


def advantage_grows_with_k(measured: Measured, adaptive: str) -> Finding:
    """Whether the pulls of OptMAI over those of AdaptiveTopK grow from each K to the next."""
    checks = []
    words = []
    for family in measured.families():
        ratios = [measured.advantage(panel, adaptive) for panel in family]
        checks += [after > before for before, after in pairwise(ratios)]
        words.append(_series(family, [f"{ratio:.2f}" for ratio in ratios]))
    return Finding(checks, f"pulls of OptMAI over those of AdaptiveTopK: {', '.join(words)}")


def hardness_falls_with_k(measured: Measured, adaptive: str) -> Finding:  # noqa: ARG001
    """Whether t(epsilon, K) grows and H^(t, epsilon) falls from each K to the next."""
    checks = []
    words = []
    for family in measured.families():
        hard = [panel.hardness() for panel in family]
        checks += [after.t > before.t and after.h < before.h for before, after in pairwise(hard)]
        words.append(_series(family, [f"{each.t} ({each.h:.2g})" for each in hard]))
    return Finding(checks, f"t (H): {', '.join(words)}")


def _series(family: list[Panel], figures: list[str]) -> str:
    """A figure for every K of a dataset, from each K to the next."""
    return f"{DATASETS[family[0].dataset].title} {' → '.join(figures)}"


def both_extremes(measured: Measured, adaptive: str) -> Finding:
    """Whether OptMAI is farther behind at p = .5 and at p = 6 than at p = 1, for every K."""
    series = [measured.of(dataset) for dataset in ("synthetic-0.5", "uniform", "synthetic-6")]
    checks = []
    words = []
    for panels in zip(*series, strict=False):
        low, middle, high = (measured.advantage(panel, adaptive) for panel in panels)
        checks += [low > middle, high > middle]
        words.append(f"K = {panels[0].k}: {low:.2f}, {middle:.2f}, {high:.2f}")
    return Finding(
        checks, f"pulls of OptMAI over those of AdaptiveTopK at p = .5, 1, 6: {'; '.join(words)}"
    )


CLAIMS = (
    Claim(
        "AdaptiveTopK outperforms CLUCB-PAC in almost all the datasets.", ALMOST_ALL, against_clucb
    ),
    Claim(
        "When K is relatively small, OptMAI has the best performance in most datasets.",
        MOST_CHECKS,
        opt_mai_at_small_k,
    ),
    Claim("When K is large, AdaptiveTopK outperforms OptMAI.", ALL, against_opt_mai_at_large_k),
    Claim(
        "TwoGroup: AdaptiveTopK outperforms other algorithms significantly for all values of K.",
        ALL,
        two_group,
    ),
    Claim(
        "TwoGroup: the advantage comes from adaptivity; it needs only a few pulls to classify the"
        " arms, and accepts or rejects a large number of them in one round.",
        ALL,
        two_group_by_adaptivity,
    ),
    Claim(
        "As K increases, the advantage of AdaptiveTopK (over OptMAI in particular) becomes more"
        " significant.",
        ALMOST_ALL,
        advantage_grows_with_k,
    ),
    Claim(
        "As K grows, t(ε, K) usually becomes bigger, leading to a smaller H.",
        MOST_CHECKS,
        hardness_falls_with_k,
    ),
    Claim(
        "The advantage of AdaptiveTopK (over OptMAI in particular) becomes significant in both"
        " extremes, p ≪ 1 and p ≫ 1.",
        ALL,
        both_extremes,
    ),
)


def judge(measured: Measured) -> list[Judgement]:
    """Every claim of Section 5, judged."""
    judgements = []
    for claim in CLAIMS:
        printed = claim.judge(measured, ADAPTIVE)
        scaled = claim.judge(measured, SCALED)
        judgements.append(
            Judgement(
                claim.sentence,
                measured=printed.measured,
                verdict=printed.verdict(claim.share),
                measured_scaled=scaled.measured,
                verdict_scaled=scaled.verdict(claim.share),
            )
        )
    return judgements


MATTERS = (0.05, 0.95)  # a budget matters where the failure rate of any method is in between


@dataclass(frozen=True, slots=True)
class Behind:
    """A budget at which another method fails less often than the 95 % band of this one allows."""

    panel: str
    budget: int
    rate: float
    low: float
    rival: str
    rival_rate: float


def behind(curves: Curves, method: str) -> tuple[int, list[Behind]]:
    """How many budgets matter, and at which of them `method` is neither lowest nor tied."""
    found = [_on_panel(panel, own, method) for panel, own in curves.items()]
    return sum(count for count, _ in found), [each for _, worse in found for each in worse]


def _on_panel(panel: str, curves: Mapping[str, Curve], method: str) -> tuple[int, list[Behind]]:
    ours = curves[method]
    rates = np.array([curve.rates for curve in curves.values()])  # (methods, budgets)
    matters = ((rates >= MATTERS[0]) & (rates <= MATTERS[1])).any(axis=0)
    worse = []
    for position in np.flatnonzero(matters & (ours.band[0] > rates.min(axis=0))):
        rival = min(curves.values(), key=lambda curve: float(curve.rates[position]))
        worse.append(
            Behind(
                panel,
                budget=int(ours.budgets[position]),
                rate=float(ours.rates[position]),
                low=float(ours.band[0][position]),
                rival=rival.method,
                rival_rate=float(rival.rates[position]),
            )
        )
    return int(matters.sum()), worse


EXPONENT_TOLERANCE = 0.1  # of a fitted exponent
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


def judge_theorems(
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
        checks.append(exponent <= 1 + EXPONENT_TOLERANCE)
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
    checks = [abs(in_n - 1) <= EXPONENT_TOLERANCE, abs(in_epsilon - expected) <= EXPONENT_TOLERANCE]
    return Finding(checks, f"{name} grows like n^{in_n:.2f} and like (1/ε)^{in_epsilon:.2f}")
