"""Plans with prices: the best set by one call, bounds that hold, and searches under quotas."""

import math
from dataclasses import replace

import numpy as np
import pytest
from attack_scale import number_of_runs
from listed_families import listed_families
from scipy.stats import binomtest

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.bound import Stakes
from shortlist.certificates.plans.search import (
    PricedBelief,
    PricedLook,
    PricedStage,
    class_threshold,
    plans_search,
)
from shortlist.certificates.plans.stage import PlanProof, SetCharges, beyond
from shortlist.certificates.under_constraints import surplus
from shortlist.constraints import Quotas, best_set
from shortlist.exploration.prices import PricedPosterior, Prices
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Rewards, advance


def test_the_best_set_for_price_plus_lead_has_the_least_bound() -> None:
    rng = np.random.default_rng(0)
    for family in listed_families(3, 20):
        n = family.sets.shape[1]
        prices: FloatArray = rng.integers(0, 9, (n,)) / 8
        leads: FloatArray = rng.integers(-8, 9, (n,)) / 8
        charges = SetCharges(0.0, leads)
        found = best_set(family.constraint, prices + leads, family.k)
        bounds = [
            charges.by(np.flatnonzero(mask))
            + float((family.sets @ prices).max() - prices[mask].sum())
            for mask in family.sets
        ]
        own = charges.by(np.flatnonzero(found))
        own += float((family.sets @ prices).max() - prices[found].sum())
        assert own == pytest.approx(min(bounds))


def quotas(seed: int, n: int = 160, low: int = 10, high: int = 30) -> tuple[Quotas, FloatArray]:
    """Two groups of arms, shuffled, a quarter of which are to be chosen."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat([0, 1], n // 2))
    theta = np.clip(0.1 + 0.1 * group + rng.uniform(0, 0.7, n), 0, 1)
    return Quotas(group.tolist(), dict.fromkeys(range(2), (low, high)), k=n // 4), theta


def piloted(
    family: Quotas, theta: FloatArray, pulls: int, rng: np.random.Generator
) -> PricedPosterior:
    posterior = PricedPosterior(theta.size, family.k, Binary(), family)
    times = np.full(theta.size, pulls)
    sums = rng.binomial(times, theta).astype(np.float64)
    posterior.add(Pulls(np.arange(theta.size), times), Rewards(sums, sums))
    posterior.refresh()
    return posterior


def stopped(
    stage: PricedStage, theta: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Let all arms follow their plans."""
    pulls, successes = np.zeros((2, theta.size), dtype=np.int64)
    while (times := stage.missing(pulls, successes)).any():
        pulls = pulls + times
        successes = successes + rng.binomial(times, theta)
    return pulls, successes


def stage_of(family: Quotas, theta: FloatArray, rng: np.random.Generator) -> PricedStage:
    belief = PricedBelief.of(piloted(family, theta, 20, rng), rng, sharpen=True)
    reach = 0.08 * family.k
    look = PricedLook(belief, Stakes(0.5, 20.0 / reach, reach), 0.3)
    return look.stage(len(look.drafts) - 1)


def test_a_stage_proves_a_set_with_the_surplus_of_its_prices() -> None:
    family, theta = quotas(1, low=18, high=22)
    rng = np.random.default_rng(1)
    stage = stage_of(family, theta, rng)
    pulls, successes = stopped(stage, theta, rng)
    easy = replace(stage, threshold=0.0)
    proof = easy.proof(pulls, successes, rng)
    assert isinstance(proof, PlanProof)
    assert isinstance(proof.boundary, np.ndarray)
    assert stage.belief.edge == pytest.approx(4**tuning.EDGE_POWER)  # a quarter is chosen
    chosen = np.isin(np.arange(theta.size), proof.chosen)
    assert proof.surplus == surplus(family, chosen, Prices(proof.boundary))
    best = np.asarray(family.best(theta))
    assert theta[best].sum() - theta[proof.chosen].sum() <= proof.bound + 0.5
    later = replace(stage, threshold=stage.strength * stage.reach)
    missed = later.proof(pulls, successes, rng)
    assert isinstance(missed, float)
    assert missed > stage.reach


