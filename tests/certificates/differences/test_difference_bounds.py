"""Bets on differences: exact moments, exact failure probabilities, and rounding."""

from itertools import product
from math import exp, inf, log

import numpy as np
import pytest
from attack_scale import number_of_runs
from mpmath import mp, mpf, tanh

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.differences import planning
from shortlist.certificates.differences.bound import (
    EXACT_LEAD,
    PairSums,
    RowSums,
    pair_level,
    row_sums,
)
from shortlist.certificates.differences.planning import (
    Comparisons,
    best_first,
    clocks_for,
    next_rows,
    sharp_clocks,
)

WEIGHTS = np.array(planning.GAP_WEIGHTS)
SHARP = planning.SHARP_WEIGHT
ALL_WEIGHTS = np.append((1 - SHARP) * WEIGHTS, SHARP)
BOTH = np.array([0, 1])
ONE, OTHER = np.array([0]), np.array([1])


def with_sharp(clocks: FloatArray, compared: Comparisons) -> FloatArray:
    """The clocks of all bets, the sharp one last."""
    sharp = sharp_clocks(compared, BOTH)[:, :, None]
    return np.concatenate([clocks, sharp], axis=2)


def played(differences: FloatArray) -> tuple[PairSums, list[FloatArray]]:
    """Bet row by row on x_1 - x_0, clocks by the rows before; the clocks that were used."""
    sums, compared, used = PairSums(2, WEIGHTS, SHARP), Comparisons(2), []
    for place, difference in enumerate(differences):
        rows = row_sums(np.array([[0.0, difference]]))
        if place:
            clocks = clocks_for(compared.variances(), 1)
            used.append(with_sharp(clocks, compared)[0, 1])
            sums.bet(BOTH, rows, clocks)
            sums.exact.bet(BOTH, np.array([[0.0, difference]]), with_sharp(clocks, compared))
        compared.add(BOTH, rows)
    return sums, used


def wealth_at(sums: PairSums, lead: float) -> float:
    """The mixture of the parabolas at a lead."""
    logs = (lead * (sums.slope + sums.slope_spent) - lead**2 * sums.square_spent / 2 - sums.spent)[
        0, 1
    ]
    return float(sums.weights @ np.exp(logs))


def exact_wealth(sums: PairSums, i: int, j: int) -> float:
    """The mixture of exact wealths of a pair against EXACT_LEAD."""
    return float(ALL_WEIGHTS @ np.exp(sums.exact.at_lead[i, j]))


@pytest.mark.parametrize(
    ("steps", "length"),
    [
        ((-1.0, 1.0), number_of_runs(8, 12)),
        ((-0.2, 0.2), number_of_runs(8, 12)),
        ((-3.0, 0.0, 3.0), 5),
        ((-5.0, -0.1, 0.1, 5.0), 4),
    ],
)
@pytest.mark.parametrize("lead", [0.0, 1.0, -2.0])
def test_the_mean_wealth_at_the_true_lead_is_at_most_1_over_all_sequences(
    steps: tuple[float, ...], length: int, lead: float
) -> None:
    sequences = [lead + np.array(each) for each in product(steps, repeat=length)]
    total = sum(wealth_at(played(each)[0], lead) for each in sequences)
    assert total / len(sequences) <= 1 + 1e-12


def test_the_probability_of_a_wrong_bound_is_at_most_alpha_over_all_sequences() -> None:
    alpha, lead, wrong = 0.3, EXACT_LEAD, 0
    sequences = list(product((-1.5, 1.5), repeat=8))
    for each in sequences:
        sums, compared = PairSums(2, WEIGHTS, SHARP), Comparisons(2)
        for place, step in enumerate(each):
            rows = row_sums(np.array([[0.0, lead + step]]))
            if place:
                clocks = clocks_for(compared.variances(), 1)
                sums.bet(BOTH, rows, clocks)
                both = with_sharp(clocks, compared)
                sums.exact.bet(BOTH, np.array([[0.0, lead + step]]), both)
                sums.update(ONE, OTHER, log(1 / alpha))
            compared.add(BOTH, rows)
        wrong += bool(sums.bounds[0, 1] <= lead)
    assert 0 < wrong <= alpha * len(sequences)


