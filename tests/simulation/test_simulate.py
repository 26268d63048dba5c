"""Many runs: reproducible for any number of processes, on shuffled arms, judged by epsilon."""

from typing import Any

import numpy as np
import own_searches
import pytest
from scipy.stats import binom, chisquare

from shortlist.algorithms import ALGORITHMS, Algorithm, find
from shortlist.errors import Doubtful, InvalidInput, UnknownName, UnsupportedGoal
from shortlist.instances import two_group, uniform
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem, goal_of
from shortlist.search import Answer, Pulls, Search
from shortlist.simulation.simulate import Runs, bandit_with, simulate


def first_arms(problem: Problem, rng: np.random.Generator) -> Search:
    """Choose the first k arms, whatever they give."""
    yield Pulls(np.array([0]), np.array([1]))
    return Answer(np.arange(problem.k))


def runs(regret: list[float], epsilon: float | None) -> Runs:
    size = len(regret)
    pulls = np.arange(1, size + 1)
    return Runs(
        "uniform",
        4,
        2,
        epsilon,
        pulls,
        np.array(regret),
        np.full(size, np.nan),
        0.5,
        np.ones(size, int),
    )


@pytest.mark.parametrize("rewards", ["bernoulli", "beta", "gaussian"])
def test_results_do_not_depend_on_the_number_of_processes(rewards: str) -> None:
    results = [
        simulate(
            "adaptive-top-k",
            uniform(12),
            k=4,
            budget=50,
            runs=9,
            seed=5,
            workers=workers,
            rewards=rewards,
        )
        for workers in (1, 2, 3)
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].pulls, other.pulls)
        np.testing.assert_array_equal(results[0].regret, other.regret)
        np.testing.assert_array_equal(results[0].bound, other.bound)
    assert len(set(results[0].regret)) > 1


def test_the_seed_decides_and_a_longer_simulation_begins_with_the_shorter_one() -> None:
    short, same, other = (
        simulate("uniform", uniform(20), k=5, budget=60, runs=8, seed=seed) for seed in (1, 1, 2)
    )
    longer = simulate("uniform", uniform(20), k=5, budget=60, runs=12, seed=1)
    np.testing.assert_array_equal(short.regret, same.regret)
    np.testing.assert_array_equal(short.regret, longer.regret[:8])
    assert (short.regret != other.regret).any()


def test_arms_are_shuffled_in_every_run_each_order_equally_likely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(
        ALGORITHMS, "first", Algorithm("first", first_arms, (FixedBudget,), "none", "here")
    )
    outcome = simulate("first", [1.0, 0.5, 0.0], k=1, budget=3, runs=600, seed=3)
    counts = [int((outcome.regret == regret).sum()) for regret in (0, 0.5, 1)]
    assert sum(counts) == 600
    assert chisquare(counts).pvalue > 1e-3


def test_a_run_fails_if_it_loses_more_than_epsilon_rounding_aside() -> None:
    assert runs([0.0, 0.1, 0.1 + 1e-12, 0.1001], epsilon=0.1).failed.tolist() == [
        False,
        False,
        False,
        True,
    ]
    assert not runs([0.0, 1.0], epsilon=None).failed.any()


def claims_too_much(problem: Problem, rng: np.random.Generator) -> Search:
    """Choose an arm whatever it gives, and claim that it loses at most 0.2."""
    yield Pulls(np.array([0]), np.array([1]))
    return Answer(np.arange(problem.k), 0.2, 0.7)


def test_bounds_that_are_wrong_more_often_than_they_may_be_are_pointed_out() -> None:
    with pytest.warns(Doubtful, match=r"bound of the answer in \d+ of 60 runs, .* 0\.7 confid"):
        found = simulate(claims_too_much, [0.9, 0.5, 0.1], k=1, budget=3, runs=60, seed=0)
    assert not found.failed.any()  # no epsilon was given
    assert (found.wrong == (found.regret > 0.2)).all()
    assert found.confidence == 0.7
    assert binom.sf(found.wrong.sum() - 1, 60, 0.3) < 1e-3


def test_a_few_wrong_bounds_may_be_chance(recwarn: pytest.WarningsRecorder) -> None:
    found = simulate(claims_too_much, [0.9, 0.8, 0.8, 0.1], k=1, budget=4, runs=60, seed=0)
    assert 0 < found.wrong.sum() < 30
    without = simulate(first_arms, [0.9, 0.5], k=1, budget=3, runs=60, seed=0)
    assert without.confidence is None
    assert not without.wrong.any()
    assert not recwarn.list