def test_a_bound_that_the_check_raises_beyond_the_reach_is_no_proof() -> None:
    family, theta = quotas(1, low=18, high=22)
    rng = np.random.default_rng(1)
    stage = stage_of(family, theta, rng)
    pulls, successes = stopped(stage, theta, rng)
    about = replace(stage, threshold=0.0).proof(pulls, successes, rng)
    assert isinstance(about, PlanProof)
    just = replace(stage, threshold=(stage.reach * 1.001 - about.bound) * stage.strength)
    found = just.proof(pulls, successes, rng)
    assert isinstance(found, float)
    assert found >= math.nextafter(stage.reach, math.inf)
    assert beyond(1.0, math.nan) == math.inf


def test_a_state_that_was_dropped_is_charged_infinitely() -> None:
    family, theta = quotas(1)
    rng = np.random.default_rng(1)
    stage = stage_of(family, theta, rng)
    pulls, successes = stopped(stage, theta, rng)
    pulls[0] += 1
    assert stage.proof(pulls, successes, rng) == math.inf


def test_a_class_without_chosen_arms_has_a_threshold_too() -> None:
    rng = np.random.default_rng(2)
    family = Quotas([0] * 80 + [1] * 80, {0: (0, 0), 1: (40, 40)}, k=40)
    theta = rng.uniform(0.2, 0.8, 160)
    stage = stage_of(family, theta, rng)
    assert [each.belief.k for each in stage.belief.classes] in ([0, 40], [40, 0])
    assert all(np.isfinite(each.belief.boundary) for each in stage.belief.classes)
    pulls, successes = stopped(stage, theta, rng)
    proof = replace(stage, threshold=0.0).proof(pulls, successes, rng)
    assert not isinstance(proof, PlanProof) or proof.chosen.min() >= 80
    assert class_threshold([], stage.belief.classes[0].belief).score >= 0


def driven(
    family: Quotas, theta: FloatArray, epsilon: float, delta: float, seed: int
) -> tuple[Answer, int]:
    goal = FixedConfidence(epsilon, delta)
    problem = Problem(theta.size, family.k, goal, Binary(), constraint=family)
    rng = np.random.default_rng([seed, 1])
    search = plans_search(problem, np.random.default_rng(seed))
    turn = advance(search, None)
    spent = 0
    while isinstance(turn, Pulls):
        sums = rng.binomial(turn.times, theta[turn.arms]).astype(np.float64)
        spent += int(turn.times.sum())
        turn = advance(search, Rewards(sums, sums))
    return turn, spent


def test_a_search_under_quotas_is_proved_by_plans() -> None:
    family, theta = quotas(0)
    answer, _ = driven(family, theta, 0.1, 0.1, 0)
    assert answer.evidence["certificate"] == "plans"
    assert answer.regret_bound is not None
    assert answer.regret_bound <= 0.1
    counts = np.bincount(np.array(family.group_of)[answer.top], minlength=2)
    assert counts.min() >= 10
    assert counts.max() <= 30


def test_where_few_arms_share_a_price_the_split_certificate_takes_over() -> None:
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(range(4), 30))
    family = Quotas(group.tolist(), dict.fromkeys(range(4), (6, 6)), k=24)
    answer, _ = driven(family, rng.uniform(0, 1, 120), 0.1, 0.1, 0)
    assert answer.evidence["certificate"] == "split"


@pytest.mark.rates
@pytest.mark.parametrize("gap", [0.0, 0.12])
def test_plans_under_quotas_fail_with_probability_delta_at_most(
    gap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "FEWEST_SHARING", 1)
    runs = number_of_runs(4, 2000)
    failed = 0
    for seed in range(runs):
        rng = np.random.default_rng([3, seed])
        group = rng.permutation(np.repeat([0, 1], 60))
        family = Quotas(group.tolist(), {0: (10, 14), 1: (8, 20)}, k=24)
        theta = 0.5 + gap * rng.choice([0.0, 1.0], 120)
        answer, _ = driven(family, theta, 0.1, 0.3, seed)
        assert answer.regret_bound is not None
        best = np.asarray(family.best(theta))
        lost = float(theta[best].sum() - theta[answer.top].sum()) / 24
        failed += lost > answer.regret_bound
    assert binomtest(failed, runs, 0.3, alternative="greater").pvalue > 1e-4
