"""Families of sets against all their sets; the bound for any family against exact probabilities."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import combinations, product
from math import comb, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shortlist
from shortlist.constraints import Constraint, Laminar, Matching, Matroid, Quotas
from shortlist.errors import InvalidInput, UnsupportedGoal

DELTA = 0.3
WEIGHTS = st.floats(-5, 5, width=32)


def sets_of(n: int, k: int, feasible: Callable[[Collection[int]], bool]) -> list[tuple[int, ...]]:
    return [each for each in combinations(range(n), k) if feasible(each)]


def assert_best(family: Constraint, sets: list[tuple[int, ...]], weights: list[float]) -> None:
    found = np.asarray(family.best(np.array(weights))).tolist()
    assert tuple(found) in sets
    totals = [sum(weights[arm] for arm in each) for each in sets]
    assert sum(weights[arm] for arm in found) == pytest.approx(max(totals))


@given(st.data())
def test_quotas_find_a_best_set(data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.sampled_from("abc"), min_size=3, max_size=7))
    quotas = data.draw(
        st.dictionaries(
            st.sampled_from(sorted(set(groups))),
            st.tuples(st.integers(0, 2), st.integers(0, 3)).map(lambda two: (min(two), max(two))),
        )
    )
    k = data.draw(st.integers(1, len(groups) - 1))
    weights = data.draw(st.lists(WEIGHTS, min_size=len(groups), max_size=len(groups)))

    def feasible(arms: Collection[int]) -> bool:
        chosen = [groups[arm] for arm in arms]
        return all(least <= chosen.count(name) <= most for name, (least, most) in quotas.items())

    sets = sets_of(len(groups), k, feasible)
    if not sets:
        with pytest.raises(InvalidInput):
            Quotas(groups, quotas, k=k)
    else:
        assert_best(Quotas(groups, quotas, k=k), sets, weights)


@given(st.data())
def test_groups_inside_groups_find_a_best_set(data: st.DataObject) -> None:
    groups = {"left": [0, 1, 2, 3], "corner": [0, 1], "edge": [2], "right": [4, 5]}
    ranges = st.tuples(st.integers(0, 2), st.integers(0, 3)).map(lambda two: (min(two), max(two)))
    quotas = data.draw(st.dictionaries(st.sampled_from(sorted(groups)), ranges))
    k = data.draw(st.integers(1, 6))
    weights = data.draw(st.lists(WEIGHTS, min_size=7, max_size=7))

    def feasible(arms: Collection[int]) -> bool:
        counts = {name: len(set(inside) & set(arms)) for name, inside in groups.items()}
        return all(low <= counts[name] <= high for name, (low, high) in quotas.items())

    sets = sets_of(7, k, feasible)
    if not sets:
        with pytest.raises(InvalidInput):
            Laminar(groups, quotas, n_arms=7, k=k)
    else:
        assert_best(Laminar(groups, quotas, n_arms=7, k=k), sets, weights)


@given(st.data())
def test_matchings_find_a_best_set(data: st.DataObject) -> None:
    every = list(product(range(3), range(3)))
    pairs = data.draw(st.lists(st.sampled_from(every), min_size=2, unique=True))
    rows, columns = zip(*pairs, strict=True)
    k = data.draw(st.integers(1, min(len(set(rows)), len(set(columns)))))
    weights = data.draw(st.lists(WEIGHTS, min_size=len(pairs), max_size=len(pairs)))

    def feasible(arms: Collection[int]) -> bool:
        return len({rows[arm] for arm in arms}) == k == len({columns[arm] for arm in arms})

    sets = sets_of(len(pairs), k, feasible)
    if not sets:
        with pytest.raises(InvalidInput, match="share no row or column"):
            Matching(rows, columns, k=k)
    else:
        assert_best(Matching(rows, columns, k=k), sets, weights)


EDGES = list(combinations(range(4), 2))  # of the complete graph on four points


def is_forest(arms: Collection[int]) -> bool:
    part = list(range(4))
    for arm in arms:
        one, other = (part[point] for point in EDGES[arm])
        if one == other:
            return False
        part = [one if each == other else each for each in part]
    return True


@given(st.lists(WEIGHTS, min_size=6, max_size=6))
def test_a_matroid_finds_a_best_basis(weights: list[float]) -> None:
    assert_best(Matroid(is_forest, 6, k=3), sets_of(6, 3, is_forest), weights)


WRONG: Any = {"a": 2}
PAIRS = [(row, column) for row in range(2) for column in range(2)]
FAMILIES: dict[str, tuple[Constraint, list[tuple[int, ...]]]] = {  # with all their sets
    "quotas": (Quotas("aabb", {"a": (1, 1)}, k=2), [(0, 2), (0, 3), (1, 2), (1, 3)]),
    "matching": (Matching(*zip(*PAIRS, strict=True)), [(0, 3), (1, 2)]),
    "all sets": (Quotas("aaaa", {}, k=2), list(combinations(range(4), 2))),
}


def outcomes(pulls: int, means: tuple[float, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
    """All numbers of successes that are possible, with their probabilities."""
    for wins in product(range(pulls + 1), repeat=len(means)):
        chance = prod(
            comb(pulls, won) * mean**won * (1 - mean) ** (pulls - won)
            for won, mean in zip(wins, means, strict=True)
        )
        if chance > 0:
            yield wins, chance


INSTANCES = list(product((0.0, 0.45, 0.55, 1.0), repeat=4))[::23]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_bound_is_too_small_with_probability_delta_at_most(name: str) -> None:
    assert largest_failure(*FAMILIES[name]) <= DELTA


def test_exact_probabilities_see_a_bound_that_is_too_small() -> None:
    assert largest_failure(*FAMILIES["matching"], shrink=0.2) > DELTA


def largest_failure(family: Constraint, sets: list[tuple[int, ...]], shrink: float = 1.0) -> float:
    """The largest exact probability, over means, that the bound of the worst set is too small."""
    bounds: dict[tuple[int, ...], float] = {}
    worst = 0.0
    for means in INSTANCES:
        values = {each: sum(means[arm] for arm in each) for each in sets}
        top = min(values, key=lambda each: values[each])
        regret = (max(values.values()) - values[top]) / 2
        failure = 0.0
        for wins, chance in outcomes(3, means):
            key = (*top, *wins)
            if key not in bounds:
                bounds[key] = shortlist.certify(
                    top, [3] * 4, wins, fresh=True, delta=DELTA, rewards="binary", constraint=family
                )
            if shrink * bounds[key] < regret - 1e-12:
                failure += chance
        worst = max(worst, failure)
    return worst


def test_without_a_boundary_all_sets_are_compared() -> None:
    sums = [330, 310, 120, 90, 100]
    free = shortlist.certify([0, 1], [400] * 5, sums, fresh=True)
    quotas = Quotas("abbbb", {"a": (1, 1)}, k=2)
    assert 0 <= shortlist.certify([0, 1], [400] * 5, sums, fresh=True, constraint=quotas) <= free
    assert free < 0.05


def test_the_bound_scales_and_shifts_with_the_rewards() -> None:
    pulls, sums = [40, 50, 60], np.array([30.0, 20.0, 10.0])
    unit = shortlist.certify([0], pulls, sums, fresh=True)
    moved = shortlist.certify(
        [0], pulls, 4 * sums + 7 * np.array(pulls), fresh=True, rewards=(7, 11)
    )
    assert moved == pytest.approx(4 * unit, rel=1e-9)


class Liar:
    """A constraint that does not answer with arms."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def best(self, weights: Any) -> Any:
        return self.answer


