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
)

WEIGHTS = np.array(planning.GAP_WEIGHTS)
BOTH = np.array([0, 1])
ONE, OTHER = np.array([0]), np.array([1])


def played(differences: FloatArray) -> tuple[PairSums, list[FloatArray]]:
    """Bet row by row on x_1 - x_0, clocks by the rows before; the clocks that were used."""
    sums, compared, used = PairSums(2, WEIGHTS), Comparisons(2), []
    for place, difference in enumerate(differences):
        rows = row_sums(np.array([[0.0, difference]]))
        if place:
            clocks = clocks_for(compared.variances(), 1)
            used.append(clocks[0, 1])
            sums.bet(BOTH, rows, clocks)
            sums.bet_exactly(BOTH, np.array([[0.0, difference]]), clocks)
        compared.add(BOTH, rows)
    return sums, used


def wealth_at(sums: PairSums, lead: float) -> float:
    """The mixture of the parabolas at a lead."""
    logs = (lead * (sums.slope + sums.slope_spent) - lead**2 * sums.square_spent / 2 - sums.spent)[
        0, 1
    ]
    return float(WEIGHTS @ np.exp(logs))


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
        sums, compared = PairSums(2, WEIGHTS), Comparisons(2)
        for place, step in enumerate(each):
            rows = row_sums(np.array([[0.0, lead + step]]))
            if place:
                clocks = clocks_for(compared.variances(), 1)
                sums.bet(BOTH, rows, clocks)
                sums.bet_exactly(BOTH, np.array([[0.0, lead + step]]), clocks)
                sums.update(ONE, OTHER, log(1 / alpha))
            compared.add(BOTH, rows)
        wrong += bool(sums.bounds[0, 1] <= lead)
    assert 0 < wrong <= alpha * len(sequences)


def test_the_mean_exact_wealth_is_1_over_all_sequences_if_the_lead_is_theirs() -> None:
    sequences = [EXACT_LEAD + np.array(each) for each in product((-2.0, 0.0, 2.0), repeat=6)]
    total = sum(float(WEIGHTS @ np.exp(played(each)[0].exact[0, 1])) for each in sequences)
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
            for place in range(WEIGHTS.size)
        ]
    wealth = float(sum(w * mp.exp(each) for w, each in zip(WEIGHTS, logs, strict=True)))
    assert wealth >= 1000
    assert np.allclose([float(each) for each in logs], sums.exact[0, 1])


def test_a_bound_is_a_lead_at_which_the_exact_wealth_reaches_the_level() -> None:
    rng, level = np.random.default_rng(3), log(40)
    with mp.workdps(40):
        for sd in (0.01, 0.5, 5.0):
            differences = rng.normal(-1.0, sd, 200)
            sums, used = played(differences)
            (bound,) = sums.update(ONE, OTHER, level)[0]
            assert np.isfinite(bound)
            wealth = mpf(0)
            for place, weight in enumerate(WEIGHTS):
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