def test_the_mean_exact_wealth_is_1_over_all_sequences_if_the_lead_is_theirs() -> None:
    sequences = [EXACT_LEAD + np.array(each) for each in product((-2.0, 0.0, 2.0), repeat=6)]
    total = sum(exact_wealth(played(each)[0], 0, 1) for each in sequences)
    assert total / len(sequences) == pytest.approx(1, rel=1e-12)


def test_exact_wealths_settle_arms_far_apart_in_few_rows() -> None:
    sums, used = played(np.random.default_rng(5).normal(-30.0, 3.0, 16))
    (bound,) = sums.update(ONE, OTHER, log(1000))[0]
    assert bound == EXACT_LEAD
    with mp.workdps(30):
        differences = np.random.default_rng(5).normal(-30.0, 3.0, 16)[1:]
        logs = [
            sum(
                mp.log(1 + tanh(mpf(c[place]) * (mpf(EXACT_LEAD) - mpf(d))))
                for d, c in zip(differences, used, strict=True)
            )
            for place in range(ALL_WEIGHTS.size)
        ]
    wealth = float(sum(w * mp.exp(each) for w, each in zip(ALL_WEIGHTS, logs, strict=True)))
    assert wealth >= 1000
    assert np.allclose([float(each) for each in logs], sums.exact.at_lead[0, 1])


def test_a_bound_is_a_lead_at_which_the_exact_wealth_reaches_the_level() -> None:
    rng, level = np.random.default_rng(3), log(40)
    with mp.workdps(40):
        for sd in (0.01, 0.5, 5.0):
            differences = rng.normal(-1.0, sd, 200)
            sums, used = played(differences)
            (bound,) = sums.update(ONE, OTHER, level)[0]
            assert np.isfinite(bound)
            wealth = mpf(0)
            for place, weight in enumerate(ALL_WEIGHTS):
                each = mpf(1)
                for difference, clocks in zip(differences[1:], used, strict=True):
                    each *= 1 + tanh(mpf(clocks[place]) * (mpf(bound) - mpf(difference)))
                wealth += mpf(weight) * each
            assert wealth >= mp.exp(mpf(level))


def test_a_bound_is_nearly_the_least_that_the_sums_allow() -> None:
    rng, level = np.random.default_rng(4), log(40)
    sums, _ = played(rng.normal(-2.0, 3.0, 400))
    (bound,) = sums.update(ONE, OTHER, level)[0]
    assert wealth_at(sums, bound) >= exp(level) > wealth_at(sums, bound - 1e-3)


def test_arms_far_apart_have_a_negative_bound() -> None:
    sums, _ = played(np.random.default_rng(5).normal(-200.0, 0.1, 60))
    (bound,) = sums.update(ONE, OTHER, log(40))[0]
    assert -200 < bound < 0


def test_bounds_are_infinite_before_the_first_bet_and_never_rise() -> None:
    sums = PairSums(2, WEIGHTS)
    assert sums.update(ONE, OTHER, 1.0)[0, 0] == inf
    compared, last = Comparisons(2), inf
    for difference in np.random.default_rng(6).normal(0, 1, 100):
        rows = row_sums(np.array([[0.0, difference]]))
        sums.bet(BOTH, rows, clocks_for(compared.variances() + 1, 1))
        compared.add(BOTH, rows)
        bound = sums.update(ONE, OTHER, 3.0)[0, 0]
        assert bound <= last
        last = bound


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e9])
def test_row_sums_keep_their_digits_far_from_0(offset: float) -> None:
    rng = np.random.default_rng(7)
    whole = rng.integers(-50, 50, (300, 4)).astype(float)  # exact at any offset
    told, plain = row_sums(whole + offset), row_sums(whole)
    assert np.allclose(told.leads, plain.leads, rtol=1e-12, atol=1e-9)
    assert np.allclose(told.squares, plain.squares, rtol=1e-12)
    differences = whole[:, None, :] - whole[:, :, None]
    assert (told.squares >= (differences**2).sum(0)).all()  # never rounded down
    assert np.allclose(told.leads, differences.sum(0))


