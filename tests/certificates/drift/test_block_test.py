"""Tests run block by block: promises under drift, arms that leave and return, blocks left out."""

import numpy as np
import pytest
from attack_scale import number_of_runs
from drifting_worlds import LEVELS, visited
from scipy.stats import binomtest

from shortlist.arrays import FloatArray
from shortlist.certificates.drift import planning
from shortlist.certificates.drift.block_test import BlockTest, drift_search
from shortlist.certificates.drift.bound import BlockTerms, BlockWealth, is_plausible, log_level
from shortlist.certificates.drift.planning import Rate
from shortlist.certificates.items.bound import largest_matching
from shortlist.certificates.pairs.bound import StageRewards
from shortlist.problem import FixedConfidence, Problem, Traffic
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Rewards, advance

DELTA = 0.3
EPSILON = 0.05
FAMILIES = [  # just above epsilon, ties, K = 1, K = n - 1, n = 2
    ([0.353, 0.3, 0.3], 1),
    ([0.34, 0.34, 0.28], 2),
    ([0.36, 0.3], 1),
]


def problem(n_arms: int, k: int, traffic: Traffic) -> Problem:
    goal = FixedConfidence(EPSILON, DELTA)
    return Problem(n_arms, k, goal, Binary(), traffic=traffic).unit()


class Run:
    """A simulated test, with the average lead of every pair by the weights of the theorem."""

    def __init__(self, means: list[float], k: int, level: str, seed: int, traffic: Traffic) -> None:
        self.rng = np.random.default_rng([5, seed])
        self.rates = self.rng.permutation(np.array(means))
        self.test = BlockTest(problem(self.rates.size, k, traffic), self.rng)
        self.level = LEVELS[level]
        self.leads = np.zeros((self.rates.size, self.rates.size))
        self.weights = np.zeros_like(self.leads)
        self.blocks = 0

    def block(self, terms: BlockTerms, visitors: int = 240) -> None:
        """Let a block pass, and count it."""
        args = terms.shares, visitors, self.blocks, self.level, self.rng
        times, sums, level = visited(self.rates, *args)
        self.test.take(terms, StageRewards(times, sums, sums))
        self.blocks += 1
        i, j = terms.pairs()
        self.weights[i, j] += terms.steps(i, j) * visitors
        self.leads[i, j] += terms.steps(i, j) * visitors * level * (self.rates[j] - self.rates[i])

    @property
    def average_leads(self) -> FloatArray:
        return self.leads / np.maximum(self.weights, 1e-300)

    @property
    def false(self) -> bool:
        """Whether a bound is false for a pair of the best arms and the others."""
        k = self.test.problem.k
        best = np.argsort(-self.rates, kind="stable")
        pairs = np.ix_(best[k:], best[:k])
        known = self.weights[pairs] > 0
        return bool((known & (self.test.bounds[pairs] <= self.average_leads[pairs])).any())

    @property
    def lost(self) -> float:
        """The largest matching of average leads over the choice: at least K times the regret."""
        gains = self.average_leads[np.ix_(self.test.top, self.test.others)]
        return largest_matching(gains) / self.test.problem.k


def failures_allowed(failures: int, runs: int, delta: float) -> bool:
    """Whether so many failures are likely enough where each run fails with probability delta."""
    return bool(binomtest(failures, runs, delta, alternative="greater").pvalue > 1e-3)


@pytest.mark.rates
@pytest.mark.parametrize("level", LEVELS)
def test_the_choice_loses_at_most_epsilon_at_confidence_under_drift(level: str) -> None:
    runs, failures = number_of_runs(20, 2000), 0
    for seed in range(runs):
        means, k = FAMILIES[seed % len(FAMILIES)]
        run = Run(means, k, level, seed, Traffic(240))
        while not run.test.done:
            run.block(run.test.terms())
        failures += run.lost > EPSILON
    assert failures_allowed(failures, runs, DELTA), failures


@pytest.mark.rates
@pytest.mark.parametrize("level", LEVELS)
def test_choice_and_control_keep_their_bounds_together_after_every_block(level: str) -> None:
    """One event is behind both: the bounds of the pairs with the best arm."""
    runs, failures = number_of_runs(20, 2000), 0
    for seed in range(runs):
        run = Run(FAMILIES[2 * (seed % 2)][0], 1, level, seed, Traffic(240))
        best, control = int(np.argmax(run.rates)), int(run.rng.integers(run.rates.size))
        for _ in range(25):
            run.block(run.test.terms())
            top, lead = run.test.top[0], run.average_leads[:, best]
            kept = run.test.bound_of(control)
            if run.test.bound <= lead[top] > 0 or (kept is not None and kept < lead[control]):
                failures += 1
                break
            if run.test.done:
                break
    assert failures_allowed(failures, runs, DELTA), failures