def test_failures_are_counted_by_epsilon_where_the_goal_is_a_budget() -> None:
    loose, strict = (
        simulate("uniform", two_group(20, 10), k=10, budget=40, epsilon=epsilon, runs=50, seed=1)
        for epsilon in (0.4, 0.04)
    )
    np.testing.assert_array_equal(loose.regret, strict.regret)
    assert loose.failed.sum() == 0
    assert strict.failed.sum() == (strict.regret > 0.04).sum() > 0


def test_the_summary_holds_the_figures_of_the_contract() -> None:
    assert runs([0.0, 0.2, 0.4, 0.2], epsilon=0.3).summary() == {
        "algorithm": "uniform",
        "n": 4,
        "k": 2,
        "runs": 4,
        "pulls": {"mean": 2.5, "sd": pytest.approx(1.2909944), "max": 4},
        "regret": {"mean": pytest.approx(0.2), "max": 0.4},
        "failures": 1,
        "failure_rate": 0.25,
        "seconds": 0.5,
        "rounds": {"mean": 1, "max": 1},
    }


def test_the_summary_of_one_run_without_epsilon_has_no_spread_and_knows_of_no_failure() -> None:
    summary = runs([0.7], epsilon=None).summary()
    assert summary["pulls"] == {"mean": 1, "sd": 0, "max": 1}
    assert summary["failures"] is summary["failure_rate"] is None


CAPPED = Algorithm("capped", first_arms, (FixedConfidence,), "none", "here", capped=True)


