"""A lead decides: the evidence about the average mean is fair, and the wrong arm is rare."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from math import comb

import numpy as np
import pytest

from shortlist.certificates.pairs.fallback import (
    Fallback,
    LeadEvidence,
    TwoArmBoundary,
    boundary,
    mistaken,
)
from shortlist.certificates.pairs.search import pairs_search
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Pulls, advance
from shortlist.simulation.worlds import BernoulliBandit

Look = tuple[int, int]  # successes of both arms together, and how far one is ahead


def bound(gap: float, pulls: int, delta: float) -> TwoArmBoundary:
    found = boundary(gap, pulls, delta)
    assert found is not None
    return found


def after(found: TwoArmBoundary, every: int, looks: tuple[Look, ...]) -> LeadEvidence:
    """The evidence after looks that are `every` pulls of each arm apart."""
    lead = LeadEvidence(found)
    for number, (total, _) in enumerate(looks, start=1):
        lead.see(number * every, total)
    return lead


def pairs_in(found: TwoArmBoundary, gap: float, level: int) -> Iterator[tuple[float, float]]:
    """Means at least `gap` apart whose average is in a level, at its lower end and inside."""
    upper = found.means[level - 1] if level else 0.5
    for average in (found.means[level], (found.means[level] + upper) / 2):
        for apart in (gap, min(1.3 * gap, 2 * average)):
            yield average + apart / 2, average - apart / 2


def mean_after(
    found: TwoArmBoundary, level: int, means: tuple[float, float], mirrored: bool
) -> float:
    """E W after four looks, over all sequences of one pull of each arm."""
    total = 0.0
    better, worse = means if not mirrored else (1 - means[1], 1 - means[0])
    outcomes = {
        (0, 0): (1 - better) * (1 - worse),
        (2, 0): better * worse,
        (1, 1): better * (1 - worse),
        (1, -1): worse * (1 - better),
    }
    for path in product(outcomes, repeat=4):
        chance = np.prod([outcomes[step] for step in path])
        sums = np.cumsum(path, axis=0)
        lead = after(found, 1, tuple((int(s), int(d)) for s, d in sums))
        total += chance * lead.wealth(abs(sums[-1, 1]))[int(mirrored), level]
    return float(total)


@pytest.mark.no_cover
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("gap", [0.05, 0.3])
def test_evidence_against_a_level_is_fair_if_the_means_are_of_it(
    gap: float, mirrored: bool
) -> None:
    found = bound(gap, 3000, 0.05)
    for level in range(0, found.means.size, 1 + found.means.size // 5):
        for means in pairs_in(found, gap, level):
            assert mean_after(found, level, means, mirrored) <= 1 + 1e-12


def test_evidence_is_not_wasted_either() -> None:
    """At the lower end of a level, with the gap of its upper end, little of it is lost."""
    found = bound(0.05, 3000, 0.05)
    level = found.means.size // 2
    means = next(pairs_in(found, 0.05, level))
    assert mean_after(found, level, means, mirrored=False) > 0.98


class Rule:
    """When a lead decides, for all that may be seen at a few looks; then its probability."""

    def __init__(self, found: TwoArmBoundary, every: int) -> None:
        self.found, self.every = found, every
        self.short = cache(self._short)

    def _short(self, totals: tuple[int, ...], ahead: int) -> bool:
        looks = tuple((total, 0) for total in totals)
        return after(self.found, self.every, looks).short(ahead) > 0

    def wrong(self, better: float, worse: float) -> tuple[float, float]:
        """P(the worse arm is chosen) and P(that an arm is chosen before the last pull)."""
        law = [
            [
                comb(self.every, i) * m**i * (1 - m) ** (self.every - i)
                for i in range(self.every + 1)
            ]
            for m in (better, worse)
        ]
        start: tuple[int, ...] = ()
        states = {(start, 0): 1.0}  # totals at all looks, and the lead of the better arm
        failed, early = 0.0, 0.0
        for number in range(1, self.found.pulls // self.every + 1):
            grown: dict[tuple[tuple[int, ...], int], float] = {}
            for (totals, lead), chance in states.items():
                for i, j in product(range(self.every + 1), repeat=2):
                    key = ((*totals, (totals[-1] if totals else 0) + i + j), lead + i - j)
                    grown[key] = grown.get(key, 0.0) + chance * law[0][i] * law[1][j]
            last = number * self.every == self.found.pulls
            states = {}
            for (totals, lead), chance in grown.items():
                if not last and self.short(totals, abs(lead)):
                    states[totals, lead] = chance
                    continue
                early += 0.0 if last else chance
                failed += chance if lead < 0 else chance / 2 if lead == 0 else 0.0
        return failed, early


@pytest.mark.parametrize(("gap", "delta", "every"), [(0.35, 0.25, 3), (0.25, 0.35, 3)])
def test_the_worse_arm_is_chosen_no_more_often_than_delta(
    gap: float, delta: float, every: int
) -> None:
    rule = Rule(bound(gap, 4 * every, delta), every)
    averages = np.linspace(gap / 2, 1 - gap / 2, 9)
    chances = [rule.wrong(average + gap / 2, average - gap / 2) for average in averages]
    assert max(wrong for wrong, _ in chances) <= delta
    assert max(wrong for wrong, _ in chances) > 0.4 * delta
    assert min(early for _, early in chances) > 0.1
    farther = [rule.wrong(m + 0.3, m - 0.3) for m in (0.3, 0.5, 0.65)]
    assert max(wrong for wrong, _ in farther) <= delta


def test_at_its_distance_a_lead_decides_whatever_the_rewards_are() -> None:
    found = bound(0.1, 400, 0.05)
    for total in (found.distance, 100, 200, 400 - found.distance):
        lead = after(found, 50, tuple((int(total * part), 0) for part in (0.3, 0.7, 0.8, 1.0)))
        assert lead.short(found.distance) <= 1e-9


def test_the_lead_that_decides_is_smaller_where_means_are_near_0_or_1() -> None:
    found = bound(0.02, 10_000, 0.05)
    needed = []
    for share in (0.5, 0.3, 0.1, 0.03):
        parts = np.arange(1, 61)
        low, high = (
            after(found, 25, tuple((int(50 * x * part), 0) for part in parts))
            for x in (share, 1 - share)
        )
        assert low.short(5) == pytest.approx(high.short(5))
        needed.append(low.short(5) + 5)
    assert needed[0] == pytest.approx(found.distance, abs=2)
    assert (np.diff(needed) < 0).all()
    # nearly what would do if the average were known
    known = np.argmin(np.abs(found.means - 0.03))
    least = np.log(1 / found.errors[known] - 1) / found.log_odds[known]
    assert needed[-1] < 1.3 * least


def test_a_short_lead_is_enough_only_if_the_error_allows_it_at_every_level() -> None:
    found = bound(0.05, 1000, 0.05)
    lead = after(found, 100, ((60, 0), (130, 0)))
    for ahead in (3.0, 12.0):
        allowed = (mistaken(found.log_odds, ahead) <= found.errors * lead.wealth(ahead)).all()
        assert allowed == (lead.short(ahead) <= 0)


def test_requests_are_the_shorter_the_nearer_the_end_is() -> None:
    lead = after(bound(0.05, 1000, 0.05), 100, ((100, 0),))
    worth = [lead.worth(ahead) for ahead in (0.0, 5.0, 10.0, 14.0)]
    assert (np.diff(worth) < 0).all()
    assert worth[0] == pytest.approx((lead.short(0.0) / 2) ** 2 / 0.5, rel=0.01)


@pytest.mark.parametrize("least", [None, 40])
def test_a_lead_ends_a_race(least: int | None) -> None:
    problem = Problem(2, 1, FixedConfidence(0.1, 0.05), Binary())
    judged = Fallback(problem, 0, np.random.default_rng(0))
    assert judged.lead is not None
    led = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        search = pairs_search(problem, rng, least=least)
        bandit = BernoulliBandit(np.array([0.62, 0.5]))
        pulls, sums = np.zeros(2, dtype=np.int64), np.zeros(2)
        turn = advance(search, None)
        while isinstance(turn, Pulls):
            given = bandit.pull(turn.arms, turn.times, rng)
            np.add.at(pulls, turn.arms, turn.times)
            np.add.at(sums, turn.arms, given.sums)
            turn = advance(search, given)
        assert turn.regret_bound is not None
        assert turn.regret_bound <= 0.1
        assert pulls[0] == pulls[1] <= judged.size
        led += abs(sums[0] - sums[1]) >= 0.8 * judged.lead.boundary.distance
    assert led > 10