@pytest.mark.rates
@pytest.mark.parametrize("level", LEVELS)
def test_bounds_of_all_times_hold_at_confidence_while_arms_leave_and_return(level: str) -> None:
    """Two of four arms are best and tied with a third; shares are drawn anew for every block."""
    runs, failures = number_of_runs(20, 2000), 0
    for seed in range(runs):
        run = Run([0.4, 0.3, 0.3, 0.2], 2, level, seed, Traffic())
        for _ in range(25):
            shares = run.rng.dirichlet(np.ones(4)) * (run.rng.random(4) < 0.8) + 0.02
            if run.rng.random() < 0.3:
                shares[run.rng.integers(4)] = 0.0
            terms = planning.terms_for(shares / shares.sum(), Rate(30, 100), 0.1, 3000.0)
            run.block(terms, 60)
            if run.false:
                failures += 1
                break
    assert failures_allowed(failures, runs, DELTA), failures


def told_in_order(order: list[int], blocks: list[StageRewards], terms: BlockTerms) -> list[float]:
    """The bound on a lead after each block, if blocks were booked in this order."""
    wealth = BlockWealth(2)
    bounds = []
    for block in order:
        wealth.book(terms, blocks[block], binary=True)
        bounds.append(float(wealth.bounds(log_level(1, 0.5, 0))[0, 1]))
    return bounds


def test_booking_blocks_in_the_order_of_their_results_would_be_false_too_often() -> None:
    """Ville's inequality covers one order: with the best block first, a bound fails more often."""
    shares = np.array([0.5, 0.5])
    terms = BlockTerms(shares, 0.15, 0.5)
    rng = np.random.default_rng(8)
    false = np.zeros(2)
    for _ in range(300):
        blocks = []
        for _ in range(12):
            times = rng.multinomial(40, shares)
            sums = rng.binomial(times, 0.5).astype(float)
            blocks.append(StageRewards(times, sums, sums))
        favour = [float(each.sums[0] - each.sums[1]) for each in blocks]
        orders = list(range(12)), np.argsort(favour)[::-1].tolist()
        false += [min(told_in_order(order, blocks, terms)) <= 0 for order in orders]
    assert false[0] / 300 <= 0.5 < false[1] / 300


def false_bounds(blocks: list[StageRewards], step: float = 0.15) -> bool:
    """Whether the bound on the lead of the second of two equal arms is ever false."""
    wealth, terms = BlockWealth(2), BlockTerms(np.array([0.5, 0.5]), step, 0.5)
    for number, block in enumerate(blocks):
        wealth.book(terms, block, binary=True)
        if wealth.bounds(log_level(1, DELTA, number + 1))[0, 1] <= 0:
            return True
    return False


def test_counting_returning_visitors_again_would_be_false_too_often() -> None:
    """They keep their arm and their taste: luck at the first visit is counted every day."""
    rng, false = np.random.default_rng(9), np.zeros(2)
    for _ in range(200):
        seen, days = np.zeros((2, 2), dtype=np.int64), []
        for _ in range(20):
            came = rng.multinomial(40, [0.5, 0.5])
            won = rng.binomial(came, 0.5)
            seen += np.array([came, won])
            again = StageRewards(seen[0].copy(), *[seen[1].astype(float)] * 2)
            days.append((StageRewards(came, *[won.astype(float)] * 2), again))
        false += [false_bounds([each[rule] for each in days], 0.04) for rule in (0, 1)]
    assert failures_allowed(int(false[0]), 200, DELTA), false
    assert not failures_allowed(int(false[1]), 200, DELTA), false


def test_counting_blocks_that_lost_visitors_would_be_false_too_often() -> None:
    """A page that crashes loses those who do not buy: the sample-ratio test refuses the block."""
    rng, shares, false = np.random.default_rng(10), np.array([0.5, 0.5]), np.zeros(2)
    refused = 0
    for _ in range(100):
        blocks = []
        for _ in range(8):
            came = rng.multinomial(800, shares)
            won = rng.binomial(came, 0.5)
            lost = int(0.9 * (came[0] - won[0]))
            told = StageRewards(came - np.array([lost, 0]), *[won.astype(float)] * 2)
            blocks.append(told)
        kept = [block for block in blocks if is_plausible(block.times, shares)]
        refused += len(blocks) - len(kept)
        false += [false_bounds(kept), false_bounds(blocks)]
    assert refused > 700
    assert failures_allowed(int(false[0]), 100, DELTA), false
    assert not failures_allowed(int(false[1]), 100, DELTA), false