@pytest.mark.parametrize(
    ("algorithm", "epsilon", "budget", "goal"),
    [
        (find("uniform"), 0.1, None, FixedConfidence(0.1, 0.05)),
        (find("uniform"), None, 70, FixedBudget(70)),
        (find("uniform"), 0.1, 70, FixedBudget(70)),
        (CAPPED, 0.1, 70, FixedConfidence(0.1, 0.05, 70)),
        (CAPPED, 0.1, None, FixedConfidence(0.1, 0.05)),
        (CAPPED, None, 70, FixedBudget(70)),
    ],
)
def test_the_goal_is_what_the_options_name(
    algorithm: Algorithm, epsilon: float | None, budget: int | None, goal: Goal
) -> None:
    assert goal_of(epsilon, 0.05, budget, capped=algorithm.capped) == goal


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"k": 5}, InvalidInput, "`k` is 5, but must be between 1 and n_arms - 1 = 4"),
        (
            {"epsilon": 0},
            InvalidInput,
            "`epsilon` is 0, but must be a finite number greater than 0",
        ),
        ({"epsilon": None}, InvalidInput, "neither `epsilon` nor `budget` is given"),
        ({"epsilon": -1.0, "budget": 10}, InvalidInput, "`epsilon` is -1.0"),
        (
            {"delta": 1.0},
            InvalidInput,
            "`delta` is 1.0, but must be a number greater than 0 and less than 1",
        ),
        ({"delta": 0.0, "epsilon": None, "budget": 10}, InvalidInput, "`delta` is 0.0"),
        (
            {"budget": 4},
            InvalidInput,
            "`budget` is 4, but uniform must pull each of the 5 arms once",
        ),
        ({"budget": 0}, InvalidInput, "`budget` is 0"),
        ({"runs": 0}, InvalidInput, "`runs` is 0, but must be a whole number of at least 1"),
        ({"workers": 0}, InvalidInput, "`workers` is 0"),
        ({"seed": -1}, InvalidInput, "`seed` is -1, but must be a whole number of at least 0"),
        (
            {"rewards": "poisson"},
            UnknownName,
            "`rewards` is 'poisson', but must be one of bernoulli, beta, gaussian",
        ),
        ({"rewards": "beta", "sd": 0}, InvalidInput, "`sd` is 0"),
        ({"sd": 0.1}, InvalidInput, "`sd` is 0.1, but that of rewards that are 0 or 1 follows"),
        (
            {"options": {"speed": 2}},
            UnknownName,
            "option 'speed' is unknown to uniform; it takes none",
        ),
        (
            {"algorithm": "unifrom"},
            UnknownName,
            "algorithm 'unifrom' is unknown; .* did you mean 'uniform'?",
        ),
        (
            {"algorithm": "adaptive-top-k-tight", "budget": 90},
            UnsupportedGoal,
            "needs epsilon and delta",
        ),
        (
            {"means": [0.1, float("nan")]},
            InvalidInput,
            "the mean of arm 1 is nan, but must be a number between 0 and 1",
        ),
        ({"means": [0.1, 1.2]}, InvalidInput, "the mean of arm 1 is 1.2"),
        ({"means": [[0.1], [0.2]]}, InvalidInput, "`means` has shape"),
        ({"means": ["high", "low"]}, InvalidInput, "must be a list of numbers"),
    ],
)
def test_bad_input_is_refused_by_value_and_rule(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    good: dict[str, Any] = {"algorithm": "uniform", "means": uniform(5), "k": 2, "epsilon": 0.1}
    with pytest.raises(error, match=message):
        simulate(**(good | change))


def test_gaussian_means_may_be_any_finite_number() -> None:
    assert bandit_with([-3.0, 12.5], "gaussian").means.tolist() == [-3.0, 12.5]
    with pytest.raises(InvalidInput, match="the mean of arm 0 is inf, but must be a finite number"):
        bandit_with([float("inf"), 1], "gaussian")


@pytest.mark.parametrize("rewards", ["beta", "gaussian"])
def test_rewards_have_the_standard_deviation_that_is_asked_for(rewards: str) -> None:
    bandit = bandit_with([0.3, 0.7], rewards, sd=0.1)
    given = bandit.pull(np.array([0, 1]), np.array([20_000] * 2), np.random.default_rng(3))
    means = given.sums / 20_000
    assert means == pytest.approx([0.3, 0.7], abs=0.005)
    assert np.sqrt(given.squares / 20_000 - means**2) == pytest.approx([0.1, 0.1], rel=0.03)


@pytest.mark.parametrize("sd", [0.5, 1e200])
def test_beta_rewards_vary_no_more_than_their_mean_allows(sd: float) -> None:
    given = bandit_with([0.02], "beta", sd).pull(
        np.array([0]), np.array([20_000]), np.random.default_rng(3)
    )
    assert given.sums[0] == pytest.approx(400, rel=0.3)
    assert given.squares[0] == pytest.approx(given.sums[0], rel=0.02)  # nearly all are 0 or 1


def test_options_reach_the_search() -> None:
    short, long = (
        simulate(
            "adaptive-top-k", uniform(8), k=3, budget=3000, runs=5, options={"scale": scale}
        ).pulls
        for scale in (0.05, 3)
    )
    assert (short <= 3000).all()
    assert short.tolist() != long.tolist()


def test_progress_hears_of_every_run() -> None:
    heard: list[int] = []
    simulate("uniform", uniform(5), k=2, budget=10, runs=4, on_progress=heard.append)
    assert heard == [1, 2, 3, 4]


# Searches of the user's own


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("own", [own_searches.even, "own_searches:even", own_searches.BUDGETED])
def test_an_own_search_runs_as_one_of_ours_in_any_number_of_processes(
    own: Any, workers: int
) -> None:
    found = simulate(
        own, uniform(10), k=3, budget=205, epsilon=0.1, runs=4, seed=2, workers=workers
    )
    ours = simulate("uniform", uniform(10), k=3, budget=200, epsilon=0.1, runs=4, seed=2)
    np.testing.assert_array_equal(found.pulls, ours.pulls)
    assert found.algorithm == (own if isinstance(own, str) else "even")
    half = simulate(
        own, uniform(10), k=3, budget=205, options={"share": 0.5}, runs=2, workers=workers
    )
    assert half.pulls.tolist() == [100, 100]


def test_a_function_that_no_other_process_can_import_runs_here_only() -> None:
    def local(problem: Problem, rng: np.random.Generator) -> Search:
        return first_arms(problem, rng)

    assert simulate(local, uniform(5), k=2, budget=9, runs=2).pulls.tolist() == [1, 1]
    with pytest.raises(
        InvalidInput,
        match=r"local cannot be sent to another process \(.*\), but must be defined at the top of",
    ):
        simulate(local, uniform(5), k=2, budget=9, runs=2, workers=2)


# In print


def test_runs_print_as_a_table_of_figures_and_no_arrays() -> None:
    found = runs([0.0, 0.2, 0.4, 0.2], epsilon=0.3)
    lines = [line.split() for line in str(found).splitlines()]
    assert ["algorithm", "uniform"] in lines
    assert ["pulls", "mean", "2.5"] in lines
    assert ["regret", "max", "0.4"] in lines
    assert str(found).splitlines()[-1] == "1 of 4 runs lost more than epsilon = 0.3."
    assert max(map(len, str(found).splitlines())) <= 100
    assert "<td>pulls mean</td><td>2.5</td>" in found._repr_html_()
    assert "array" not in repr(runs([0.1] * 2000, epsilon=None))
    assert "lost more" not in str(runs([0.7], epsilon=None))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_runs_are_a_data_frame_with_a_row_per_run(library: str) -> None:
    runs = simulate("uniform", [0.9, 0.5, 0.1], k=1, epsilon=0.3, budget=30, runs=4, seed=1)
    frame = runs.to_frame(library)
    assert list(frame.columns) == ["run", "pulls", "rounds", "regret", "bound", "failed"]
    assert list(frame["pulls"]) == runs.pulls.tolist()
    assert list(frame["failed"]) == runs.failed.tolist()


def test_the_data_frame_of_runs_with_costs_has_what_they_spent() -> None:
    asked: dict[str, Any] = {"k": 1, "budget": 30, "runs": 2, "costs": [1, 2]}
    assert "spent" in simulate("uniform", [0.9, 0.1], **asked).to_frame("pandas").columns


def test_runs_are_drawn_with_epsilon_as_a_line() -> None:
    asked: dict[str, Any] = {"k": 1, "runs": 3}
    figure = simulate("uniform", [0.9, 0.1], epsilon=0.3, budget=30, **asked).plot()
    points, line = figure.axes[0].get_lines()
    assert len(points.get_xdata()) == 3  # type: ignore[arg-type]
    assert line.get_ydata()[0] == 0.3  # type: ignore[index]
    plain = simulate("uniform", [0.9, 0.1], budget=30, **asked).plot(figure.subplots())
    assert plain is figure


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"means": [0.9, 0.1], "order": "independent"}, "`order` is 'independent', but only goes"),
        (
            {"scores": [[1, 0, 1], [0, 0, 1]], "rewards": "beta"},
            "`rewards` is 'beta', but the rewards are those",
        ),
        (
            {"scores": [[1, 0, 1], [0, 0, 1]], "sd": 0.1},
            "`sd` is 0.1, but the rewards are those of `scores`",
        ),
        (
            {"means": [0.9, 0.1], "groups": ["x", "y"]},
            "`groups` is .*, but only goes with `quotas`",
        ),
    ],
)
def test_a_setting_that_would_be_ignored_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        simulate("expected-loss", k=1, budget=3, **given)


