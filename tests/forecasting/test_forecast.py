"""Forecasts: drawn from what is believed, the same for any number of processes, and true of runs to
come."""

from pathlib import Path
from typing import Any

import numpy as np
import own_searches
import pytest
from scipy.stats import beta, binom, kstest

import shortlist
from shortlist.algorithms import ALGORITHMS, Algorithm
from shortlist.arrays import FloatArray
from shortlist.certificates.frame import fixed_design
from shortlist.errors import InvalidInput
from shortlist.forecasting import trials
from shortlist.forecasting.beliefs import ArmsBelief, guess
from shortlist.forecasting.prospects import Forecast, Prospect, save
from shortlist.forecasting.trials import forecast
from shortlist.instances import uniform
from shortlist.problem import FixedBudget, Problem
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Search


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def pilot_of(means: FloatArray, pulls: int, n: int | None = None, k: int = 2) -> ArmsBelief:
    return guess(n, k, None, None, (np.full(means.size, pulls), rng(9).binomial(pulls, means)))


def first_arms(problem: Problem, rng: np.random.Generator) -> Search:
    """Choose the first k arms, whatever they give."""
    yield Pulls(np.array([0]), np.array([1]))
    return Answer(np.arange(problem.k))


# What is believed


def test_guessed_means_are_shuffled_and_nothing_else() -> None:
    believed = guess(None, 3, uniform(50), None, None)
    once, again = believed.draw(rng(1)), believed.draw(rng(2))
    assert sorted(once) == sorted(again) == sorted(uniform(50))
    assert (once != again).any()


def test_a_prior_draws_fresh_means_from_its_beta_law() -> None:
    believed = guess(2000, 3, None, (2, 18), None)
    once, again = believed.draw(rng(1)), believed.draw(rng(2))
    assert not set(once) & set(again)
    assert kstest(once, beta(2, 18).cdf).pvalue > 1e-3


def test_a_pilot_of_few_arms_draws_from_their_beta_posteriors() -> None:
    believed = guess(None, 1, None, None, ([200, 200], [180, 40]))
    draws = np.sort([believed.draw(rng(seed)) for seed in range(400)], axis=1)
    for drawn, law in zip(draws.T, (beta(41, 161), beta(181, 21)), strict=True):
        assert kstest(drawn, law.cdf).statistic < 0.1  # the grid is coarse away from the boundary
        assert np.std(drawn) == pytest.approx(law.std(), rel=0.2)


def test_a_short_pilot_leaves_more_open_than_a_long_one() -> None:
    means = rng().beta(2, 6, 60)
    short, long = (
        np.std([np.sort(believed.draw(rng(seed)))[-5:].mean() for seed in range(100)])
        for believed in (pilot_of(means, 5), pilot_of(means, 500))
    )
    assert short > 3 * long


def test_arms_that_a_pilot_left_out_are_like_those_in_it() -> None:
    means = np.repeat([0.2, 0.8], 20)
    believed = pilot_of(means, 400, n=1000)
    drawn = believed.draw(rng())
    assert drawn.size == believed.n_arms == 1000
    assert np.minimum(np.abs(drawn - 0.2), np.abs(drawn - 0.8)).max() < 0.15
    assert binom(960, 0.5).cdf((drawn > 0.5).sum() - 20) > 1e-3
    assert binom(960, 0.5).sf((drawn > 0.5).sum() - 20) > 1e-3


def test_an_arm_with_no_pulls_counts_as_left_out() -> None:
    believed = guess(None, 1, None, None, ([50, 50, 0], [45, 45, 0]))
    assert believed.n_arms == 3
    assert believed.draw(rng()).min() > 0.6


def test_sums_of_rewards_between_0_and_1_are_taken_as_noisy_as_0_and_1() -> None:
    whole, fractional = (
        guess(None, 1, None, None, ([100, 100], [70, total])).draw(rng(3))
        for total in (20, 20.0001)
    )
    np.testing.assert_allclose(whole, fractional, atol=1e-3)


# What comes out


