"""`assess` under quotas: the best feasible set, its bound and its tiers, against exact chances."""

import json
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom
from small_families import mask_of, random_matroids, square_matching

import shortlist
from shortlist.certificates.past.bound import feasible_set_bounds
from shortlist.certificates.past.charges import SwapCharges
from shortlist.cli import main
from shortlist.constraints import Laminar, Matching, Quotas
from shortlist.errors import InvalidInput

DELTA = 0.3
COUNTS = {
    "a0": (400, 360), "a1": (400, 340), "a2": (400, 200),
    "b0": (400, 120), "b1": (400, 80), "b2": (400, 20),
}  # fmt: skip
GROUPS = {label: label[0] for label in COUNTS}


def test_the_best_feasible_set_is_kept_and_bounded() -> None:
    found = shortlist.assess(COUNTS, 3, fixed=True, groups=GROUPS, quotas={"b": (1, 1)})
    assert found.top == ("a0", "a1", "b0")
    assert found.regret_bound == 0
    assert found.tiers["in"] == ("a0", "a1", "b0")
    (only,) = found.groups
    assert only.price == pytest.approx((0.5 - 0.3) / 3)
    assert "in the best allowed set" in str(found)
    assert "price (estimate)" in str(found)
    assert json.loads(found.to_json())["quotas"][0]["group"] == "b"


def test_quotas_that_allow_every_set_change_nothing() -> None:
    plain = shortlist.assess(COUNTS, 3, fixed=False)
    grouped = shortlist.assess(COUNTS, 3, fixed=False, groups=GROUPS, quotas={"b": (0, 3)})
    assert plain == grouped
    assert not grouped.constrained


def test_a_file_and_a_frame_name_groups(tmp_path: Path) -> None:
    lines = [f"{label},{label[0]},{pulls},{won}" for label, (pulls, won) in COUNTS.items()]
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(["arm,group,pulls,successes", *lines]))
    (tmp_path / "quotas.csv").write_text("group,least,most\nb,1,1\n")
    arguments = ["assess", str(path), "-k", "3", "--fixed", "--format", "json"]
    done = CliRunner().invoke(main, [*arguments, "--quotas", str(tmp_path / "quotas.csv")])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["top"] == ["a0", "a1", "b0"]
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(path)
    found = shortlist.assess(frame, 3, fixed=True, quotas={"b": (1, 1)})
    assert found.top == ("a0", "a1", "b0")


def test_a_list_names_groups_in_the_order_of_the_counts() -> None:
    found = shortlist.assess(COUNTS, 3, fixed=True, groups=list("aaabbb"), quotas={"a": (1, 1)})
    assert set(found.top) == {"a0", "b0", "b1"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"quotas": {"b": (1, 1)}}, "no arm has a group"),
        ({"groups": {"c0": "c"}, "quotas": {"b": (1, 1)}}, "names arm 'c0', but there is none"),
        ({"groups": GROUPS, "quotas": {"b": (4, 4)}}, "it has 3 arms"),
        ({"constraint": Matching("aabb", "xyxy")}, "made for n_arms = 4"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        shortlist.assess(COUNTS, 3, fixed=True, **given)


def test_small_means_may_be_the_good_ones() -> None:
    found = shortlist.assess(
        COUNTS, 2, fixed=True, groups=GROUPS, quotas={"b": (1, 1)}, minimize=True
    )
    assert set(found.top) == {"b2", "a2"}


def test_arms_without_pulls_and_without_a_range_have_no_bound() -> None:
    rewards = shortlist.SubGaussian(1.0)
    counts = {"a": (10, 5.0), "b": (0, 0.0), "c": (10, 2.0), "d": (10, 1.0)}
    family = Quotas("aabb", {"a": (1, 1)}, k=2)
    found = shortlist.assess(counts, 2, fixed=True, constraint=family, rewards=rewards)
    assert found.regret_bound == np.inf
    assert set(found.top) == {"a", "c"}


def test_the_only_feasible_set_loses_nothing() -> None:
    family = Quotas("aabb", {"a": (2, 2)}, k=2)
    counts = dict.fromkeys(range(4), (10, 5))
    found = shortlist.assess(counts, 2, fixed=False, constraint=family)
    assert found.top == (0, 1)
    assert found.regret_bound == 0
    assert found.tiers["out"] == (2, 3)


def test_bounds_of_sets_are_at_least_those_of_every_feasible_swap() -> None:
    rng = np.random.default_rng(0)
    families = [*random_matroids(30, 4), square_matching(3)]
    for family, sets in families:
        n: int = family.n_arms  # type: ignore[attr-defined]
        k = len(sets[0])
        most = min(k, n - k)
        up, down = rng.normal(size=(2, n, 5))
        costs = np.cumsum(rng.uniform(0.2, 1.0, (most, 5)), axis=0)
        chosen = sets[int(rng.integers(len(sets)))]
        every = np.ones(n, dtype=np.bool_)
        charged = SwapCharges(up, down, costs)
        found = feasible_set_bounds(charged, mask_of(chosen, n), every, family)
        for other in sets:
            joined, left = sorted(other - chosen), sorted(chosen - other)
            if joined:
                totals = up[joined].sum(0) + down[left].sum(0) + costs[len(joined) - 1]
                assert found[len(joined) - 1] >= totals.min() - 1e-12
        assert not feasible_set_bounds(charged, mask_of(chosen, n), ~every, family).any()


EXACT: list[tuple[Any, tuple[float, ...], int]] = [
    (Quotas("aabb", {"a": (1, 1)}, k=2), (0.7, 0.5, 0.2, 0.1), 3),
    (Quotas("aabb", {"a": (1, 1)}, k=2), (0.5, 0.5, 0.5, 0.5), 3),
    (Quotas("aaab", {"a": (1, 2)}, k=2), (0.6, 0.5, 0.5, 0.1), 3),
    (Laminar({"x": [0, 1, 2], "y": [0, 1]}, {"x": (1, 1)}, n_arms=4, k=2), (0.9, 0.2, 0.8, 0.3), 2),
    (Matching("aabb", "xyxy"), (0.6, 0.5, 0.5, 0.3), 2),
]


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("case", range(len(EXACT)))
def test_bound_and_tiers_are_wrong_with_probability_delta_at_most(case: int, fixed: bool) -> None:
    """Over all outcomes of a few pulls each."""
    family, means, pulls = EXACT[case]
    theta = np.array(means)
    best = family.best(theta)
    value = theta[best].sum()
    unique = set(best.tolist())
    wrong = 0.0
    for sums in product(range(pulls + 1), repeat=4):
        counts = {arm: (pulls, won) for arm, won in enumerate(sums)}
        found = shortlist.assess(counts, 2, fixed=fixed, delta=DELTA, constraint=family)
        lost = (value - theta[list(found.top)].sum()) / 2
        misplaced = set(found.tiers["in"]) - unique or set(found.tiers["out"]) & unique
        if lost > found.regret_bound + 1e-12 or (misplaced and len(set(means)) == 4):
            wrong += prod(
                binom.pmf(won, pulls, mean) for won, mean in zip(sums, means, strict=True)
            )
    assert wrong <= DELTA
