"""Prices: their surplus against all sets, exactly; the lemma by brute force; bounds by enumeration.

docs/prices.md has the lemmas and theorems."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from attack_scale import number_of_runs
from listed_families import Family, listed_families
from scipy.stats import binom, binomtest

from shortlist.algorithms import certified as algorithms
from shortlist.algorithms.certified import certified
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.frame import fixed_design, log_swaps_of
from shortlist.certificates.split.bound import Certificate, Holdout, bound_by_swaps, declare
from shortlist.certificates.under_constraints import largest_gain, reference_prices, surplus
from shortlist.constraints import Constraint, Laminar, Matching, Matroid, Quotas
from shortlist.exploration import prices
from shortlist.exploration.prices import ArmBeliefs, Prices, best_prices, in_units
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary, SubGaussian
from shortlist.search import Answer, Pulls, Rewards, advance

DELTA = 0.3
EXACT = (Laminar, Matroid)


def exact(values: FloatArray) -> list[Fraction]:
    return [Fraction(each) for each in values.tolist()]


def total(values: list[Fraction], mask: BoolArray) -> Fraction:
    return sum((values[arm] for arm in np.flatnonzero(mask)), Fraction(0))


def exact_surplus(family: Family, chosen: BoolArray, prices: FloatArray) -> Fraction:
    values = exact(prices)
    return max(total(values, mask) for mask in family.sets) - total(values, chosen)


def believed(rng: np.random.Generator, n: int, points: int = 60) -> ArmBeliefs:
    """Posteriors of all shapes: narrow and wide ones, some equal."""
    grid = (np.arange(points) + 0.5) / points
    centres = rng.choice(rng.uniform(0, 1, 4), n) + rng.choice([0.0, 0.03], n)
    widths = rng.choice([0.005, 0.05, 0.3], n)
    weights = np.exp(-(((grid - centres[:, None]) / widths[:, None]) ** 2) / 2) + 1e-12
    return ArmBeliefs(grid, weights / weights.sum(axis=1, keepdims=True), (0.0, 1.0))


def adversarial(rng: np.random.Generator, n: int) -> FloatArray:
    """Prices with ties, at the ends, far apart, or in the last digits."""
    kind = rng.integers(4)
    if kind == 0:
        return np.asarray(rng.integers(0, 3, n) / 2, dtype=np.float64)
    if kind == 1:
        return in_units(rng.uniform(0, 1, n))
    if kind == 2:
        return np.asarray(rng.choice([0.0, 1.0], n))
    return np.asarray(0.5 + 2.0**-40 * rng.integers(-2, 3, n), dtype=np.float64)


def prices_of(family: Family, prices: FloatArray, rng: np.random.Generator) -> Prices:
    """The prices as such; of a matching with any prices of rows and columns."""
    if not isinstance(family.constraint, Matching):
        return Prices(prices)
    rows, columns = (
        rng.integers(-8, 9, size) / 8
        for size in (family.constraint.height, family.constraint.width)
    )
    return Prices(prices, rows, columns)


def test_the_surplus_is_never_less_than_that_of_any_set() -> None:
    rng = np.random.default_rng(0)
    for family in listed_families(0):
        n = family.sets.shape[1]
        chosen = family.sets[rng.integers(len(family.sets))]
        prices = adversarial(rng, n)
        found = Fraction(surplus(family.constraint, chosen, prices_of(family, prices, rng)))
        true = exact_surplus(family, chosen, prices)
        assert found >= true
        if isinstance(family.constraint, EXACT):
            assert found <= true * (1 + Fraction(1, 2**50))


def test_with_prices_of_rows_and_columns_only_cutting_costs() -> None:
    family = Matching([0, 0, 1, 1], [0, 1, 0, 1])
    chosen = np.array([True, False, False, True])
    rows, columns = np.array([0.75, 0.25]), np.array([0.5, -0.5])
    sums = rows[family.row_of] + columns[family.column_of]  # 1.25, .25, .75, -.25
    assert surplus(family, chosen, Prices(sums, rows, columns)) == 0
    cut = np.clip(sums, 0, 1)
    assert surplus(family, chosen, Prices(cut, rows, columns)) == pytest.approx(0.25)
    with pytest.raises(ValueError, match="multiples"):
        surplus(family, chosen, Prices(cut, rows / 3, columns))


def test_no_set_loses_more_than_the_surplus_and_the_distances_beyond_the_prices() -> None:
    rng = np.random.default_rng(1)
    for family in listed_families(1):
        n = family.sets.shape[1]
        theta = exact(adversarial(rng, n) if rng.random() < 0.5 else rng.uniform(-1, 2, (n,)))
        prices = adversarial(rng, n)
        for chosen in family.sets[rng.permutation(len(family.sets))[:3]]:
            regret = max(total(theta, mask) for mask in family.sets) - total(theta, chosen)
            beyond = Fraction(0)
            for inside, mean, price in zip(chosen, theta, exact(prices), strict=True):
                beyond += max(Fraction(0), price - mean if inside else mean - price)
            given = surplus(family.constraint, chosen, prices_of(family, prices, rng))
            assert regret <= Fraction(given) + beyond


def test_the_prices_that_are_found_have_no_surplus() -> None:
    rng = np.random.default_rng(2)
    for number, family in enumerate(listed_families(2, number=10)):
        if isinstance(family.constraint, Quotas) and number % 3:
            continue
        beliefs = believed(rng, family.sets.shape[1])
        means = beliefs.weights @ beliefs.grid
        chosen = family.sets[int(np.argmax(family.sets @ means))]
        found = best_prices(family.constraint, chosen, beliefs)
        assert np.array_equal(found.of_arms, in_units(found.of_arms))
        assert found.of_arms.min() >= 0
        assert found.of_arms.max() <= 1
        given = surplus(family.constraint, chosen, found)
        if isinstance(family.constraint, EXACT):
            assert given == 0
        else:  # prices of pairs may be cut, others are rounded
            assert given <= 0.02 + (0.5 if isinstance(family.constraint, Matching) else 0.0)


def expected_charge(beliefs: ArmBeliefs, chosen: BoolArray, prices: FloatArray) -> float:
    beyond = beliefs.grid - prices[:, None]
    wrong = np.where(chosen[:, None], -beyond, beyond)
    return float((np.maximum(wrong, 0) * beliefs.weights).sum())


def test_prices_of_quotas_have_the_least_expected_charge() -> None:
    """Against all prices on a coarse grid at which the set is best."""
    rng = np.random.default_rng(3)
    levels = np.linspace(0.05, 0.95, 10)
    for limits in (((1, 1), (1, 1)), ((0, 1), (0, 2)), ((1, 2), (0, 2)), ((0, 2), (2, 2))):
        k = 2 + (limits == ((0, 2), (2, 2)))
        family = Quotas([0, 0, 1, 1], dict(enumerate(limits)), k=k)
        for _ in range(5):
            beliefs = believed(rng, 4)
            chosen = np.isin(np.arange(4), family.best(beliefs.weights @ beliefs.grid))
            found = best_prices(family, chosen, beliefs).of_arms
            charges = [
                expected_charge(beliefs, chosen, np.array([a, a, b, b]))
                for a, b in product(levels, levels)
                if surplus(family, chosen, Prices(np.array([a, a, b, b]))) == 0
            ]
            assert expected_charge(beliefs, chosen, found) <= min(charges) + 1 / 60


def test_means_that_are_known_are_charged_nothing() -> None:
    """By coordinates, prices of rows and columns would stop at corners."""
    rng = np.random.default_rng(4)
    grid = np.linspace(0, 1, 201)
    family = Matching(np.repeat(range(8), 8).tolist(), np.tile(range(8), 8).tolist())
    for _ in range(5):
        means = rng.uniform(0, 1, 64)
        weights = np.exp(-(((grid - means[:, None]) / 0.004) ** 2) / 2)
        beliefs = ArmBeliefs(grid, weights / weights.sum(axis=1, keepdims=True), (0.0, 1.0))
        chosen = np.isin(np.arange(64), family.best(means))
        found = best_prices(family, chosen, beliefs)
        charged = expected_charge(beliefs, chosen, found.of_arms)
        assert charged + surplus(family, chosen, found) < 0.1


def outcomes(theta: FloatArray, pulls: IntArray) -> tuple[FloatArray, FloatArray]:
    """All sums of 0/1 rewards, and the probability of each: (outcomes, arms), (outcomes,)."""
    counts = pulls.tolist()
    each = [binom.pmf(np.arange(n + 1), n, mean) for n, mean in zip(counts, theta, strict=True)]
    sums = np.array(list(product(*(range(n + 1) for n in counts))), dtype=np.float64)
    chances = np.array([math.prod(rows) for rows in product(*(row.tolist() for row in each))])
    return sums, chances


def certificate_of(
    family: Family, chosen: BoolArray, prices: Prices, rng: np.random.Generator, reach: float
) -> Certificate:
    n = chosen.size
    pulls = rng.integers(1, 4, n)
    strength = float(rng.uniform(1, 8))
    slope = strength * rng.choice([0.3, 1.0], n)
    start = np.where(rng.random(n) < 0.5, -np.inf, rng.integers(0, 2, n))
    return declare(
        chosen,
        prices.of_arms,
        pulls,
        strength=strength,
        delta=DELTA,
        reach=reach,
        rewards=Binary(),
        slope=slope,
        start=start.astype(np.float64),
        surplus=surplus(family.constraint, chosen, prices),
    )


def tiny_families(seed: int) -> list[Family]:
    """Families of at most six arms, so that all outcomes can be listed."""
    every = [each for each in listed_families(seed, 20) if each.sets.shape[1] <= 6]
    rng = np.random.default_rng(seed)
    return [every[place] for place in rng.permutation(len(every))[:40]]


def worst_means(prices: FloatArray, chosen: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Means on the wrong side of their prices by the same or by different distances."""
    gap = rng.choice([0.05, 0.2, 0.5]) * rng.choice([1.0, 0.0], chosen.size, p=[0.7, 0.3])
    means: FloatArray = np.clip(np.where(chosen, prices - gap, prices + gap), 0, 1)
    return means