@pytest.mark.parametrize("workers", [2, 3])
def test_a_forecast_does_not_depend_on_the_number_of_processes(workers: int) -> None:
    settings: dict[str, Any] = {
        "k": 3,
        "n": 12,
        "prior": (2, 3),
        "epsilon": 0.2,
        "budget": [60, 120],
        "runs": 7,
    }
    settings["algorithms"] = ["adaptive-top-k-tight", "expected-loss", "uniform"]
    alone, spread = forecast(**settings), forecast(**settings, workers=workers)
    assert {**alone.summary(), "seconds": 0} == {**spread.summary(), "seconds": 0}
    other = forecast(**settings, seed=1)
    assert alone.summary()["prospects"] != other.summary()["prospects"]


def test_nine_in_ten_runs_to_come_stay_below_p90_and_one_in_ten_below_p10() -> None:
    settings: dict[str, Any] = {"k": 5, "n": 30, "prior": (2, 6), "epsilon": 0.1}
    believed = (
        forecast(**settings, algorithms=["adaptive-top-k-tight"], runs=400)
        .prospects[0]
        .summary()["pulls"]
    )
    to_come = (
        forecast(**settings, algorithms=["adaptive-top-k-tight"], runs=400, seed=1)
        .prospects[0]
        .pulls
    )
    assert isinstance(believed, dict)
    for share, figure in zip((0.1, 0.5, 0.9), believed.values(), strict=True):
        # both sides of the comparison are samples
        sampled_twice = 2 * np.sqrt(share * (1 - share) / 400)
        assert abs((to_come <= figure).mean() - share) < 3 * sampled_twice


def test_a_long_pilot_forecasts_what_the_true_means_give() -> None:
    means = rng().beta(2, 6, 80)
    seen = np.full(80, 3000), rng(1).binomial(3000, means)
    true, believed = (
        forecast(**source, k=10, budget=1600, algorithms=["uniform"], runs=60)
        .prospects[0]
        .regret.mean()
        for source in ({"means": means}, {"pilot": seen})
    )
    assert believed == pytest.approx(true, rel=0.2)


def test_all_algorithms_see_the_same_means_in_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "also first"):
        monkeypatch.setitem(
            ALGORITHMS, name, Algorithm(name, first_arms, (FixedBudget,), "none", "here")
        )
    one, other = forecast(
        k=2, n=6, prior=(1, 1), budget=6, algorithms=["first", "also first"], runs=9
    ).prospects
    np.testing.assert_array_equal(one.regret, other.regret)
    assert len(set(one.regret)) == 9


def test_uniform_needs_what_the_fixed_design_says() -> None:
    outcome = forecast(
        k=3, n=10, prior=(1, 1), epsilon=0.2, delta=0.1, algorithms=["uniform"], runs=3
    )
    assert set(outcome.prospect("uniform").pulls) == {10 * fixed_design(10, 3, 0.2, 0.1, Binary())}


def test_the_usual_algorithms_are_tried_for_every_goal() -> None:
    outcome = forecast(k=2, means=[0.9, 0.6, 0.1], epsilon=0.3, budget=[30, 60, 30], runs=1)
    tried = [(prospect.budget, prospect.algorithm) for prospect in outcome.prospects]
    assert tried == [(None, name) for name in trials.FOR_EPSILON] + [
        (b, name) for b in (30, 60) for name in trials.FOR_BUDGET
    ]
    assert {
        int(prospect.pulls[0]) for prospect in outcome.prospects if prospect.algorithm == "uniform"
    } >= {30, 60}


def test_a_named_algorithm_is_tried_for_the_goals_it_serves() -> None:
    settings: dict[str, Any] = {
        "k": 1,
        "means": [0.9, 0.1],
        "epsilon": 0.4,
        "budget": 40,
        "runs": 1,
    }
    names = ["sar", "adaptive-top-k-tight", "certified"]
    tried = [
        (each.algorithm, each.budget) for each in forecast(**settings, algorithms=names).prospects
    ]
    assert tried == [
        ("adaptive-top-k-tight", None),
        ("certified", None),
        ("sar", 40),
        ("certified", 40),
    ]


def test_what_would_take_too_long_is_left_out_unless_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings: dict[str, Any] = {"k": 1, "means": [0.9, 0.1, 0.1], "epsilon": 0.4, "runs": 1}
    assert forecast(**settings).left_out == ()
    monkeypatch.setattr(trials, "LONGEST_RUNS", 1e-3)
    short = forecast(**settings)
    assert short.left_out == ("clucb-pac",)
    assert [prospect.algorithm for prospect in short.prospects] == [
        name for name in trials.FOR_EPSILON if name != "clucb-pac"
    ]
    assert forecast(**settings, algorithms=["clucb-pac"]).left_out == ()


