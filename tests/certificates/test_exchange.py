"""Feasible swaps against enumeration, and the design of a family against exact probabilities."""

from itertools import product
from math import comb, exp, log, prod

import numpy as np
import pytest
from scipy.stats import binom
from small_families import (
    Sets,
    all_quotas,
    bases_of,
    mask_of,
    random_matroids,
    square_matching,
)

from shortlist.certificates.frame import (
    failure,
    fixed_design,
    log_swap_failure,
    log_swaps,
    log_swaps_of,
)
from shortlist.certificates.items.bound import largest_matching
from shortlist.certificates.under_constraints import ExchangeGraph
from shortlist.constraints import (
    Constraint,
    Matroid,
    MatroidConstraint,
    Quotas,
    complement_of,
)
from shortlist.errors import InvalidInput
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary, Bounded, SubGaussian

GOAL = FixedConfidence(0.1, 0.05)
SMALL = [each for groups in ("aabb", "aabbc", "aaabbb") for each in all_quotas(groups)]
MATROIDS = [*random_matroids(60, 0), *SMALL[::7]]


def problem_of(family: Constraint, sets: Sets) -> Problem:
    n: int = family.n_arms  # type: ignore[attr-defined]
    return Problem(n, len(sets[0]), GOAL, constraint=family)


def most_swaps(sets: Sets) -> list[int]:
    """The largest number of swaps of m arms out of any set, m = 1, 2, ..."""
    sizes = range(1, len(sets[0]) + 1)
    return [max(sum(len(one - other) == m for other in sets) for one in sets) for m in sizes]


def test_swaps_of_quotas_are_counted_exactly() -> None:
    for family, sets in SMALL:
        counted = log_swaps_of(problem_of(family, sets))
        true = [each for each in most_swaps(sets) if each]
        if counted is None:  # all sets are feasible
            assert len(sets) == comb(family.n_arms, family.k)
            continue
        assert np.exp(counted) == pytest.approx(true)
        assert all(found >= log(number) for found, number in zip(counted, true, strict=True))


def test_swaps_of_other_families_are_not_undercounted() -> None:
    for family, sets in [*random_matroids(40, 1), square_matching(3)]:
        counted = log_swaps_of(problem_of(family, sets))
        true = most_swaps(sets)
        if counted is not None:
            assert all(exp(found) >= n - 1e-9 for found, n in zip(counted, true, strict=False))
            assert not any(true[len(counted) :])


MANY = Quotas("a" * 100 + "b" * 100, {"a": (0, 9)}, k=10)
SIZES = [size for size in range(4, 10) for _ in range(size)]  # six groups, all different
VARIED = Quotas(SIZES, {size: (0, size - 1) for size in range(4, 10)}, k=10)


@pytest.mark.parametrize("family", [MANY, VARIED])
def test_too_many_swaps_are_not_counted_one_by_one(family: Quotas) -> None:
    counted = log_swaps_of(Problem(family.n_arms, 10, GOAL, constraint=family))
    assert counted == tuple(log_swaps(family.n_arms, 10).tolist())


def test_the_exchange_graph_has_the_feasible_swaps_of_single_arms() -> None:
    for family, sets in MATROIDS:
        assert isinstance(family, MatroidConstraint)
        n = problem_of(family, sets).n_arms
        dual = complement_of(family, n)
        assert isinstance(dual, MatroidConstraint)
        known = set(sets)
        for chosen in sets:
            found = np.asarray(family.exchangeable(mask_of(chosen, n)))
            for j, i in product(range(n), repeat=2):
                feasible = j not in chosen and i in chosen and chosen - {i} | {j} in known
                assert found[j, i] == feasible
            turned = dual.exchangeable(~mask_of(chosen, n))
            assert np.array_equal(turned, found.T)


def test_two_sets_of_a_matroid_exchange_arms_in_both_directions() -> None:
    """What the rule for arms that are out rests on."""
    for family, sets in MATROIDS:
        known = set(sets)
        assert isinstance(family, MatroidConstraint)
        for best, chosen in product(sets, repeat=2):
            for j in best - chosen:
                assert any(
                    chosen - {i} | {j} in known and best - {j} | {i} in known for i in chosen - best
                )
            for i in chosen - best:
                assert any(
                    chosen - {i} | {j} in known and best - {j} | {i} in known for j in best - chosen
                )


def test_regret_is_at_most_the_largest_matching_of_feasible_swaps() -> None:
    rng = np.random.default_rng(0)
    for family, sets in MATROIDS:
        n = problem_of(family, sets).n_arms
        assert isinstance(family, MatroidConstraint)
        for theta in (rng.random(n), rng.integers(0, 3, n) / 2):  # several best sets, too
            best = max(theta[list(each)].sum() for each in sets)
            for chosen in sets:
                feasible = family.exchangeable(mask_of(chosen, n))
                gaps = np.where(feasible, theta[:, None] - theta, 0.0)
                assert largest_matching(gaps) >= best - theta[list(chosen)].sum() - 1e-12


def test_matchings_are_not_linked_by_swaps_of_single_arms() -> None:
    """So the theorem does not hold for them, and pairs refuse them."""
    family, sets = square_matching(3)
    assert not isinstance(family, MatroidConstraint)
    known = set(sets)
    chosen = sets[0]
    assert not any(chosen - {i} | {j} in known for i in chosen for j in set(range(9)) - chosen)
    with pytest.raises(InvalidInput, match="it has no `exchangeable`"):
        ExchangeGraph(problem_of(family, sets))