@pytest.mark.parametrize("answer", [[0, 0], [0], [0, 9], [-1, 0], "ab", None, [0.5, 1.5], [[0, 1]]])
def test_an_answer_that_is_no_set_of_k_arms_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidInput, match="the constraint's `best` returned"):
        shortlist.certify([0, 1], [9] * 4, [5] * 4, fresh=True, constraint=Liar(answer))


def test_a_set_that_breaks_the_constraint_is_refused() -> None:
    quotas = Quotas("aabb", {"a": (1, 1)}, k=2)
    with pytest.raises(InvalidInput, match="the constraint does not allow"):
        shortlist.certify([0, 1], [9] * 4, [5] * 4, fresh=True, constraint=quotas)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quotas("aabb", {"c": (0, 1)}, k=2), "names group 'c', but the groups are"),
        (lambda: Quotas("aabb", {"a": (3, 4)}, k=2), "at least 3, but it has 2 arms"),
        (lambda: Quotas("aabb", {"a": (2, 1)}, k=2), "most quota of group 'a'` is 1"),
        (lambda: Quotas("aabb", WRONG, k=2), "must be \\(least, most\\)"),
        (lambda: Quotas("aabb", {"a": (0, 1), "b": (0, 0)}, k=2), "`k` is 2, but the quotas allow"),
        (
            lambda: Laminar({"x": [0, 1, 2], "y": [2, 3]}, {}, n_arms=5, k=2),
            "overlap, but one must lie in the other",
        ),
        (
            lambda: Laminar({"x": [0, 1], "y": [0]}, {"x": (0, 0), "y": (1, 1)}, n_arms=4, k=1),
            "group 'x' can have at most 0 chosen arms, but needs at least 1",
        ),
        (
            lambda: Quotas("aabb", {"a": (1, 2), "b": (1, 2)}, k=1),
            "the whole choice can have at most 1 chosen arms, but needs at least 2",
        ),
        (lambda: Matching("ab", "xyz"), "both need one per arm"),
        (lambda: Matching("aa", "xx"), "the same pair"),
        (lambda: Matroid(is_forest, 6, k=2), "the bases of the matroid have 3 arms"),
    ],
)
def test_a_family_that_is_empty_or_no_family_is_refused(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.parametrize("given", ["epsilon", "strength", "squares"])
def test_what_needs_a_boundary_is_refused_without_one(given: str) -> None:
    value: Any = [5] * 4 if given == "squares" else 0.1
    with pytest.raises(InvalidInput, match=f"`{given}` is given, but needs a `boundary`"):
        shortlist.certify([0, 1], [9] * 4, [5] * 4, fresh=True, **{given: value})


def test_a_boundary_does_not_go_with_a_constraint() -> None:
    quotas = Quotas("aabb", {"a": (1, 1)}, k=2)
    with pytest.raises(InvalidInput, match="does not go with `constraint`"):
        shortlist.certify([0, 2], [9] * 4, [5] * 4, fresh=True, boundary=0.5, constraint=quotas)


def problem_under(family: Any, n_arms: int = 4, k: int = 2) -> shortlist.Problem:
    goal = shortlist.FixedConfidence(0.1, 0.05)
    return shortlist.Problem(n_arms, k, goal, constraint=family)


def test_a_problem_refuses_a_constraint_of_another_size() -> None:
    family = Quotas("aabb", {"a": (1, 1)}, k=2)
    assert problem_under(family).constraint is family
    with pytest.raises(InvalidInput, match="made for n_arms = 4, but `n_arms` is 5"):
        problem_under(family, 5)
    with pytest.raises(InvalidInput, match="made for k = 2, but `k` is 3"):
        problem_under(family, 4, 3)
    with pytest.raises(InvalidInput, match=r"must be an object with a method `best\(weights\)`"):
        problem_under("aabb")


@pytest.mark.parametrize("name", ["matching", "quotas"])
def test_the_complement_of_a_family_holds_the_arms_that_its_sets_leave_out(name: str) -> None:
    family, sets = FAMILIES[name]
    rest = [tuple(sorted({0, 1, 2, 3} - set(each))) for each in sets]
    complement = problem_under(family).complement().constraint
    assert complement is not None
    for weights in product([0.0, 0.4, 1.0], repeat=4):
        assert_best(complement, rest, list(weights))


def test_quotas_hold_among_the_arms_that_remain() -> None:
    groups = Quotas("aabbcc", {"a": (1, 1), "c": (0, 1)}, k=3)
    rest = problem_under(groups, 6, 3).among(np.array([0, 2, 3, 5]), None)
    assert isinstance(rest.constraint, Quotas)
    assert rest.constraint.group_of == ["a", "b", "b", "c"]
    assert rest.constraint.limits == {"a": (1, 1), "b": (0, 2), "c": (0, 1)}
    with pytest.raises(InvalidInput, match="group 'a' is at least 1, but it has 0 arms"):
        problem_under(groups, 6, 3).among(np.array([2, 3, 4, 5]), None)


def test_groups_inside_groups_hold_among_the_arms_that_remain() -> None:
    family = Laminar({"left": [0, 1, 2], "corner": [0]}, {"left": (1, 2)}, n_arms=6, k=2)
    rest = problem_under(family, 6, 2).among(np.array([1, 3, 4]), None).constraint
    assert isinstance(rest, Laminar)
    assert rest.groups == {"left": {0}, "corner": frozenset()}
    with pytest.raises(InvalidInput, match="at least 1, but it has 0 arms"):
        problem_under(family, 6, 2).among(np.array([3, 4, 5]), None)


def test_a_family_without_a_rule_for_fewer_arms_refuses_them() -> None:
    family = Oracle(FAMILIES["matching"][0])
    with pytest.raises(InvalidInput, match="arms cannot retire under the constraint"):
        problem_under(family).among(np.array([0, 1, 2]), None)


class Oracle:
    """A family of which only the best sets are known."""

    def __init__(self, family: Constraint) -> None:
        self.best = family.best


def test_matchings_and_matroids_hold_among_the_arms_that_remain() -> None:
    pairs = [(row, column) for row in range(3) for column in range(3)]
    matching = Matching(*zip(*pairs, strict=True), k=2)
    rest = problem_under(matching, 9, 2).among(np.array([0, 1, 3, 4]), None).constraint
    assert isinstance(rest, Matching)
    assert_best(rest, [(0, 3), (1, 2)], [0.1, 0.9, 0.3, 0.8])
    with pytest.raises(InvalidInput, match="`k` is 2, but must be at most 1"):
        problem_under(matching, 9, 2).among(np.array([0, 1, 2]), None)
    trees = problem_under(Matroid(is_forest, 6, k=3), 6, 3).among(np.array([0, 1, 2, 5]), None)
    assert trees.constraint is not None
    assert_best(trees.constraint, [(0, 1, 2), (0, 1, 3), (0, 2, 3)], [0.1, 0.2, 0.3, 0.4])


def test_quotas_that_allow_every_set_are_no_constraint() -> None:
    assert problem_under(FAMILIES["all sets"][0]).constraint is None
    assert problem_under(Quotas("aabb", {"a": (0, 2)}, k=2)).constraint is None
    assert problem_under(Quotas("aaab", {"a": (1, 3)}, k=2)).constraint is None  # 1 at least anyway
    assert problem_under(Quotas("aaab", {"a": (2, 3)}, k=2)).constraint is not None


@pytest.mark.parametrize("algorithm", ["lucb", "sar"])
def test_an_algorithm_without_constraints_refuses_them(algorithm: str) -> None:
    problem = problem_under(FAMILIES["quotas"][0])
    if algorithm == "sar":
        problem = replace(problem, goal=shortlist.FixedBudget(100))
    with pytest.raises(UnsupportedGoal, match="does not support constraints"):
        shortlist.find(algorithm).start(problem, np.random.default_rng(0))


def test_a_search_of_the_users_own_must_choose_a_feasible_set() -> None:
    def first_arms(problem: shortlist.Problem, _: np.random.Generator) -> shortlist.Search:
        every = np.arange(problem.n_arms)
        yield shortlist.Pulls(every, np.ones_like(every))
        return shortlist.Answer(np.arange(problem.k))

    search = shortlist.find(first_arms).start(
        problem_under(FAMILIES["quotas"][0]), np.random.default_rng(0)
    )
    next(search)
    with pytest.raises(InvalidInput, match="the constraint does not allow this set"):
        search.send(shortlist.Rewards(np.ones(4), np.ones(4)))
