"""Secondary metrics: intervals against the control hold at their confidence, whatever happens."""

import numpy as np
import pytest
from attack_scale import number_of_runs
from drifting_worlds import LEVELS, SLOTS
from scipy.stats import binomtest

from shortlist.arrays import BoolArray
from shortlist.certificates.drift.bound import BlockTerms
from shortlist.certificates.drift.secondary_metrics import MetricTest
from shortlist.certificates.pairs.bound import StageRewards

DELTA = 0.3
RATES = np.array([0.3, 0.3, 0.36, 0.24])
CONTROL = 1


class World:
    """Visitors with a metric whose level moves; a test of every arm against the control."""

    def __init__(self, level: str, seed: int) -> None:
        self.rng = np.random.default_rng([6, seed])
        self.rates = self.rng.permutation(RATES)
        self.test = MetricTest(RATES.size, CONTROL, DELTA, 240.0)
        self.level = LEVELS[level]
        self.blocks = 0
        self.weights, self.sums = np.zeros((2, RATES.size))  # of the true leads over the control
        self.left: set[int] = set()

    def block(self, terms: BlockTerms, visitors: int = 240) -> None:
        """Let a block pass, and count it."""
        times, sums = np.zeros((2, RATES.size), dtype=np.int64)
        levels = []
        for slot in range(SLOTS):
            levels.append(self.level(self.blocks + (slot + 0.5) / SLOTS))
            came = self.rng.multinomial(visitors // SLOTS, terms.shares)
            times += came
            sums += self.rng.binomial(came, np.clip(self.rates * levels[-1], 0, 1))
        self.test.take(terms, StageRewards(times, sums.astype(float), sums.astype(float)))
        self.blocks += 1
        known = terms.in_play & terms.in_play[CONTROL] & ~self.gone
        arms = np.flatnonzero(known)
        weight = terms.steps(arms, np.full_like(arms, CONTROL)) * visitors
        self.weights[arms] += weight
        leads = self.rates[arms] - self.rates[CONTROL]
        self.sums[arms] += weight * float(np.mean(levels)) * leads

    @property
    def gone(self) -> BoolArray:
        """The arms whose comparison has ended."""
        return np.isin(np.arange(RATES.size), list(self.left)) | (CONTROL in self.left)

    def retire(self, arm: int) -> None:
        self.left.add(arm)
        self.test.retire(arm)

    @property
    def false(self) -> bool:
        """Whether an interval does not hold the average lead."""
        known = self.weights > 0
        average = self.sums[known] / self.weights[known]
        found = self.test.compared()
        return bool(((average < found.low[known]) | (average > found.high[known])).any())


def allowed(failures: int, runs: int, delta: float) -> bool:
    return bool(binomtest(failures, runs, delta, alternative="greater").pvalue > 1e-3)


@pytest.mark.rates
@pytest.mark.parametrize("level", LEVELS)
def test_intervals_of_a_metric_hold_together_at_all_times_under_drift(level: str) -> None:
    """Shares change, arms leave play, results come two blocks late, and the arm that looks worst
    retires because of the metric itself."""
    runs, failures = number_of_runs(20, 2000), 0
    for seed in range(runs):
        world = World(level, seed)
        opened: list[BlockTerms] = []
        for block in range(22):
            shares = world.rng.dirichlet(np.ones(RATES.size) * 3) + 0.03
            if not world.left and world.rng.random() < 0.3:
                shares[world.rng.integers(RATES.size)] = 0.0
            shares[list(world.left)] = 0.0
            opened.append(world.test.terms(shares / shares.sum()))
            if block < 2:
                continue
            world.block(opened.pop(0))
            if world.false:
                failures += 1
                break
            if block in (8, 14):
                worst = world.test.compared().lead.copy()
                worst[list(world.left)] = -1
                world.retire(int(np.nanargmax(worst)))
    assert allowed(failures, runs, DELTA), failures


@pytest.mark.rates
def test_intervals_are_not_so_wide_that_nothing_is_ever_false() -> None:
    """At a delta of 0.9 some fail: so the test above can fail."""
    failures = 0
    for seed in range(60):
        world = World("steady", seed)
        world.test = MetricTest(RATES.size, CONTROL, 0.99, 240.0)
        world.rates = np.full(RATES.size, 0.5)
        for _ in range(30):
            world.block(world.test.terms(np.full(4, 0.25)))
            if world.false:
                failures += 1
                break
    assert failures > 0


def test_an_interval_becomes_nearly_as_narrow_as_one_of_a_fixed_size() -> None:
    rng, shares = np.random.default_rng(1), np.full(4, 0.25)
    test = MetricTest(4, 0, 0.05, 4000.0)
    for _ in range(20):
        times = rng.multinomial(4000, shares)
        sums = rng.binomial(times, 0.1).astype(float)
        test.take(test.terms(shares), StageRewards(times, sums, sums))
    found = test.compared()
    fixed = 2.39 * np.sqrt(2 * 0.1 * 0.9 / 20_000)
    assert ((found.high - found.low)[1:] / 2 < 2 * fixed).all()
    assert np.abs(found.lead).max() < 2 * fixed
    assert (found.low[0], found.lead[0], found.high[0]) == (0, 0, 0)


def test_a_comparison_ends_when_its_arm_or_the_control_retires() -> None:
    rng, shares = np.random.default_rng(2), np.full(3, 1 / 3)
    test = MetricTest(3, 0, 0.1, None)

    def block(rates: list[float]) -> None:
        times = rng.multinomial(900, shares)
        sums = rng.binomial(times, rates).astype(float)
        test.take(test.terms(shares), StageRewards(times, sums, sums))

    block([0.2, 0.2, 0.3])
    test.retire(2)
    before = test.compared()
    block([0.2, 0.2, 0.9])
    after = test.compared()
    assert (after.low[2], after.lead[2]) == (pytest.approx(before.low[2], 1e-5), before.lead[2])
    assert after.high[1] < before.high[1]
    test.retire(0)
    block([0.9, 0.2, 0.2])
    assert test.compared().lead.tolist() == after.lead.tolist()


def test_blocks_that_are_left_out_count_nothing_and_an_unknown_arm_has_no_interval() -> None:
    test = MetricTest(3, 0, 0.1, None)
    test.leave_out()
    found = test.compared()
    assert np.isnan(found.lead[1])
    assert (found.low[1], found.high[1]) == (-1, 1)
    terms = test.terms(np.array([0.5, 0.5, 0.0]))
    assert terms.step == test.first_terms(terms.shares).step
    test.take(terms, StageRewards(np.array([90, 88, 0]), *np.array([[9, 30, 0], [9, 30, 0.0]])))
    found = test.compared()
    assert found.lead[1] == pytest.approx(30 / 88 - 0.1)
    assert np.isnan(found.lead[2])
    assert (found.low[2], found.high[2]) == (-1, 1)