@pytest.mark.parametrize("seed", range(2))
def test_the_bound_with_prices_fails_with_probability_delta_at_most(seed: int) -> None:
    rng = np.random.default_rng(seed)
    largest = 0.0
    for family in tiny_families(seed):
        chosen = family.sets[rng.integers(len(family.sets))]
        prices = prices_of(family, adversarial(rng, chosen.size), rng)
        allowed = family.k * float(rng.uniform(0.3, 1.5))
        exceeded = surplus(family.constraint, chosen, prices)
        if exceeded >= allowed:
            continue  # nothing is drafted then
        certificate = certificate_of(family, chosen, prices, rng, allowed - exceeded)
        theta = worst_means(prices.of_arms, chosen, rng)
        regret = float((family.sets @ theta).max() - theta[chosen].sum())
        sums, chances = outcomes(theta, certificate.pulls)
        bounds = np.array([certificate.bound(row) for row in sums]) * family.k
        failed = float(chances[(bounds <= allowed) & (bounds < regret - 1e-9)].sum())
        assert failed <= DELTA
        largest = max(largest, failed)
    assert largest > 0  # some could have failed


@pytest.mark.parametrize("seed", range(2))
def test_the_bound_by_swaps_is_smaller_and_fails_with_probability_delta_at_most(seed: int) -> None:
    rng = np.random.default_rng(10 + seed)
    largest, smaller = 0.0, 0
    for family in tiny_families(10 + seed):
        chosen = family.sets[rng.integers(len(family.sets))]
        prices = prices_of(family, adversarial(rng, chosen.size), rng)
        certificate = certificate_of(family, chosen, prices, rng, Binary().widest_gap)
        if math.prod((certificate.pulls + 1).tolist()) > 500:
            continue
        theta = worst_means(prices.of_arms, chosen, rng)
        regret = float((family.sets @ theta).max() - theta[chosen].sum())
        sums, chances = outcomes(theta, certificate.pulls)
        holdout = Holdout(chosen.size, 0.0)
        holdout.pulls = certificate.pulls
        failed = 0.0
        for row, chance in zip(sums, chances, strict=True):
            holdout.sums, holdout.squares = row, row
            bound = bound_by_swaps(certificate, holdout, family.constraint)
            assert bound <= certificate.bound(row) + 1e-9
            smaller += bound < certificate.bound(row) - 1e-9
            failed += float(chance) * (family.k * bound < regret - 1e-9)
        assert failed <= DELTA
        largest = max(largest, failed)
    assert smaller > 0
    assert largest > 0