def test_a_run_fails_if_it_loses_more_than_epsilon() -> None:
    regret = np.array([0.0, 0.1, 0.1 + 1e-12, 0.3])
    once = np.ones(4, dtype=np.int64)
    prospect = Prospect("uniform", 10, 10 * once, regret, 0.1, once)
    assert prospect.failure_rate == 0.25
    assert Prospect("uniform", 10, prospect.pulls, regret, None, once).failure_rate is None


def test_progress_hears_the_share_that_is_done() -> None:
    heard: list[float] = []
    forecast(
        k=1, means=[0.9, 0.1], budget=20, algorithms=["uniform"], runs=4, on_progress=heard.append
    )
    assert heard == [0.25, 0.5, 0.75, 1]


def test_the_public_name_is_the_function() -> None:
    assert shortlist.forecast is forecast
    assert shortlist.Forecast is Forecast


# Mistakes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "none given, but exactly one of `means`, `prior` and `pilot`"),
        ({"means": [0.5, 0.1], "prior": (1, 1)}, "`means` and `prior` given, but exactly one"),
        ({"prior": (1, 1)}, "`n` is not given, but a prior needs it"),
        ({"prior": (1, 0), "n": 5}, "`prior` is 0, but must be a finite number greater than 0"),
        (
            {"prior": (1,), "n": 5},
            r"`prior` is \(1,\), but must be the two numbers of a Beta distribution",
        ),
        ({"prior": (1, 1), "n": 1}, "`n` is 1, but must be a whole number of at least 2"),
        ({"means": [0.5, 1.5]}, "the mean of arm 1 is 1.5, but must be a number between 0 and 1"),
        ({"means": [0.5, 0.1], "n": 3}, "`n` is 3, but there are 2 means"),
        ({"means": [0.5]}, "`n_arms` is 1, but must be a whole number of at least 2"),
        ({"means": [0.5, 0.1], "k": 2}, "`k` is 2, but must be between 1 and n_arms - 1 = 1"),
        ({"pilot": ([5, 5], [1])}, "but must be two lists of a length"),
        ({"pilot": ([5, 5.5], [1, 1])}, "`pilot` has pulls that are no count"),
        ({"pilot": ([5, -5], [1, 1])}, "`pilot` has pulls that are no count"),
        (
            {"pilot": ([5, 5], [1, 6])},
            "the sum of arm 1 is 6, but must be between 0 and its 5 pulls",
        ),
        ({"pilot": ([5, 5], [1, np.nan])}, "the sum of arm 1 is nan, but must be"),
        (
            {"pilot": ([5, 0], [1, 0])},
            "`pilot` has 1 arms that were pulled, but must have at least 2",
        ),
        ({"pilot": ([5, 5, 5], [1, 1, 1]), "n": 2}, "`n` is 2, but the pilot has 3 arms"),
        ({"means": [0.5, 0.1], "budget": None}, "neither `epsilon` nor `budget` is given"),
        ({"means": [0.5, 0.1], "budget": []}, "neither `epsilon` nor `budget` is given"),
        (
            {"means": [0.5, 0.1], "budget": 1},
            "`budget` is 1, but .* must pull each of the 2 arms once",
        ),
        ({"means": [0.5, 0.1], "budget": None, "epsilon": 0.0}, "`epsilon` is 0.0, but must be"),
        ({"means": [0.5, 0.1], "runs": 0}, "`runs` is 0, but must be a whole number of at least 1"),
        ({"means": [0.5, 0.1], "algorithms": ["unifrom"]}, "algorithm 'unifrom' is unknown"),
        (
            {"means": [0.5, 0.1], "algorithms": ["adaptive-top-k-tight"]},
            "adaptive-top-k-tight needs epsilon and delta",
        ),
        ({"means": [0.5, 0.1], "algorithms": ["certified"]}, "certified needs epsilon and delta"),
    ],
)
def test_a_mistake_names_the_value_and_the_rule(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        forecast(**{"k": 1, "budget": 10, **settings})


def test_a_prospect_that_was_not_simulated_is_refused() -> None:
    outcome = forecast(k=1, means=[0.9, 0.1], budget=20, algorithms=["uniform"], runs=1)
    assert outcome.prospect("uniform", 20).budget == 20
    with pytest.raises(InvalidInput, match="'uniform' for epsilon was not forecast"):
        outcome.prospect("uniform")


# The picture


def test_the_picture_names_every_algorithm_and_marks_its_median(tmp_path: Path) -> None:
    outcome = forecast(k=1, means=[0.9, 0.5, 0.1], epsilon=0.3, budget=[30], runs=3)
    spent, lost = outcome.plot().axes
    assert [label.get_text() for label in spent.get_yticklabels()] == list(trials.FOR_EPSILON)
    assert [label.get_text() for label in lost.get_yticklabels()] == [
        f"{name}, 30 pulls" for name in trials.FOR_BUDGET
    ]
    medians = [
        f"{sorted(prospect.pulls)[1]:,}"
        for prospect in outcome.prospects[: len(trials.FOR_EPSILON)]
    ]
    assert [text.get_text() for text in spent.texts] == medians
    for ending in ("png", "svg"):
        save(outcome, str(tmp_path / f"plan.{ending}"))
        assert (tmp_path / f"plan.{ending}").stat().st_size > 5000


def test_an_algorithm_has_one_colour_in_the_whole_picture() -> None:
    outcome = forecast(
        k=1, means=[0.9, 0.5, 0.1], epsilon=0.3, budget=30, algorithms=["sar", "uniform"], runs=2
    )
    spent, lost = outcome.plot().axes
    assert spent.lines[0].get_color() == lost.lines[3].get_color() != lost.lines[0].get_color()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plan.jpeg", "'.*plan.jpeg', but its name must end in .png, .svg, .pdf"),
        ("nowhere/plan.png", "but there is no folder"),
    ],
)
def test_a_picture_that_cannot_be_saved_is_refused(name: str, message: str, tmp_path: Path) -> None:
    outcome = forecast(k=1, means=[0.9, 0.1], budget=20, algorithms=["uniform"], runs=1)
    with pytest.raises(InvalidInput, match=message):
        save(outcome, str(tmp_path / name))


