"""The race on differences: promises, batches, budgets, units, and the fallback."""

from collections.abc import Callable
from math import inf

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

from shortlist import FixedConfidence, Normal, Problem, simulate
from shortlist.arrays import FloatArray
from shortlist.certificates.charged.search import charged_search
from shortlist.certificates.differences import fallback
from shortlist.certificates.differences.bound import PairSums
from shortlist.certificates.differences.fallback import FIRST_PULLS, TwoStageSample
from shortlist.certificates.differences.search import DifferencesRace, differences_search
from shortlist.certificates.frame import Retired, informed
from shortlist.search import Answer, Pulls, Search, advance, rewards_of

Draw = Callable[[np.random.Generator, int], FloatArray]
RUNS = number_of_runs(12, 2000)
SHAPES: dict[str, Draw] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "exponential": lambda rng, size: rng.exponential(size=size) - 1,
    "lognormal": lambda rng, size: (rng.lognormal(size=size) - np.exp(0.5)) / 2.16,
    "t3": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3),
}


def problem_of(n_arms: int, k: int, delta: float = 0.05, budget: int | None = None) -> Problem:
    return Problem(n_arms, k, FixedConfidence(0.1, delta, budget), Normal())


def finished(
    problem: Problem,
    means: FloatArray,
    sd: FloatArray,
    rng: np.random.Generator,
    draw: Draw = SHAPES["normal"],
    least: int | None = None,
    shift: float = 0.0,
    scale: float = 1.0,
) -> tuple[Answer, list[Pulls]]:
    """Run a search to its end on independent arms; its answer and batches."""
    search = differences_search(problem, np.random.default_rng(1), least)
    batches: list[Pulls] = []
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        batches.append(turn)
        entry = np.repeat(np.arange(turn.arms.size), turn.times)
        arms = turn.arms[entry]
        each = shift + scale * (means[arms] + sd[arms] * draw(rng, arms.size))
        turn = advance(search, rewards_of(each, entry, turn.arms.size))
    return turn, batches


def failures(
    means: FloatArray, sd: FloatArray, k: int, delta: float, draw: Draw, runs: int = RUNS
) -> int:
    """Runs that lost more than epsilon = .1; arms are shuffled in every run."""
    failed = 0
    for run in range(runs):
        rng = np.random.default_rng([11, run])
        order = rng.permutation(means.size)
        problem = problem_of(means.size, k, delta)
        answer, _ = finished(problem, means[order], sd[order], rng, draw)
        lost = np.sort(means)[-k:].mean() - means[order][answer.top].mean()
        assert answer.regret_bound is not None
        failed += lost > answer.regret_bound + 1e-12
    return failed


@pytest.mark.rates
@pytest.mark.parametrize(
    "sd", [(2.0, 0.5, 1.0), (0.2, 0.05, 0.1), (0.05, 0.05, 0.05)], ids=["wide", "narrow", "tiny"]
)
@pytest.mark.parametrize("means", [(0.101, 0.0, 0.0), (0.0, 0.0, 0.0), (0.3, 0.099, 0.0)])
def test_normal_arms_fail_with_probability_delta_at_most(
    means: tuple[float, ...], sd: tuple[float, ...]
) -> None:
    failed = failures(np.array(means), np.array(sd), 1, 0.3, SHAPES["normal"])
    assert binom.sf(failed - 1, RUNS, 0.3) > 1e-3


@pytest.mark.rates
@pytest.mark.parametrize("shape", ["exponential", "lognormal", "t3"])
@pytest.mark.parametrize("sd", [1.0, 0.1])
def test_arms_of_one_shape_fail_with_probability_delta_at_most(shape: str, sd: float) -> None:
    means = np.array([0.101, 0.0, 0.0])
    failed = failures(means, np.full(3, sd), 1, 0.3, SHAPES[shape])
    assert binom.sf(failed - 1, RUNS, 0.3) > 1e-3


@pytest.mark.rates
@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 2), (4, 3)])
def test_sets_of_normal_arms_fail_with_probability_delta_at_most(n: int, k: int) -> None:
    means = np.where(np.arange(n) < k, 0.101, 0.0)
    failed = failures(means, np.linspace(0.3, 1.2, n), k, 0.3, SHAPES["normal"])
    assert binom.sf(failed - 1, RUNS, 0.3) > 1e-3