def test_a_refused_block_leaves_wealth_and_clock_and_costs_its_probability() -> None:
    run = Run([0.4, 0.3, 0.3], 1, "steady", 0, Traffic(240))
    run.block(run.test.terms())
    before, clock = run.test.bounds.copy(), run.test._wealth.clock.copy()
    run.test.refuse()
    assert (run.test.bounds == before).all()
    assert (run.test._wealth.clock == clock).all()
    assert (run.test.passed, run.test.counted) == (2, 1)
    assert run.test.answer().evidence["left out"] == 1


def test_skipped_blocks_do_not_count_and_teach_the_rate() -> None:
    run = Run([0.4, 0.3, 0.3], 1, "steady", 0, Traffic(240, skip_blocks=2))
    for _ in range(2):
        assert run.test.skipping
        run.block(run.test.terms())
    assert not run.test.skipping
    assert np.isinf(run.test.bounds[0, 1])
    assert run.test.progress().bound is None
    assert run.test.terms().centre == pytest.approx(0.33, abs=0.05)
    assert run.test.answer().regret_bound is None


def test_a_test_lasts_for_its_least_number_of_blocks() -> None:
    run = Run([0.9, 0.1], 1, "steady", 0, Traffic(2400, min_blocks=5))
    while not run.test.done:
        run.block(run.test.terms(), 2400)
    assert run.blocks == 5
    assert run.test.answer().regret_bound is not None


def test_a_retired_arm_is_neither_chosen_nor_in_play_and_others_keep_their_bounds() -> None:
    run = Run([0.5, 0.3, 0.3, 0.3], 1, "steady", 1, Traffic(240))
    for _ in range(4):
        run.block(run.test.terms())
    best, before = int(np.argmax(run.rates)), run.test.bounds.copy()
    run.test.retire(best)
    assert best not in run.test.top
    assert run.test.terms().shares[best] == 0
    assert (run.test.bounds == before).all()


def test_what_a_retired_arm_shows_changes_no_bound_of_the_others() -> None:
    """Visitors given to an arm that retired within the block see something else."""
    tests = []
    for shown in (0.0, 1.0):
        run = Run([0.5, 0.3, 0.3], 1, "steady", 1, Traffic(240))
        terms = run.test.terms()
        times = np.array([80, 75, 85])
        sums = np.array([30.0, 20.0, 85 * shown])
        run.test.retire(2)
        run.test.take(terms, StageRewards(times, sums, sums))
        tests.append((run.test.bounds, *run.test.leads()))
    for one, other in zip(*tests, strict=True):
        assert (one == other).all()


def test_comparisons_with_a_retired_arm_end_when_it_retires() -> None:
    """Its visitors see the leader from then on: that says nothing of the lead of the leader."""
    run = Run([0.9, 0.3, 0.3], 1, "steady", 1, Traffic(3000))
    run.block(run.test.terms())
    _, before = run.test.leads()
    terms = run.test.terms()
    run.test.retire(2)
    run.test.take(terms, StageRewards(np.full(3, 1000), *np.array([[900.0, 300.0, 900.0]] * 2)))
    _, after = run.test.leads()
    # but for the share of delta of one more sample-ratio test
    assert after[[2, 0], [0, 2]] == pytest.approx(before[[2, 0], [0, 2]], abs=1e-5)
    assert -after[0, 2] < 0.6 < after[2, 0]
    assert after[1, 0] < before[1, 0]


def test_arms_leave_play_and_return_when_the_leader_retires() -> None:
    test = BlockTest(problem(3, 1, Traffic(3000)), np.random.default_rng(0))
    terms, times = test.terms(), np.array([1000, 1000, 1000])
    sums = np.array([600.0, 500.0, 590.0])
    test.take(terms, StageRewards(times, sums, sums))
    test.bounds = np.array([[0, -0.01, 0.15], [0.3, 0, 0.3], [0.2, 0.1, 0]])
    test._choose()
    assert test.top.tolist() == [0]
    assert test.terms().shares.tolist() == [0.5, 0, 0.5]
    test.retire(0)
    assert test.terms().shares.tolist() == [0, 0.5, 0.5]