@pytest.mark.parametrize("seed", range(2))
def test_the_bound_by_swaps_of_perfect_matchings_holds_with_the_reach_epsilon(seed: int) -> None:
    rng = np.random.default_rng(20 + seed)
    sets = np.array([[True, False, False, True], [False, True, True, False]])
    family = Family(Matching([0, 0, 1, 1], [0, 1, 0, 1]), sets)
    assert isinstance(family.constraint, Matching)
    largest = 0.0
    for _ in range(150):
        chosen = family.sets[rng.integers(2)]
        rows, columns = rng.integers(0, 5, (2, 2)) / 8 + rng.choice([0.0, 0.5], (2, 1))
        made = rows[family.constraint.row_of] + columns[family.constraint.column_of]
        prices = Prices(np.clip(made, 0, 1), rows, columns)
        reference = reference_prices(family.constraint, chosen, prices)
        assert reference is not None
        assert (family.sets @ reference).min() >= reference[chosen].sum() - 1e-12
        allowed = float(rng.uniform(0.6, 2.0))
        certificate = certificate_of(family, chosen, prices, rng, allowed)
        theta = worst_means(prices.of_arms, chosen, rng)
        regret = float((family.sets @ theta).max() - theta[chosen].sum())
        sums, chances = outcomes(theta, certificate.pulls)
        holdout = Holdout(4, 0.0)
        holdout.pulls = certificate.pulls
        failed = 0.0
        for row, chance in zip(sums, chances, strict=True):
            holdout.sums, holdout.squares = row, row
            bound = 2 * bound_by_swaps(certificate, holdout, family.constraint, reference)
            failed += float(chance) * (bound <= allowed and bound < regret - 1e-9)
        assert failed <= DELTA
        largest = max(largest, failed)
    assert largest > 0
    other = Quotas([0, 0, 1, 1], {0: (1, 1)}, k=2)
    assert reference_prices(other, chosen, Prices(prices.of_arms)) is None