def test_every_batch_pulls_all_arms_in_play_equally_often() -> None:
    means = np.linspace(0, -0.5, 6)
    answer, batches = finished(problem_of(6, 2), means, np.ones(6), np.random.default_rng(2))
    assert answer.evidence["proof"] == "race"
    assert all(np.unique(batch.times).size == 1 for batch in batches)
    assert {0, 1} == set(answer.top.tolist())
    assert answer.regret_bound is not None
    assert answer.regret_bound <= 0.1


@pytest.mark.parametrize(("shift", "scale"), [(1e9, 1.0), (0.0, 1e9), (0.0, 1e-9), (1.0, 1e-9)])
def test_units_change_neither_answer_nor_pulls(shift: float, scale: float) -> None:
    means, sd = np.array([0.3, 0.0, 0.1, -0.2]), np.array([1.0, 0.5, 2.0, 1.0])
    plain, batches = finished(problem_of(4, 1), means, sd, np.random.default_rng(3))
    problem = Problem(4, 1, FixedConfidence(0.1 * scale, 0.05), Normal())
    rng = np.random.default_rng(3)
    moved, again = finished(problem, means, sd, rng, shift=shift, scale=scale)
    assert moved.top.tolist() == plain.top.tolist()
    assert [batch.arms.tolist() for batch in again] == [batch.arms.tolist() for batch in batches]
    assert [batch.total for batch in again] == [batch.total for batch in batches]
    assert moved.regret_bound == pytest.approx(scale * (plain.regret_bound or 0), rel=1e-3)


def test_a_budget_ends_the_race_with_the_bound_reached_by_then() -> None:
    means = np.array([0.05, 0.0, 0.0])
    rng = np.random.default_rng(4)
    answer, batches = finished(problem_of(3, 1, budget=400), means, np.ones(3), rng)
    assert sum(batch.total for batch in batches) <= 400
    assert answer.regret_bound is not None
    assert answer.regret_bound > 0.1
    none, few = finished(problem_of(3, 1, budget=14), means, np.ones(3), np.random.default_rng(4))
    assert none.regret_bound is None
    assert sum(batch.total for batch in few) == 12


def test_batches_have_at_least_the_given_number_of_pulls() -> None:
    rng = np.random.default_rng(5)
    _, batches = finished(problem_of(4, 1), np.array([1.0, 0, 0, 0]), np.ones(4), rng, least=100)
    assert min(batch.total for batch in batches) >= 100


def test_progress_has_the_bound_that_is_proved_at_that_time() -> None:
    means = np.array([0.6, 0.0, 0.0])
    _, batches = finished(problem_of(3, 1), means, np.ones(3), np.random.default_rng(6))
    assert batches[0].progress.bound is None
    last = batches[-1].progress
    assert last.bound is not None
    assert last.bound > 0.1
    assert np.array(last.top).tolist() == [0]
    assert [batch.progress.round for batch in batches] == list(range(1, len(batches) + 1))


@pytest.fixture
def no_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """The race proves nothing."""
    nothing = lambda sums, top, outside, level: np.full((top.size, outside.size), np.inf)  # noqa: E731
    monkeypatch.setattr(PairSums, "update", nothing)


@pytest.mark.usefixtures("no_race")
def test_ties_end_with_the_two_stage_sample_if_the_race_takes_too_long() -> None:
    rng = np.random.default_rng(7)
    answer, batches = finished(problem_of(3, 1), np.zeros(3), np.full(3, 0.5), rng)
    assert answer.evidence["proof"] == "two-stage sample"
    assert answer.regret_bound == pytest.approx(0.1, rel=2e-3)
    assert sum(batch.total for batch in batches) > 3 * FIRST_PULLS


@pytest.mark.rates
@pytest.mark.usefixtures("no_race")
def test_samples_alone_fail_with_probability_delta_at_most() -> None:
    means, sd = np.array([0.101, 0.0, 0.0, 0.0]), np.array([0.3, 0.4, 0.2, 0.1])
    failed = failures(means, sd, 1, 0.3, SHAPES["normal"])
    assert binom.sf(failed - 1, RUNS, 0.3) > 1e-3