def test_a_deviation_that_all_arms_share_takes_no_digits() -> None:
    rng = np.random.default_rng(8)
    whole = rng.integers(-50, 50, (300, 3)).astype(float)
    shared = 1e6 * rng.integers(-100, 100, (300, 1))
    assert np.allclose(row_sums(whole + shared).squares, row_sums(whole).squares, rtol=1e-9)


def test_rows_are_booked_for_the_arms_that_are_in_them_only() -> None:
    compared = Comparisons(3)
    told = row_sums(np.array([[1.0, 4.0], [2.0, 4.0]]))
    compared.add(np.array([0, 2]), told)
    assert compared.rows[0, 2] == 2
    assert compared.leads[0, 2] == 5 == -compared.leads[2, 0]
    assert compared.rows[0, 1] == 0 == compared.leads[1, 2]


def test_effects_compare_arms_through_others() -> None:
    compared, rng = Comparisons(3), np.random.default_rng(9)
    seed = rng.normal(0, 100, (400, 1))  # what a row has in common
    rows = seed + np.array([0.0, 1.0, 2.0]) + rng.normal(0, 0.1, (400, 3))
    compared.add(np.array([0, 1]), row_sums(rows[:200, :2]))
    compared.add(np.array([1, 2]), row_sums(rows[200:, 1:]))
    effects = compared.effects()
    assert np.allclose(np.diff(effects), 1.0, atol=0.1)
    assert best_first(effects, np.array([2, 1, 0])).tolist() == [2, 1, 0]
    assert best_first(np.zeros(3), np.array([2, 0, 1])).tolist() == [1, 2, 0]


def test_batches_grow_with_the_rows_so_far() -> None:
    assert next_rows(10) == planning.LEAST_ROWS
    assert next_rows(4000) == 4000 * planning.ROW_GROWTH


def missing_by_hand(wealth: FloatArray, i: int, j: int, k: int, level: float) -> float:
    """ln of K (n - K) / delta less what the others earned, without the k - 1 richest of them."""
    others = np.sort(np.delete(wealth[:, j], np.array([i, j])))
    rest = exp(level) - others[: others.size - (k - 1)].sum()
    return log(rest) if rest > 0 else -inf


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("ended", [False, True])
def test_what_others_earned_against_an_arm_counts_but_for_those_that_may_be_best(
    k: int, ended: bool
) -> None:
    rng, n = np.random.default_rng(k), 6
    sums, level, outside = PairSums(n, WEIGHTS, SHARP), log(20), np.array([1, 4])
    logs = rng.normal(1.0, 2.0, (n, n, WEIGHTS.size + 1))
    sums.exact.at_zero, sums.exact.ended = logs.copy(), ended
    if ended:  # the parabolas are used, and the sharp bet as it was
        sums.spent = -rng.normal(1.0, 2.0, (n, n, WEIGHTS.size))
        logs[:, :, :-1] = -sums.spent
    wealth = np.exp(logs) @ ALL_WEIGHTS
    missing = sums._missing(k, outside, level)
    for place, j in enumerate(outside.tolist()):
        for i in set(range(n)) - {j}:
            by_hand = missing_by_hand(wealth, i, j, k, level)
            assert missing[i, place] == pytest.approx(by_hand, abs=1e-6)
            assert missing[i, place] >= by_hand


def test_what_a_retired_arm_earned_counts_no_more_and_bounds_are_proved_again() -> None:
    rng, n, level, outside = np.random.default_rng(4), 6, log(20), np.array([1, 4])
    sums, fewer = PairSums(n, WEIGHTS, SHARP), PairSums(n - 1, WEIGHTS, SHARP)
    sums.exact.at_zero = rng.normal(1.0, 2.0, (n, n, WEIGHTS.size + 1))
    fewer.exact.at_zero = sums.exact.at_zero[:5, :5]
    sums.bounds[:] = -1.0
    sums.retire(np.arange(n) == 5)
    assert np.isinf(sums.bounds).all()
    for k in (1, 2):
        found = sums._missing(k, outside, level)[:5]
        assert found == pytest.approx(fewer._missing(k, outside, level))


