"""kn, rinott and ocba-m: what their papers claim."""

from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.integrate import quad
from scipy.stats import binom, chi2, norm

import shortlist
from shortlist import simulate
from shortlist.algorithms.ranking_and_selection import proportions
from shortlist.certificates.charged.search import Explored
from shortlist.certificates.differences.fallback import rinott_constant
from shortlist.errors import InvalidInput, UnsupportedGoal

AHEAD = np.array([0.101, 0.0, 0.0, 0.0])
HOW: dict[str, Any] = {"k": 1, "epsilon": 0.1, "rewards": "normal"}
BELIEVABLE = 1e-4


def seldom(failures: int, runs: int, rate: float) -> bool:
    return bool(binom.sf(failures - 1, runs, rate) > BELIEVABLE)


@pytest.mark.rates
@pytest.mark.parametrize("world", [{}, {"seeds": "shared", "correlation": 0.8}])
def test_kn_misses_a_best_arm_that_is_ahead_by_epsilon_in_at_most_delta_of_the_runs(
    world: dict[str, Any],
) -> None:
    runs = number_of_runs(100, 2000)
    sd = np.array([0.3, 0.2, 0.5, 1.0])
    done = simulate("kn", AHEAD, delta=0.3, sd=sd, runs=runs, seed=5, **HOW, **world)
    assert seldom(int((done.regret > 0).sum()), runs, 0.3)
    assert np.isnan(done.bound).all()  # it promises nothing of the regret


@pytest.mark.rates
def test_rinott_loses_more_than_epsilon_in_at_most_delta_of_the_runs() -> None:
    runs = number_of_runs(300, 5000)
    sd = np.array([0.3, 0.2, 0.5, 1.0])
    done = simulate("rinott", AHEAD, delta=0.3, sd=sd, runs=runs, seed=6, **HOW)
    assert seldom(int(done.failed.sum()), runs, 0.3)
    assert (done.bound == 0.1).all()


@pytest.mark.parametrize(("n", "first", "delta"), [(2, 10, 0.05), (5, 20, 0.05), (10, 20, 0.1)])
def test_the_constant_of_rinott_solves_his_equation(n: int, first: int, delta: float) -> None:
    nu, h = first - 1, rinott_constant(n, delta, first)
    grid = chi2.ppf((np.arange(4000) + 0.5) / 4000, nu)

    def inner(y: float) -> float:
        return float(norm.cdf(h / np.sqrt(nu * (1 / y + 1 / grid))).mean()) ** (n - 1)

    right = quad(lambda y: inner(y) * chi2.pdf(y, nu), 0, chi2.ppf(1 - 1e-10, nu), limit=200)[0]
    assert 1 - delta <= right + 1e-4
    assert right <= 1 - 0.9 * delta  # rounded up by little


def test_kn_takes_fewer_pulls_than_rinott_and_fewer_still_on_shared_seeds() -> None:
    means, delta = np.r_[0.15, np.zeros(9)], 0.05
    pulls = {
        name: simulate(name, means, delta=delta, runs=10, seed=1, **HOW).pulls.mean()
        for name in ("kn", "rinott")
    }
    world: dict[str, Any] = {"seeds": "shared", "correlation": 0.8}
    shared = simulate("kn", means, delta=delta, runs=10, seed=1, **HOW, **world).pulls.mean()
    assert shared < 0.4 * pulls["kn"] < 0.4 * 0.6 * pulls["rinott"]


@pytest.mark.parametrize("name", ["kn", "rinott"])
@pytest.mark.parametrize(("scale", "offset"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e9)])
def test_scale_and_offset_change_neither_pulls_nor_choice(
    name: str, scale: float, offset: float
) -> None:
    def chosen(scale: float, offset: float) -> shortlist.Result:
        def pull(arm: int, seed: int) -> float:
            noise = np.random.default_rng(seed).integers(-2048, 2048) / 1024  # exact in floats
            return offset + scale * (float(noise) - arm / 4)

        how = {**HOW, "epsilon": 0.25 * scale}
        return shortlist.select(pull, arms=5, algorithm=name, progress=False, **how)

    plain, moved = chosen(1.0, 0.0), chosen(scale, offset)
    assert moved.top == plain.top
    assert moved.pulls == plain.pulls


@pytest.mark.parametrize("name", ["kn", "rinott"])
def test_more_than_one_arm_other_rewards_and_limits_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="`k` is 2, but must be 1"):
        simulate(name, AHEAD, **{**HOW, "k": 2})
    with pytest.raises(InvalidInput, match=r"`rewards` are bounded, but .* rests on normal"):
        simulate(name, AHEAD, **{**HOW, "rewards": "beta"})
    arms = [shortlist.Arm("a", limit=5), shortlist.Arm("b")]
    with pytest.raises(InvalidInput, match="arms have limits, but"):
        shortlist.select(float, arms=arms, algorithm=name, progress=False, **HOW)


def test_rinott_refuses_shared_seeds_and_kn_too_many_arms() -> None:
    with pytest.raises(UnsupportedGoal, match="rinott needs arms that are independent"):
        simulate("rinott", AHEAD, **HOW, seeds="shared", correlation=0.5)
    with pytest.raises(InvalidInput, match="there are 2001 arms, but kn supports at most 2000"):
        simulate("kn", np.zeros(2001), **HOW)


def test_ocba_m_shares_pulls_out_by_squared_deviations_over_gaps() -> None:
    explored = Explored(4)
    arms, times = np.arange(4), np.full(4, 1000)
    sd = np.array([1.0, 1.0, 1.0, 3.0])
    explored.add(arms, times, np.array([3.0, 2.0, 0.0, -1.0]), sd**2 * 999.0)
    # the boundary is halfway between 2 and 0: gaps 2, 1, 1, 2
    shares = proportions(explored, 2)
    assert shares / shares[1] == pytest.approx(np.array([1 / 4, 1, 1, 9 / 4]), rel=0.01)


def test_ocba_m_chooses_better_than_equal_shares_within_the_same_budget() -> None:
    means = np.linspace(0, 3, 20)
    sd = np.where(np.arange(20) % 2, 0.3, 2.0)
    how: dict[str, Any] = {"k": 5, "budget": 400, "rewards": "normal", "sd": sd, "seed": 3}
    ours = simulate("ocba-m", means, runs=60, **how)
    rng = np.random.default_rng(3)
    equal = means + sd / np.sqrt(20) * rng.standard_normal((1000, 20))  # 20 pulls each
    chosen = np.argsort(-equal, axis=1)[:, :5]
    regret = means[-5:].mean() - means[chosen].mean(axis=1)
    assert ours.pulls.max() <= 400
    assert ours.regret.mean() < 0.7 * regret.mean()
