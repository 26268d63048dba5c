"""Rewards in [0, 1] that are not coin tosses: the discount, its plans, and the stages of a look."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from shortlist import certify
from shortlist.arrays import FloatArray
from shortlist.certificates.frame import Retired
from shortlist.certificates.split import expected_charges
from shortlist.certificates.split.bound import STEEPEST_TILT, Holdout, declare, discount
from shortlist.certificates.split.expected_charges import ScoreCharges, _classes
from shortlist.certificates.split.planning import Draft, at_stage
from shortlist.certificates.split.search import Looks, look, split_search
from shortlist.errors import InvalidInput
from shortlist.exploration.posterior import Posterior
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Bounded
from shortlist.search import Answer, Pulls, Rewards, advance
from shortlist.simulation.worlds import BernoulliBandit, BetaBandit

STEADY = 60.0  # concentration of Beta rewards with a standard deviation of about .06
Respond = Callable[[Pulls, bool], Rewards]


def one(value: float) -> FloatArray:
    return np.array([value])


def explored(bandit: BetaBandit, times: int, k: int, seed: int = 0) -> Posterior:
    posterior = Posterior(bandit.means.size, k, Bounded())
    arms = np.arange(bandit.means.size)
    request = Pulls(arms, np.full(arms.size, times))
    posterior.add(request, bandit.pull(arms, request.times, np.random.default_rng(seed)))
    posterior.refresh()
    return posterior


def test_the_discount_is_what_two_points_of_that_mean_and_variance_give() -> None:
    pulls, low, share, slope = 20.0, 0.3, 0.75, 14.0
    mean = share * low + (1 - share)
    variance = share * low**2 + (1 - share) - mean**2
    u = -math.expm1(-slope / pulls)
    bet = pulls * (share * math.log(1 - u * low) + (1 - share) * math.log(1 - u))
    found = discount(one(pulls), one(mean), one(variance), one(slope))
    assert found == pytest.approx(bet + slope * mean)


def test_the_discount_shrinks_with_the_variance_to_none_for_0_and_1() -> None:
    variance = np.array([0.0, 0.01, 0.05, 0.2, 0.21, 5.0])
    found = discount(one(50.0), one(0.3), variance, one(40.0))
    assert np.all(np.diff(found[:5]) < 0)
    assert found[4:].tolist() == [0, 0]
    assert discount(one(50.0), one(1.0), one(0.0), one(40.0)) == pytest.approx(0)


def test_bets_that_are_too_steep_have_no_discount() -> None:
    steep = discount(one(1.0), one(0.3), one(0.0), np.array([STEEPEST_TILT, 1.001 * STEEPEST_TILT]))
    assert steep[0] > 0
    assert steep[1] == 0


def test_rewards_of_small_variance_are_told_from_coin_tosses() -> None:
    means = np.linspace(0.3, 0.7, 12)
    scores = explored(BetaBandit(means, STEADY), 30, 3)
    assert scores.graded
    assert scores.dispersion() == pytest.approx(1 / (STEADY + 1), rel=0.2)
    assert scores.dispersions() == pytest.approx(np.full(12, 1 / (STEADY + 1)), rel=0.4)
    tosses = Posterior(12, 3, Bounded())
    request = Pulls(np.arange(12), np.full(12, 30))
    tosses.add(request, BernoulliBandit(means).pull(request.arms, request.times, rng(1)))
    assert not tosses.graded
    assert tosses.dispersions() == pytest.approx(np.ones(12))


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_an_arm_of_its_own_spread_is_known_by_it_after_many_rewards_only() -> None:
    posterior = Posterior(6, 2, Bounded())
    request = Pulls(np.arange(6), np.array([4, 4, 400, 400, 400, 400]))
    wild = np.array([0.25, 0.25, 0.25, 0.01, 0.01, 0.01]) * 0.2  # variances
    counts = request.times.astype(np.float64)
    posterior.add(request, Rewards(counts * 0.5, counts * (wild + 0.25)))
    found = posterior.dispersions()
    assert found[2] == pytest.approx(0.2, rel=0.2)
    assert found[3] == pytest.approx(0.008, rel=0.5)
    assert found[0] < 0.15  # four rewards say little


def test_a_spread_that_hardly_any_arm_shows_is_shared_by_all() -> None:
    posterior = Posterior(4, 2, Bounded())
    request = Pulls(np.arange(4), np.array([50, 50, 1, 1]))
    counts = request.times.astype(np.float64)
    posterior.add(request, Rewards(counts * 0.5, counts * 0.26))
    found = posterior.dispersions()
    assert found == pytest.approx(np.full(4, found[0]), rel=0.05)


def test_slopes_are_those_of_bets_that_never_lose_more_than_their_share() -> None:
    charges = ScoreCharges(explored(BetaBandit(np.linspace(0.2, 0.8, 9), STEADY), 8, 3), 0.6, 1, 40)
    slopes = charges.slopes(30.0)
    pulls, edge = charges.candidates.pulls, charges.candidates.edge
    u = -np.expm1(-slopes / pulls)
    bet = u / (1 - u * edge)  # 1 - u X is 1 + bet (edge - X), times 1 - u edge
    assert bet * (1 - edge) == pytest.approx(
        np.minimum(
            charges.share * 30.0 / pulls * (1 - edge), np.broadcast_to(charges.risk, bet.shape)
        )
    )


@pytest.mark.parametrize("inside", [False, True])
def test_the_charge_predicted_is_about_that_of_fresh_rewards(inside: bool) -> None:
    boundary, mean, strength = 0.5, 0.52 if not inside else 0.48, 60.0
    posterior = explored(BetaBandit(np.full(9, mean), STEADY), 40, 3)
    charges = ScoreCharges(posterior, boundary, 1.0, 200)
    at_mean = charges.at(strength, 1 / (STEADY + 1))[int(inside)]  # (grid, candidates)
    way = int(np.flatnonzero(charges.candidates.pulls[0] >= 40)[0])
    predicted = np.interp(mean, posterior.grid, at_mean[:, way])
    pulls = np.full(2, int(charges.candidates.pulls[0, way]))
    certificate = declare(
        np.array([True, False]),
        boundary,
        pulls,
        strength=strength,
        delta=0.05,
        reach=1.0,
        rewards=Bounded(),
        slope=charges.slopes(strength)[::-1, way],
    )
    drawn = rng(3).beta(STEADY * mean, STEADY * (1 - mean), (2000, pulls[0], 1)).repeat(2, axis=2)
    charged = certificate.charges(drawn.sum(axis=1), (drawn**2).sum(axis=1))
    assert charged[:, 0 if inside else 1].mean() == pytest.approx(predicted, rel=0.1)


def test_arms_are_planned_in_classes_of_their_dispersion() -> None:
    kind, dispersion = _classes(np.array([0.01, 0.011, 0.2, 1.0]))
    assert kind[0] == kind[1] == 0
    assert kind[3] == expected_charges.CLASSES - 1
    assert dispersion[kind] == pytest.approx([0.01, 0.01, 0.2, 1.0], rel=0.6)
    assert _classes(np.full(3, 0.3))[1] == pytest.approx(
        np.full(expected_charges.CLASSES, 0.3), rel=0.01
    )


def a_draft(pulls: list[int]) -> Draft:
    count = len(pulls)
    return Draft(
        chosen=np.arange(count) < 1,
        boundary=0.5,
        strength=20.0,
        pulls=np.array(pulls),
        start=np.full(count, -np.inf),
        slope=np.full(count, 10.0),
        cost=sum(pulls),
        expected=0.1,
    )


def test_a_stage_has_the_same_bets_and_takes_nothing_back() -> None:
    stage = at_stage(a_draft([10, 20]), 0.85, np.array([9, 0]))
    assert stage.pulls.tolist() == [9, 17]
    assert stage.slope / stage.pulls == pytest.approx(np.array([1.0, 0.5]))


@pytest.mark.parametrize(("left", "good", "asked"), [(99, True, 1), (99, False, 5), (29, False, 1)])
def test_a_look_ends_with_the_first_stage_that_will_do(left: int, good: bool, asked: int) -> None:
    """29 pulls are too few for all stages: then there is one, as drafted."""
    problem = Problem(2, 1, FixedConfidence(0.45, 0.3), Bounded())
    posterior = explored(BetaBandit(np.array([0.8, 0.3]), STEADY), 5, 1)
    holdout = Holdout(2, blur=0.0)
    run = look(Looks(problem, posterior), a_draft([10, 10]), holdout, left, Retired(2))
    requests = 0
    reply: Rewards | None = None
    while isinstance(turn := advance(run, reply), Pulls):
        requests += 1
        means = np.array([0.95, 0.05] if good else [0.05, 0.95])[turn.arms]
        reply = Rewards(turn.times * means, turn.times * (means**2 + 1e-4))
    assert requests == asked
    assert (turn <= 0.45) == good
    assert holdout.pulls.tolist() == [{1: 7, 5: 15}[asked] if left == 99 else 10] * 2


def run_of(
    problem: Problem, respond: Respond, most: int = 400
) -> tuple[list[list[int]], Answer | None]:
    """All requests of a split search, and its answer; fresh pulls have a round."""
    search = split_search(problem, rng(5))
    requests: list[list[int]] = []
    reply: Rewards | None = None
    for _ in range(most):
        turn = advance(search, reply)
        if isinstance(turn, Answer):
            return requests, turn
        requests.append([*turn.arms.tolist(), *turn.times.tolist(), turn.progress.round])
        reply = respond(turn, turn.progress.round > 0)
    return requests, None


def test_fresh_scores_do_not_change_what_is_asked_for_but_by_ending_it() -> None:
    """Two streams of fresh rewards that never certify; exploration is the same."""
    means = np.array([0.7, 0.68, 0.6, 0.5, 0.4, 0.3])
    problem = Problem(6, 2, FixedConfidence(0.05, 0.1), Bounded())

    def answering(level: float) -> Respond:
        explore_rng = rng(11)

        def respond(turn: Pulls, fresh: bool) -> Rewards:
            if fresh:  # the chosen arms are bad, or all arms alike
                told = np.full(turn.arms.size, level)
                return Rewards(turn.times * told, turn.times * (told**2 + 0.01))
            return BetaBandit(means, STEADY).pull(turn.arms, turn.times, explore_rng)

        return respond

    first, _ = run_of(problem, answering(0.1), 60)
    second, _ = run_of(problem, answering(0.9), 60)
    assert first == second
    assert any(each[-1] for each in first)


def drawing(bandit: BetaBandit, seed: int) -> Respond:
    generator = np.random.default_rng([seed, 1])
    return lambda turn, _: bandit.pull(turn.arms, turn.times, generator)


def test_steady_scores_are_certified_with_fewer_pulls_and_seldom_wrongly() -> None:
    delta, tries, failed = 0.3, 10, 0
    pulls = {STEADY: 0, 0.5: 0}
    for seed in range(tries):
        means = rng(seed).normal(0.5, 0.05, 12)
        problem = Problem(12, 4, FixedConfidence(0.03, delta), Bounded())
        for concentration in pulls:
            requests, answer = run_of(problem, drawing(BetaBandit(means, concentration), seed))
            assert answer is not None
            pulls[concentration] += sum(sum(each[len(each) // 2 : -1]) for each in requests)
            failed += aggregate_regret(means, answer.top) > 0.03
    assert binom.sf(failed - 1, 2 * tries, delta) > 1e-6
    assert pulls[STEADY] < pulls[0.5] / 4


def test_certify_takes_squares_and_refuses_those_that_cannot_be() -> None:
    sums, pulls = np.array([30.0, 28.0, 21.0, 22.0]), [40] * 4
    plain = certify([0, 1], pulls, sums, boundary=0.6, fresh=True, strength=40.0)
    steady = certify(
        [0, 1], pulls, sums, squares=sums**2 / 39, boundary=0.6, fresh=True, strength=40.0
    )
    assert steady < plain
    with pytest.raises(InvalidInput, match="the sum of squares of arm 2 is 5, but 40 rewards"):
        certify([0, 1], pulls, sums, squares=[30, 28, 5, 22], boundary=0.6, fresh=True)
    with pytest.raises(InvalidInput, match="the sum of squares of arm 1 is nan"):
        certify([0, 1], pulls, sums, squares=[30, math.nan, 20, 22], boundary=0.6, fresh=True)
    for wrong in ([30, 28, 20], ["a"] * 4):
        with pytest.raises(InvalidInput, match=r"`squares` is .* a number for each arm"):
            certify([0, 1], pulls, sums, squares=wrong, boundary=0.6, fresh=True)