# Searches of the user's own, and print


@pytest.mark.parametrize("workers", [1, 2])
def test_own_searches_are_forecast_beside_ours(workers: int) -> None:
    own = own_searches.even
    outcome = forecast(
        k=2, n=8, prior=(1, 1), budget=80, algorithms=[own, "uniform", own], runs=6, workers=workers
    )
    assert [each.algorithm for each in outcome.prospects] == ["even", "uniform"]
    assert outcome.prospect(own, 80) is outcome.prospect("even", 80)
    assert outcome.prospect(own, 80).pulls.tolist() == [80] * 6
    assert outcome.prospect(own, 80).regret.mean() < 0.2


@pytest.mark.parametrize(
    ("algorithms", "message"),
    [
        ([own_searches.even, own_searches.BUDGETED], "two algorithms are called 'even', but"),
        ("uniform", "`algorithms` is 'uniform', but must be a list"),
        ([], r"`algorithms` is \[\], but must be a list of at least one"),
    ],
)
def test_two_algorithms_of_one_name_are_refused(algorithms: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        forecast(k=2, n=8, prior=(1, 1), budget=80, algorithms=algorithms, runs=1)


def test_a_local_function_cannot_be_forecast_in_processes() -> None:
    with pytest.raises(InvalidInput, match="<lambda> cannot be sent to another process"):
        forecast(
            k=2,
            n=8,
            prior=(1, 1),
            budget=80,
            algorithms=[lambda problem, rng: first_arms(problem, rng)],
            workers=2,
        )


def test_a_forecast_prints_a_table_for_every_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "LONGEST_RUNS", 0.0)
    outcome = forecast(k=2, n=8, prior=(2, 6), epsilon=0.3, budget=40, runs=2)
    text = str(outcome)
    assert text.splitlines()[0] == (
        "The best 2 of 8 arms with means from Beta(2, 6), 2 runs of every algorithm"
    )
    assert "Pulls until at most 0.3 is lost with probability 0.95:" in text
    assert "Left out, unless asked for by name, since it takes long: clucb-pac" in text
    assert "Regret after 40 pulls:" in text
    assert text.count("p50") == 2
    assert max(map(len, text.splitlines())) <= 100
    assert outcome._repr_html_().count("<table>") == 2
    assert "array" not in repr(outcome) + repr(outcome.prospects)


