"""What the paper says about its experiments, sentence by sentence, and whether it is so here.

Each is judged twice: for AdaptiveTopK with its printed constants and for the scaled form. One
method needs fewer pulls than another if the 95 % intervals of their needs (curves.py) say so."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from shortlist.reproduction.design.methods import ADAPTIVE, SCALED
from shortlist.reproduction.design.panels import DATASETS, Panel
from shortlist.reproduction.findings.curves import Curves, Need
from shortlist.reproduction.findings.decisions import Decisions
from shortlist.reproduction.findings.finding import ALL, ALMOST_ALL, MOST, Finding


@dataclass(frozen=True, slots=True)
class Measured:
    """What claims are judged by."""

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
        """The panels of every dataset that is there with all its K."""
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
    """A claim as judged for AdaptiveTopK as printed, and for the scaled form beside it."""

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
        MOST,
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
        MOST,
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