TABLE = np.array([[1, 1, 1, 0, 1, 1], [0, 1, 0, 1, 0, 0], [0, 0, 1, 0, 0, 1]], dtype=float)


def test_repeats_are_columns_next_to_each_other_or_a_third_dimension() -> None:
    asked: dict[str, Any] = {"k": 1, "epsilon": 0.3, "runs": 3, "repeats": 2}
    wide = simulate("certified", scores=TABLE, **asked)
    deep = simulate("certified", scores=TABLE.reshape(3, 3, 2), **asked)
    np.testing.assert_array_equal(wide.pulls, deep.pulls)
    assert wide.n_items == 6
    assert not wide.failed.any()


def test_clusters_are_drawn_whole() -> None:
    found = simulate("certified", scores=TABLE, k=1, epsilon=0.2, runs=9, clusters=[*"aabbcc"])
    assert (found.pulls % 2 == 0).all()
    assert not found.failed.any()


@pytest.mark.parametrize("more", [{}, {"clusters": [*"aabbcc"]}, {"repeats": 2}])
def test_items_like_these_are_drawn_with_replacement(more: dict[str, Any]) -> None:
    """Even with all cells nothing is known exactly, and the truth is that of the whole matrix."""
    asked: dict[str, Any] = {"k": 1, "epsilon": 0.3, "runs": 40, "population": "like these"}
    found = simulate("certified", scores=TABLE, **asked, **more)
    assert (found.pulls == 18).all()
    assert (found.bound > 0.3).all()
    assert not found.wrong.any()
    assert set(found.regret.round(3)) > {0}  # of samples some have another best arm


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"scores": TABLE, "repeats": 4}, "has 6 columns and `repeats` is 4"),
        ({"scores": TABLE, "clusters": ["a"]}, "`clusters` has 1 entries"),
        ({"means": [0.9, 0.1], "repeats": 2}, "`repeats` is 2, but only goes with `scores`"),
        ({"means": [0.9, 0.1], "clusters": ["a"]}, "`clusters` is .*, but only goes with"),
        ({"scores": TABLE, "population": "like these", "order": "independent"}, "a shared order"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        simulate("certified", k=1, epsilon=0.3, **given)


def test_groups_need_a_search_that_promises_something() -> None:
    with pytest.raises(InvalidInput, match="`clusters` is given and `algorithm` is"):
        simulate("expected-loss", k=1, budget=6, scores=TABLE, clusters=[*"aabbcc"])
