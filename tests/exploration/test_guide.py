"""Features as a guide: they help where they explain means, and do little harm elsewhere."""

import numpy as np
import pytest

import shortlist
from shortlist.constraints import Quotas
from shortlist.exploration.guide import ArmMoments, FeatureGuide
from shortlist.exploration.posterior import Posterior
from shortlist.exploration.prices import exploring
from shortlist.features import Features
from shortlist.instances import linear
from shortlist.problem import FixedBudget, Problem
from shortlist.reward_models import Binary, SubGaussian, Undeclared
from shortlist.search import Pulls, Rewards

X, MEANS = linear(300, 4, np.random.default_rng(0))


def regret(features: object, **given: object) -> float:
    goal = {"k": 30, "budget": 1500, "runs": 6, "seed": 1} | given
    runs = shortlist.simulate("expected-loss", MEANS, features=features, **goal)  # type: ignore[arg-type]
    return float(runs.regret.mean())


def test_features_that_explain_means_reduce_the_regret_of_a_budget() -> None:
    assert regret(X) < 0.3 * regret(None)


def test_features_of_pure_noise_do_little_harm() -> None:
    noise = np.random.default_rng(1).normal(size=X.shape)
    assert regret(noise) < 1.2 * regret(None)


@pytest.mark.parametrize("rewards", ["beta", "gaussian"])
def test_scores_and_rewards_without_a_range_are_guided_too(rewards: str) -> None:
    given = {"rewards": rewards, "sd": 0.4}
    assert regret(X, **given) < 0.7 * regret(None, **given)


def test_undeclared_rewards_are_guided() -> None:
    rng = np.random.default_rng(2)
    result = shortlist.select(
        lambda arm: 100 * MEANS[arm] + 30 * rng.normal(),
        arms=300,
        k=30,
        budget=1500,
        features=X,
        progress=False,
    )
    lost = np.sort(MEANS)[-30:].mean() - MEANS[list(result.top)].mean()
    assert lost < 0.02


def test_the_spread_around_linear_means_is_learned() -> None:
    rng = np.random.default_rng(3)
    found = []
    for residual in (0.0, 0.1):
        x, means = linear(400, 4, rng, residual=residual)
        guide = FeatureGuide.of(Features(x).basis)
        pulls = np.full(400, 60)
        seen = ArmMoments(pulls, rng.binomial(pulls, means) / pulls, None)
        predicted, deviations = guide.predict(seen)
        assert np.abs(predicted - means).mean() < residual + 0.02
        assert (deviations >= guide.spread).all()
        found.append(guide.spread)
    assert found[0] < 0.03 < found[1]


def test_a_few_arms_are_pulled_first_unless_more_are_asked_for() -> None:
    problem = Problem(300, 30, FixedBudget(1000), Binary(), features=Features(X))
    posterior, rng = exploring(problem), np.random.default_rng(0)
    assert posterior.first_pulls(0, rng).sum() == 20 * 4
    assert posterior.first_pulls(600, rng).tolist() == [2] * 300
    plain = Posterior(300, 30, Binary())
    assert plain.first_pulls(0, rng).tolist() == [2] * 300


@pytest.mark.parametrize("rewards", [Binary(), SubGaussian(0.5), Undeclared()])
def test_arms_that_were_not_pulled_are_predicted(rewards: object) -> None:
    problem = Problem(300, 30, FixedBudget(1000), rewards, features=Features(X))  # type: ignore[arg-type]
    posterior = exploring(problem)
    arms = np.arange(0, 300, 2)
    times = np.full(arms.size, 40)
    sums = np.random.default_rng(0).binomial(times, MEANS[arms]).astype(float)
    posterior.add(Pulls(arms, times), Rewards(sums, sums))
    posterior.refresh()
    others = np.arange(1, 300, 2)
    assert np.corrcoef(posterior.means()[others], MEANS[others])[0, 1] > 0.9
    some = posterior.among(np.arange(1, 300, 3))
    assert some.guided
    assert np.allclose(some.means().size, 100)


def test_the_split_certificate_is_guided_and_keeps_its_promise() -> None:
    goal = {"k": 30, "epsilon": 0.05, "delta": 0.1, "runs": 4, "certificate": "split"}
    guided = shortlist.simulate("certified", MEANS, features=X, **goal)  # type: ignore[arg-type]
    plain = shortlist.simulate("certified", MEANS, **goal)  # type: ignore[arg-type]
    assert not guided.failed.any()
    assert guided.pulls.mean() < 1.1 * plain.pulls.mean()


def test_few_arms_refuse_features_that_are_not_declared() -> None:
    with pytest.raises(shortlist.errors.UnsupportedGoal, match="is not guided by them"):
        shortlist.simulate("certified", MEANS[:9], k=2, epsilon=0.1, features=X[:9])


QUOTAS = Quotas([arm % 3 for arm in range(300)], dict.fromkeys(range(3), (8, 12)), k=30)


@pytest.mark.parametrize("given", [{}, {"rewards": "gaussian", "sd": 0.4}])
def test_features_guide_under_quotas_too(given: dict[str, object]) -> None:
    assert regret(X, constraint=QUOTAS, **given) < 0.7 * regret(None, constraint=QUOTAS, **given)


def test_features_of_pure_noise_do_little_harm_under_quotas() -> None:
    noise = np.random.default_rng(1).normal(size=X.shape)
    assert regret(noise, constraint=QUOTAS) < 1.2 * regret(None, constraint=QUOTAS)


def test_guided_certificates_under_quotas_take_fewer_pulls() -> None:
    given = {"k": 30, "epsilon": 0.05, "delta": 0.1, "constraint": QUOTAS, "runs": 2, "seed": 3}
    given |= {"certificate": "split"}
    guided = shortlist.simulate("certified", MEANS, features=X, **given)  # type: ignore[arg-type]
    alone = shortlist.simulate("certified", MEANS, **given)  # type: ignore[arg-type]
    assert guided.pulls.mean() < 0.8 * alone.pulls.mean()
    assert not guided.failed.any()