def test_the_safest_arm_is_chosen_and_blocks_are_planned_for_the_best_one() -> None:
    """A bound that cannot fall any more must not keep the arms out of play that decide."""
    test = BlockTest(problem(3, 1, Traffic(3000)), np.random.default_rng(0))
    times, sums = np.array([1000, 1000, 1000]), np.array([500.0, 600.0, 400.0])
    test.take(test.terms(), StageRewards(times, sums, sums))
    test.bounds = np.array([[0, 0.1, -0.1], [-0.05, 0, 0.15], [0.3, 0.3, 0]])
    test._choose()
    assert (test.top.tolist(), test.bound) == ([0], 0.1)
    assert test.terms().shares.tolist() == [0, 0.5, 0.5]


def test_whole_shares_are_whole_percent_and_nearly_in_proportion() -> None:
    shares = planning.whole_shares(np.array([1.0, 0.0, 1.0, 1.0, 1e-9]))
    assert np.allclose(shares * 100, np.round(shares * 100))
    assert shares.sum() == pytest.approx(1)
    assert shares[1] == 0
    assert shares[4] == pytest.approx(0.01)
    many = planning.whole_shares(np.ones(300))
    assert np.allclose(many * planning.MANY_PARTS, np.round(many * planning.MANY_PARTS))
    assert np.ptp(many) <= 1.001 / planning.MANY_PARTS


def test_an_arm_that_costs_four_times_as_much_gets_half_the_share() -> None:
    top, others = np.array([0]), np.array([1, 2])
    weights = planning.weights_in_play(
        3, top, others, np.array([[True, False]]), np.array([4.0, 1.0, 1.0])
    )
    assert weights.tolist() == [0.5, 1.0, 0.0]


def test_a_level_at_which_cut_bounds_are_allowed_separates_doubtful_pairs() -> None:
    between = np.array([[0.3, 0.01], [0.02, np.inf]])
    doubts = planning.doubtful(between, 0.1)
    assert doubts.tolist() == [[True, False], [False, True]]


def test_blind_steps_are_small_where_many_visitors_come_before_the_first_result() -> None:
    shares = np.full(4, 0.25)
    few, many, unknown = (
        planning.terms_for(shares, Rate.guessed(0.002), 0.002, visitors).step
        for visitors in (100.0, 1e7, None)
    )
    usual = planning.terms_for(shares, Rate(20.0, 1000.0), 0.002, 100.0).step
    assert many < unknown < few < usual


def test_bets_become_smaller_where_arms_turn_out_to_be_alike() -> None:
    assert planning.caution_of(0.0, 4.0) == 1
    assert planning.caution_of(8.0, 4.0) == 1
    assert planning.caution_of(32.0, 4.0) == pytest.approx(0.5)


def drive(traffic: Traffic, means: FloatArray, seed: int, k: int = 1) -> tuple[Answer, int]:
    """The search, with rewards at the means; its answer and the number of its blocks."""
    rng = np.random.default_rng(seed)
    run = drift_search(problem(means.size, k, traffic), rng)
    turn, blocks = advance(run, None), 0
    while isinstance(turn, Pulls):
        sums = rng.binomial(turn.times, means[turn.arms]).astype(float)
        turn = advance(run, Rewards(sums, sums))
        blocks += 1
    return turn, blocks


def test_late_results_cost_the_delay_in_blocks_and_little_more() -> None:
    means = np.array([0.6, 0.4, 0.4])
    prompt = np.mean([drive(Traffic(600), means, seed)[1] for seed in range(8)])
    late = np.mean([drive(Traffic(600, delay=3), means, seed)[1] for seed in range(8)])
    assert prompt + 2 <= late <= prompt + 5


def test_the_answer_of_a_search_has_its_evidence() -> None:
    answer, blocks = drive(Traffic(600), np.array([0.6, 0.4, 0.4]), 1)
    assert answer.top.tolist() == [0]
    assert answer.confidence == 1 - DELTA
    assert answer.regret_bound is not None
    assert answer.regret_bound <= EPSILON
    assert answer.evidence == {"certificate": "drift", "blocks": blocks, "left out": 0}


def test_more_than_one_arm_is_chosen_by_effects_within_blocks() -> None:
    answer, _ = drive(Traffic(900), np.array([0.6, 0.2, 0.6, 0.2]), 2, k=2)
    assert answer.top.tolist() == [0, 2]