def test_a_bound_that_rests_on_several_arms_is_wrong_with_probability_alpha_at_most() -> None:
    """All sequences of three rows of three arms; the last is best, by leads that are tested."""
    leads, steps, clocks = np.array([0.0, 0.0, EXACT_LEAD]), (-1.0, 1.0), 0.9
    alpha, sequences, wrong, everyone = 0.6, 0, 0, np.arange(3)
    rows = [leads + np.array(each) for each in product(steps, repeat=3)]
    bets = np.full((3, 3, 2), clocks)
    for first, second, third in product(rows, repeat=3):
        sums, sequences = PairSums(3, np.array([1.0]), 0.5), sequences + 1
        for row in (first, second, third):
            sums.bet(everyone, row_sums(row[None]), bets[:, :, :1])
            sums.exact.bet(everyone, row[None], bets)
            sums.update(np.array([0]), np.array([1, 2]), log(2 / alpha))
        wrong += bool((sums.bounds[:2, 2] <= EXACT_LEAD).any())
    assert 0 < wrong <= alpha * sequences


def test_an_arm_that_many_beat_is_dropped_in_fewer_rows_than_any_one_needs() -> None:
    rng, n = np.random.default_rng(8), 40
    sums, everyone = PairSums(n, np.array([1.0]), 0.5), np.arange(n)
    for row in np.r_[0.0, np.full(n - 1, 50.0)] + rng.normal(0, 1, (8, n)):
        sums.exact.bet(everyone, row[None], np.full((n, n, 2), 0.1))
    level = pair_level(n, 1, 0.05)
    sums.update(everyone[5:6], everyone[[0, 6]], level)
    assert (sums.exact.lead_earned(np.ix_(everyone[1:], everyone[:1])) < level).all()
    assert (sums.bounds[1:, 0] < 0).all()  # whichever arm is chosen
    assert np.isinf(sums.bounds[1:6, 6]).all()


def test_sharp_clocks_grow_with_the_gap_and_stay_near_the_cap() -> None:
    compared = Comparisons(2)
    for difference in np.random.default_rng(9).normal(-30, 1.0, 50):
        compared.add(BOTH, row_sums(np.array([[0.0, difference]])))
    clock = sharp_clocks(compared, BOTH)
    assert 1.0 < 30 * clock[0, 1] <= planning.SHARP_CAP
    assert clock[1, 0] <= planning.LEAST_SHARP / compared.variances()[1, 0]


def test_levels_are_shared_by_all_pairs_that_matter() -> None:
    assert exp(pair_level(5, 2, 0.06)) == pytest.approx(100)


def test_constants_add_up() -> None:
    assert sum(planning.GAP_WEIGHTS) == pytest.approx(1)
    assert len(planning.GAPS) == len(planning.GAPS_OF_SETS) == len(planning.GAP_WEIGHTS)


def test_clocks_are_at_most_1_as_the_rounding_needs() -> None:
    variances: FloatArray = np.array([[0.0, 1e-12], [1.0, 1e12]])
    for k in (1, 2):
        assert (clocks_for(variances, k) <= 1).all()


def test_the_names_of_sums_are_those_of_the_proof() -> None:
    """A = sum c, C + H/2, F and E for one clock, by hand."""
    sums = PairSums(2, np.array([1.0]))
    clocks: FloatArray = np.full((2, 2, 1), 0.5)
    arms: IntArray = BOTH
    sums.bet(
        arms, RowSums(2, np.array([[0, 3.0], [-3, 0]]), np.full((2, 2), 5.0), clocks[0]), clocks
    )
    found = [each[0, 1, 0] for each in (sums.slope, sums.spent, sums.slope_spent)]
    assert found == [1.0, 1.5 + 0.625, 0.75]
    assert sums.square_spent[0, 1, 0] == 0.5