def test_the_largest_gain_is_that_over_all_sets() -> None:
    rng = np.random.default_rng(5)
    for family in listed_families(5, 20):
        chosen = family.sets[rng.integers(len(family.sets))]
        prices = adversarial(rng, chosen.size)
        charges = rng.choice([0.0, 0.1, 1 / 3], chosen.size)
        values, charged = exact(prices), exact(charges)
        gains = [
            total(values, mask) - total(values, chosen) + total(charged, mask ^ chosen)
            for mask in family.sets
        ]
        found = largest_gain(family.constraint, chosen, prices, charges)
        assert 0 <= Fraction(found) - max(gains) <= Fraction(1, 10**9)


def test_of_a_matching_with_huge_charges_nothing_is_claimed() -> None:
    family = Matching([0, 0, 1, 1], [0, 1, 0, 1])
    chosen = np.array([True, False, False, True])
    charges = np.array([0.0, 1e4, 0.0, 0.0])
    assert largest_gain(family, chosen, np.full(4, 0.5), charges) == math.inf


def test_prices_of_rewards_without_a_range_are_boundaries_too() -> None:
    chosen = np.array([True, False, True, False])
    family = Quotas(["a", "a", "b", "b"], {"a": (1, 1)}, k=2)
    prices = Prices(np.array([3.0, 3.0, -2.0, -2.0]))
    assert surplus(family, chosen, prices) == 0
    certificate = declare(
        chosen,
        prices.of_arms,
        np.full(4, 100),
        strength=5.0,
        delta=0.1,
        reach=math.inf,
        rewards=SubGaussian(0.5),
    )
    assert certificate.bound(np.array([310.0, 290.0, -190.0, -210.0])) < 0.4
    assert certificate.bound(np.array([290.0, 310.0, -190.0, -210.0])) > 0.25


def driven(
    constraint: Constraint,
    theta: FloatArray,
    k: int,
    epsilon: float,
    delta: float,
    seed: int,
    budget: int | None = None,
) -> tuple[Answer, int]:
    """A run of `certified` on 0/1 rewards, and its pulls."""
    goal = FixedConfidence(epsilon, delta, budget)
    problem = Problem(theta.size, k, goal, Binary(), constraint=constraint)
    rng = np.random.default_rng([seed, 1])
    search = certified(problem, np.random.default_rng(seed), certificate="split")
    turn = advance(search, None)
    spent = 0
    while isinstance(turn, Pulls):
        sums = rng.binomial(turn.times, theta[turn.arms]).astype(np.float64)
        spent += int(turn.times.sum())
        turn = advance(search, Rewards(sums, sums))
    return turn, spent


def lost(constraint: Constraint, theta: FloatArray, answer: Answer) -> float:
    best = np.asarray(constraint.best(theta))
    return float(theta[best].sum() - theta[answer.top].sum()) / answer.top.size