def test_samples_of_settled_arms_are_not_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two arms tie far ahead of all others, whose samples would take most of the pulls."""
    monkeypatch.setattr(fallback, "FINISH", inf)
    means, sd = np.r_[5.0, 5.0, np.zeros(8)], np.r_[0.5, 0.5, np.full(8, 2.0)]
    answer, batches = finished(problem_of(10, 1), means, sd, np.random.default_rng(10))
    pulls = np.zeros(10)
    for batch in batches:
        pulls[batch.arms] += batch.times
    assert answer.evidence["proof"] == "two-stage sample"
    assert pulls[2:].max() < pulls[:2].min() / 4


def test_a_budget_too_small_for_the_samples_is_spent_by_the_race(
    monkeypatch: pytest.MonkeyPatch, no_race: None
) -> None:
    monkeypatch.setattr(TwoStageSample, "due", lambda sample, arms: True)
    sd, rng = np.array([0.1, 0.1, 5.0]), np.random.default_rng(8)
    # pays for the first pulls, and not for the sample of the third arm, which is not known yet
    answer, batches = finished(problem_of(3, 1, budget=200), np.zeros(3), sd, rng)
    assert sum(batch.total for batch in batches) <= 200
    assert answer.regret_bound is None


@pytest.mark.usefixtures("no_race")
@pytest.mark.parametrize(("third", "top"), [(0.1, [1]), (5.0, [0])])
def test_the_choice_is_as_the_samples_say_if_that_loses_less(third: float, top: list[int]) -> None:
    """Arm 1 is ahead in its sample and behind in all; the sample of the third may be missing."""
    race, rng = (
        DifferencesRace(problem_of(3, 1), np.random.default_rng(9)),
        np.random.default_rng(9),
    )
    rows = np.array([0.0, 0.0, -0.3]) + np.array([0.001, 0.001, third]) * rng.normal(size=(130, 3))
    rows[:FIRST_PULLS, 1] += 0.01
    rows[FIRST_PULLS:, 1] -= 0.02
    race.take(np.arange(3), rows[:FIRST_PULLS])
    race.take(np.arange(3), rows[FIRST_PULLS:])
    assert race.top.tolist() == top
    assert (race.loss() <= 1) == (top == [1])


def test_arms_that_a_sample_brings_back_into_doubt_race_on() -> None:
    """To complete the samples of all arms that tie with a new choice took 49,870 pulls here."""
    means = np.random.default_rng(15).uniform(0, 3, 40)
    done = simulate("certified", means, k=3, epsilon=0.1, rewards="normal", seed=15, runs=1)
    assert done.pulls[0] < 35_000


@pytest.mark.rates
def test_no_run_takes_more_than_1_5_times_the_two_stage_procedure() -> None:
    """Ties, by the variances of each run."""
    for run in range(number_of_runs(4, 200)):
        rng = np.random.default_rng([13, run])
        problem = problem_of(4, 1)
        race_pulls = finished(problem, np.zeros(4), np.full(4, 0.6), rng)[1]
        taken = sum(batch.total for batch in race_pulls)
        first = np.random.default_rng([13, run])
        assert taken <= 1.5 * rinott_total(first, 4, 0.6)


def rinott_total(rng: np.random.Generator, n: int, sd: float) -> float:
    """An upper estimate of the total of the procedure alone: by the true variance, plus 3 s.e."""
    from shortlist.certificates.differences.fallback import two_stage_constant

    h = two_stage_constant(0.05 / (n - 1), 20)
    spread = 1 + 3 * np.sqrt(2 / ((FIRST_PULLS - 1) * n))
    return float(n * h**2 * sd**2 / 0.01 * spread)


def left_alone(
    problem: Problem, means: FloatArray, who: int, when: int, rng: np.random.Generator
) -> Answer:
    """A search in which an arm retires in some batch; from then on its rewards are made up."""
    retired = Retired(problem.n_arms)
    search = informed(certified_search(problem, np.random.default_rng(1), retired), retired)
    turn, batch = advance(search, None), 0
    while isinstance(turn, Pulls):
        entry = np.repeat(np.arange(turn.arms.size), turn.times)
        arms = turn.arms[entry]
        each = means[arms] + rng.standard_normal(arms.size)
        gone = None if batch < when else np.array([who])
        each = np.where((gone is not None) & (arms == who), 1e6, each)
        turn, batch = advance(search, rewards_of(each, entry, turn.arms.size, gone)), batch + 1
    return turn


def certified_search(problem: Problem, rng: np.random.Generator, retired: Retired) -> Search:
    """The search for few arms, or for many."""
    if problem.n_arms > 20:
        return charged_search(problem, rng, 0, retired)
    return differences_search(problem, rng, None, retired)


@pytest.mark.rates
@pytest.mark.parametrize(("n", "k", "epsilon"), [(4, 1, 0.3), (6, 2, 0.3), (30, 5, 0.8)])
@pytest.mark.parametrize("who", ["best", "last"])
def test_the_bound_is_about_the_others_once_an_arm_has_retired(
    n: int, k: int, epsilon: float, who: str
) -> None:
    failed = 0
    for run in range(RUNS):
        rng = np.random.default_rng([17, run])
        means = rng.permutation(np.where(np.arange(n) <= k, 1.01 * epsilon, 0.0))
        gone = int(means.argmax() if who == "best" else means.argmin())
        problem = Problem(n, k, FixedConfidence(epsilon, 0.3), Normal())
        answer = left_alone(problem, means, gone, int(rng.integers(0, 40)), rng)
        stay = np.arange(n) != gone
        if gone in answer.top:  # it retired after the end
            stay[gone] = True
        lost = np.sort(means[stay])[-k:].mean() - means[answer.top].mean()
        assert answer.regret_bound is not None
        failed += lost > answer.regret_bound + 1e-12
    assert binom.sf(failed - 1, RUNS, 0.3) > 1e-3


def test_all_arms_in_play_may_retire_but_k_and_one() -> None:
    problem = problem_of(5, 1)
    retired = Retired(5)
    search = informed(differences_search(problem, np.random.default_rng(1), None, retired), retired)
    rng, gone, turn = np.random.default_rng(2), 0, advance(search, None)
    while isinstance(turn, Pulls):
        entry = np.repeat(np.arange(turn.arms.size), turn.times)
        each = rng.standard_normal(entry.size)
        gone = min(3, gone + 1)
        turn = advance(search, rewards_of(each, entry, turn.arms.size, np.arange(gone)))
    assert set(turn.top.tolist()) < {3, 4}
    assert turn.tiers is None


def test_an_arm_may_retire_while_its_sample_is_completed() -> None:
    """Ties end by samples: batches in which every arm has another number of pulls."""
    problem, retired = problem_of(4, 1, 0.3), Retired(4)
    search = informed(differences_search(problem, np.random.default_rng(1), None, retired), retired)
    rng, gone, turn = np.random.default_rng(1), None, advance(search, None)
    while isinstance(turn, Pulls):
        entry = np.repeat(np.arange(turn.arms.size), turn.times)
        each = 0.6 * rng.standard_normal(entry.size)
        if gone is None and np.ptp(turn.times):
            gone = turn.arms[:1]
        turn = advance(search, rewards_of(each, entry, turn.arms.size, gone))
    assert gone is not None
    assert gone[0] not in turn.top
    assert turn.regret_bound is not None
    assert turn.regret_bound <= problem.epsilon


def test_all_arms_stay_in_play_where_only_rounding_is_missing() -> None:
    race = DifferencesRace(problem_of(4, 1), np.random.default_rng(1))
    race.bounds = np.zeros_like(race.bounds)
    race.choose_arms()
    assert race.play.tolist() == [0, 1, 2, 3]


def test_all_arms_of_a_batch_may_retire_at_once() -> None:
    """Two of four arms are ahead; once the others are out of play, both retire."""
    problem, retired = problem_of(4, 1), Retired(4)
    search = informed(differences_search(problem, np.random.default_rng(1), None, retired), retired)
    rng, gone, turn = np.random.default_rng(1), None, advance(search, None)
    while isinstance(turn, Pulls):
        entry = np.repeat(np.arange(turn.arms.size), turn.times)
        each = (turn.arms[entry] < 2) + 0.3 * rng.standard_normal(entry.size)
        if turn.arms.tolist() == [0, 1]:
            gone = turn.arms
        turn = advance(search, rewards_of(each, entry, turn.arms.size, gone))
    assert gone is not None
    assert not set(turn.top.tolist()) & {0, 1}
    assert turn.regret_bound is not None
    assert turn.regret_bound <= problem.epsilon


def test_a_budget_ends_the_search_of_the_arms_that_stay() -> None:
    """Many arms: what is left pays for no pull of each of them, or for too few."""
    for budget in (460, 500):
        problem = Problem(30, 5, FixedConfidence(0.1, 0.05, budget), Normal())
        answer = left_alone(problem, np.zeros(30), 7, 0, np.random.default_rng(3))
        assert answer.regret_bound is None
        assert 7 not in answer.top.tolist()
        assert answer.top.size == 5


def test_simulated_arms_may_have_a_deviation_each() -> None:
    runs = simulate(
        "certified", [0.5, 0.0, 0.0], k=1, epsilon=0.2, rewards="normal", sd=[0.5, 0.1, 1], runs=4
    )
    assert not runs.failed.any()
    alone = simulate("certified", [0.5, 0.0], k=1, epsilon=0.2, rewards="normal", sd=0.1, runs=2)
    assert (alone.pulls < 100).all()
    usual = simulate("certified", [9.0, 0.0], k=1, epsilon=0.5, rewards="normal", runs=1)
    assert (usual.bound <= 0.5).all()