def test_the_best_set_by_an_order_is_best_for_every_weight_in_that_order() -> None:
    rng = np.random.default_rng(3)
    for family, sets in MATROIDS:
        problem = problem_of(family, sets)
        if problem.constraint is None:
            continue
        weights = rng.integers(0, 3, problem.n_arms)  # many ties
        order = np.lexsort((rng.random(problem.n_arms), -weights))
        chosen = np.flatnonzero(ExchangeGraph(problem).first(order))
        assert weights[chosen].sum() == max(weights[list(each)].sum() for each in sets)


def test_the_largest_gain_is_that_of_all_feasible_swaps() -> None:
    rng = np.random.default_rng(4)
    for family, sets in MATROIDS:
        problem = problem_of(family, sets)
        if problem.constraint is None:
            continue
        graph, n = ExchangeGraph(problem), problem.n_arms
        chosen = sets[int(rng.integers(len(sets)))]
        gains = rng.normal(size=(5, n))
        movable = rng.random(n) < 0.7
        sums, moved = graph.largest(mask_of(chosen, n), movable, gains)
        for row, total, arms in zip(gains, sums, moved, strict=True):
            swaps = [
                other ^ chosen for other in sets if (other ^ chosen) <= set(np.flatnonzero(movable))
            ]
            assert total == pytest.approx(max(row[list(each)].sum() for each in swaps))
            assert frozenset(np.flatnonzero(arms).tolist()) in swaps


class SecondBest(Quotas):
    """An oracle that is wrong."""

    def best_of_each(self, weights: np.ndarray) -> np.ndarray:
        return super().best_of_each(-weights)


def test_an_oracle_that_is_wrong_is_noticed() -> None:
    graph = ExchangeGraph(Problem(4, 2, GOAL, constraint=SecondBest("aabb", {"a": (1, 1)}, k=2)))
    chosen = np.array([True, False, True, False])
    with pytest.raises(InvalidInput, match="not the best one"):
        graph.largest(chosen, np.ones(4, dtype=bool), -np.ones((1, 4)))
    with pytest.raises(InvalidInput, match="not the best one"):
        graph.largest(chosen, np.array([True, True, False, False]), np.zeros((1, 4)))


DESIGNS: list[tuple[Quotas | Matroid, tuple[float, ...], int]] = [
    (Quotas("aab", {"a": (1, 1)}, k=2), (0.7, 0.3, 0.5), 6),
    (Quotas("aabb", {"a": (1, 1)}, k=2), (0.65, 0.3, 0.65, 0.3), 5),
    (Quotas("aabb", {"a": (1, 2)}, k=3), (0.6, 0.2, 0.9, 0.5), 5),
]


@pytest.mark.parametrize(("family", "means", "pulls"), DESIGNS)
def test_the_best_set_by_fixed_samples_fails_as_seldom_as_the_design_says(
    family: Quotas, means: tuple[float, ...], pulls: int
) -> None:
    """Over all outcomes; every tie goes against the choice."""
    sets = bases_of(family)
    problem = problem_of(family, sets)
    theta = np.array(means)
    totals = [theta[list(each)].sum() for each in sets]
    for epsilon in sorted({(max(totals) - each) / family.k - 1e-9 for each in totals} - {-1e-9}):
        if epsilon <= 0:
            continue
        failed = 0.0
        for sums in product(range(pulls + 1), repeat=len(means)):
            values = [sum(sums[arm] for arm in each) for each in sets]
            ahead = max(values)
            worst = min(
                total for total, value in zip(totals, values, strict=True) if value == ahead
            )
            if (max(totals) - worst) / family.k > epsilon:
                failed += prod(binom.pmf(s, pulls, m) for s, m in zip(sums, means, strict=True))
        bound = failure(theta.size, family.k, epsilon, pulls, Binary(), log_swaps_of(problem))
        assert failed <= bound + 1e-12
        assert bound < 1


def test_ties_count_in_full_where_sets_are_compared() -> None:
    sizes = np.array([1, 2, 3])
    for pulls in (7, 30):
        found = np.exp(log_swap_failure(sizes, 0.4, pulls, Binary(), full_ties=True))
        true = binom.sf(sizes * pulls - 1, 2 * sizes * pulls, (1 - 0.4 / sizes) / 2)
        assert found == pytest.approx(true, rel=1e-6)
    assert (log_swap_failure(sizes, 0.4, 2, Binary(), full_ties=True)[0]) > log(
        binom.sf(1, 4, 0.3)
    )  # too few pulls for the theorem: Hoeffding's bound counts


@pytest.mark.parametrize("rewards", [Binary(), Bounded(), SubGaussian(0.5)])
def test_the_design_of_a_family_is_the_least_that_suffices(
    rewards: Binary | Bounded | SubGaussian,
) -> None:
    family = Quotas("aabbb", {"a": (1, 1), "b": (1, 1)}, k=2)
    swaps = log_swaps_of(Problem(5, 2, GOAL, constraint=family))
    unit = rewards.unit()
    found = fixed_design(5, 2, 0.2, 0.05, unit, swaps)
    assert failure(5, 2, 0.2, found, unit, swaps) <= 0.05
    assert failure(5, 2, 0.2, found - 1, unit, swaps) > 0.05


def test_no_set_of_a_family_loses_more_than_its_largest_swap() -> None:
    family = Quotas("aabb", {"a": (1, 1), "b": (2, 2)}, k=3)
    swaps = log_swaps_of(Problem(4, 3, GOAL, constraint=family))
    assert fixed_design(4, 3, 1 / 3, 0.05, Binary(), swaps) == 1
    assert fixed_design(4, 3, 0.25, 0.05, Binary(), swaps) > 1