def shuffled_quotas(seed: int, low: int, high: int) -> tuple[Quotas, FloatArray]:
    """Forty arms in four groups with levels of their own, shuffled."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(range(4), 10))
    theta = 0.2 + 0.15 * group + rng.uniform(0, 0.3, 40)
    return Quotas(group.tolist(), dict.fromkeys(range(4), (low, high)), k=16), theta


@pytest.mark.parametrize(("low", "high"), [(4, 4), (2, 6), (0, 10)])
def test_a_search_under_quotas_returns_an_allowed_set_and_a_bound_within_epsilon(
    low: int, high: int
) -> None:
    for seed in range(2):
        family, theta = shuffled_quotas(seed, low, high)
        answer, _ = driven(family, theta, 16, 0.1, 0.1, seed)
        counts = np.bincount(np.array(family.group_of)[answer.top], minlength=4)
        assert counts.min() >= low
        assert counts.max() <= high
        assert answer.regret_bound is not None
        assert answer.regret_bound <= 0.1
        assert answer.evidence["certificate"] == "split"
        assert lost(family, theta, answer) <= 0.1


def test_a_search_for_a_matching_ends() -> None:
    rng = np.random.default_rng(0)
    place = rng.permutation(36)
    family = Matching((place // 6).tolist(), (place % 6).tolist())
    theta = rng.uniform(0, 1, 36)
    answer, _ = driven(family, theta, 6, 0.1, 0.1, 0)
    assert answer.regret_bound is not None
    assert answer.regret_bound <= 0.1
    assert lost(family, theta, answer) <= 0.1


def test_a_budget_ends_with_the_bound_by_swaps() -> None:
    family, theta = shuffled_quotas(0, 2, 6)
    answer, spent = driven(family, theta, 16, 0.01, 0.1, 0, budget=4000)
    assert spent <= 4000
    assert answer.regret_bound is not None
    assert lost(family, theta, answer) <= answer.regret_bound < 0.5
    assert answer.confidence == 0.9


def test_where_no_prices_are_good_the_search_gives_up_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family, theta = shuffled_quotas(0, 2, 6)
    monkeypatch.setattr(prices, "best_prices", lambda *given: Prices(np.full(40, 0.25)))
    monkeypatch.setattr(algorithms, "_fallback", lambda *given: None)
    answer, _ = driven(family, theta, 16, 0.05, 0.1, 0)
    assert "gave up" in answer.evidence
    assert answer.regret_bound is not None
    assert answer.regret_bound > 0.05


def test_where_no_prices_are_good_complete_samples_prove_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family, theta = shuffled_quotas(0, 2, 6)
    monkeypatch.setattr(prices, "best_prices", lambda *given: Prices(np.full(40, 0.25)))
    answer, spent = driven(family, theta, 16, 0.1, 0.1, 0)
    assert answer.evidence["fallback design"]
    assert answer.regret_bound == 0.1
    problem = Problem(40, 16, FixedConfidence(0.1, 0.1), Binary(), constraint=family)
    design = fixed_design(40, 16, 0.1, 0.1, Binary(), log_swaps_of(problem))
    assert 40 * design <= spent <= 1.5 * 40 * design


@pytest.mark.rates
@pytest.mark.parametrize("kind", ["ties", "just beyond", "matching"])
def test_searches_fail_with_probability_delta_at_most(kind: str) -> None:
    runs = number_of_runs(10, 2000)
    failed = 0
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        if kind == "matching":
            place = rng.permutation(16)
            family: Constraint = Matching((place // 4).tolist(), (place % 4).tolist())
            theta = 0.5 + 0.11 * rng.choice([-1.0, 1.0], 16)
            k, epsilon = 4, 0.1
        else:
            group = rng.permutation(np.repeat(range(5), 8))
            family = Quotas(group.tolist(), dict.fromkeys(range(5), (1, 3)), k=10)
            gap = 0.0 if kind == "ties" else 0.12
            theta = 0.5 + gap * rng.choice([0.0, 1.0], 40)
            k, epsilon = 10, 0.1
        answer, _ = driven(family, theta, k, epsilon, DELTA, seed)
        assert answer.regret_bound is not None
        failed += lost(family, theta, answer) > answer.regret_bound
    assert binomtest(failed, runs, DELTA, alternative="greater").pvalue > 1e-4