def test_limits_say_how_often_they_end_a_run_and_what_is_proved_then() -> None:
    asked: dict[str, Any] = {
        "n": 20,
        "k": 4,
        "prior": (8, 2),
        "runs": 4,
        "algorithms": ["certified"],
    }
    tight = forecast(epsilon=0.05, limits=40, **asked)
    (prospect,) = tight.prospects
    assert prospect.pulls.max() <= 800
    assert prospect.ended == 1
    assert prospect.bound is not None
    assert prospect.proved is not None
    assert 0.05 < prospect.proved < 0.3
    assert prospect.summary()["limits"] == {"ended": 1.0, "bound": prospect.proved}
    assert "or limits end it" in str(tight)
    assert "Limits end 100 % of the runs of certified before epsilon; half of" in str(tight)
    (wide,) = forecast(epsilon=0.3, limits=[10**6] * 20, **asked).prospects
    assert wide.ended == 0
    assert wide.proved is None
    (free,) = forecast(epsilon=0.3, **asked).prospects
    assert free.ended is None
    assert "limits" not in free.summary()


def test_limits_go_with_the_means_of_their_arms() -> None:
    """The best arm may be pulled once; the others tie, and are told from nothing."""
    limits = [1, None, None]
    (prospect,) = forecast(
        k=1, means=[0.9, 0.1, 0.1], epsilon=0.3, limits=limits, algorithms=["lucb"], runs=10
    ).prospects
    (other,) = forecast(
        k=1, means=[0.1, 0.9, 0.1], epsilon=0.3, limits=limits, algorithms=["lucb"], runs=10
    ).prospects
    assert prospect.pulls.max() < other.pulls.max()


@pytest.mark.parametrize("limits", [0, -1, 2.5, [1, 2], "abc", [1, 2, 0]])
def test_limits_that_make_no_sense_are_refused_by_a_forecast(limits: Any) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        forecast(k=1, means=[0.5, 0.4, 0.3], epsilon=0.3, limits=limits, runs=1)


def test_a_pilot_takes_one_limit_for_all_arms() -> None:
    pilot = [9, 9, 9], [4, 5, 6]
    (prospect,) = forecast(
        k=1, pilot=pilot, epsilon=0.1, limits=5, runs=2, algorithms=["certified"]
    ).prospects
    assert prospect.pulls.max() <= 15
    with pytest.raises(InvalidInput, match="one number for all arms"):
        forecast(k=1, pilot=pilot, epsilon=0.1, limits=[5, 5, 5], runs=2)


def test_runs_that_limits_end_fail_only_if_they_break_what_they_promised() -> None:
    regret, once = np.array([0.0, 0.25, 0.5, 0.4]), np.ones(4, dtype=np.int64)
    asked: dict[str, Any] = {"algorithm": "certified", "budget": None, "pulls": once}
    asked |= {"regret": regret, "epsilon": 0.1, "rounds": once}
    proved = np.array([0.1, 0.3, np.nan, 0.3])
    assert Prospect(**asked, bound=proved).failure_rate == pytest.approx(1 / 3)
    assert Prospect(**asked, bound=np.full(4, np.nan)).failure_rate is None
    spent = Prospect(**{**asked, "budget": 9}, bound=np.full(4, np.nan))
    assert spent.failure_rate == 0.75  # how often a budget loses more than epsilon
    limited = forecast(n=4, k=1, prior=(1, 1), limits=1, epsilon=0.05, algorithms=["uniform"])
    assert limited.prospects[0].failure_rate is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"certificate": "pairs"}, "`certificate` is 'pairs', but uniform"),
        ({"window": 5}, "`window` is 5, but uniform"),
        ({"groups": ["x", "y"]}, "`groups` is .*, but only goes with `quotas`"),
    ],
)
def test_a_setting_that_no_algorithm_has_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        forecast(k=1, means=[0.9, 0.1], epsilon=0.2, runs=2, algorithms=["uniform"], **given)
    if "certificate" in given:  # others run without it
        found = forecast(
            k=1, means=[0.9, 0.1], epsilon=0.2, runs=2, algorithms=["uniform", "certified"], **given
        )
        assert len(found.prospects) == 2


def test_arms_like_those_of_a_pilot_have_no_quotas() -> None:
    with pytest.raises(InvalidInput, match="`quotas` is given with a `pilot`"):
        forecast(k=1, pilot=([9, 9], [5, 3]), quotas={"x": (0, 1)}, epsilon=0.2, runs=2)
