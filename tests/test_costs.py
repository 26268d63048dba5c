"""Arms have costs, and a budget is in their unit: searches keep to it, results speak of it."""

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shortlist
from shortlist import Arm
from shortlist.algorithms import find
from shortlist.budget import Budget
from shortlist.cli import main
from shortlist.errors import InvalidInput
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Pulls, Rewards
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import BernoulliBandit

MEANS = {"a": 0.2, "b": 0.5, "c": 0.8, "d": 0.3}
COSTS = {"a": 1.0, "b": 10.0, "c": 0.5, "d": 2.0}
ARMS = [Arm(label, cost=cost) for label, cost in COSTS.items()]
GIVEN: dict[str, Any] = {"arms": ARMS, "k": 1, "rewards": "binary", "progress": False, "seed": 3}


def pull(arm: str, seed: int) -> bool:
    return random.Random(seed).random() < MEANS[arm]


def paid(cost: float) -> Callable[..., tuple[bool, float]]:
    def pull_and_pay(arm: str, seed: int) -> tuple[bool, float]:
        return pull(arm, seed), cost

    return pull_and_pay


def spent_by(result: shortlist.Result) -> float:
    return sum(arm.pulls * COSTS[arm.label] for arm in result.arms)


@pytest.mark.parametrize("goal", [{}, {"epsilon": 0.01}, {"epsilon": 0.01, "max_rounds": 3}])
@pytest.mark.parametrize("budget", [13.5, 40, 200, 333.3])
def test_a_budget_in_money_is_spent_and_never_exceeded(goal: dict[str, Any], budget: float) -> None:
    result = shortlist.select(pull, budget=budget, **goal, **GIVEN)
    assert result.spent == pytest.approx(spent_by(result))
    assert result.spent <= budget * (1 + 1e-9)
    if not goal:
        assert result.spent > budget - max(COSTS.values())
    assert json.loads(result.to_json())["spent"] == result.spent
    assert "that cost" in str(result)


@pytest.mark.parametrize("name", ["uniform", "sar", "lucb", "opt-mai", "adaptive-top-k"])
def test_searches_that_count_pulls_take_every_pull_for_one_of_the_dearest(name: str) -> None:
    result = shortlist.select(pull, budget=200, algorithm=name, **GIVEN)
    assert result.pulls <= 20
    assert result.spent == pytest.approx(spent_by(result))
    with pytest.raises(InvalidInput, match=r"`budget` is 39.*once, which takes 40"):
        shortlist.select(pull, budget=39, algorithm=name, **GIVEN)


def test_the_search_for_epsilon_counts_what_it_costs_without_a_budget() -> None:
    result = shortlist.select(pull, epsilon=0.2, **GIVEN)
    assert result.reached
    assert result.top == ("c",)
    assert result.spent == spent_by(result) != result.pulls


def test_the_race_pulls_a_dear_arm_less_often_than_a_cheap_one() -> None:
    means = np.array([0.6, 0.5, 0.3])
    for costs, more in (((1.0, 9.0, 1.0), 0), ((9.0, 1.0, 1.0), 1)):
        problem = Problem(3, 1, FixedConfidence(0.02, 0.05), Binary(), costs=costs)
        rng = np.random.default_rng(5)
        outcome = drive(find("certified"), problem, BernoulliBandit(means), rng)
        assert outcome.pulls[more] > 1.5 * outcome.pulls[1 - more]


def test_the_promise_is_kept_whatever_the_costs() -> None:
    """Wrong with probability 5 % at most: more than 8 of 60 has a chance of 0.3 % (binomial).

    If it were 20 %, one of the first 20 would be wrong with a chance of 99 %."""
    means, costs = [0.5, 0.45, 0.4, 0.3], [1.0, 10.0, 10.0, 1.0]
    given: dict[str, Any] = {"k": 1, "epsilon": 0.02, "seed": 11}
    for tries in (20, 60):
        runs = shortlist.simulate("certified", means, costs=costs, budget=3000, runs=tries, **given)
        assert runs.spent is not None
        assert (runs.spent <= 3000).all()
        wrong = int((runs.regret > runs.bound).sum())
        if not wrong:
            break
    assert wrong <= 8


def test_free_pulls_are_free_but_do_not_go_on_for_ever() -> None:
    free, declared = (shortlist.select(each, budget=200, **GIVEN) for each in (paid(0), pull))
    assert (free.spent, free.pulls) == (0, declared.pulls)


@pytest.mark.parametrize("cost", [0.25, 3, 40])
def test_what_pulls_did_cost_counts_and_not_what_was_declared(cost: float) -> None:
    result = shortlist.select(paid(cost), budget=200, **GIVEN)
    assert result.spent == pytest.approx(cost * result.pulls)
    # a pull that begins is paid, whatever it turns out to cost
    assert result.spent <= 200 + max(0, cost - 0.5)


def test_cheaper_pulls_than_declared_leave_money_for_more() -> None:
    before = shortlist.select(pull, budget=200, **GIVEN)
    after = shortlist.select(paid(0.25), budget=200, **GIVEN)
    assert after.pulls > 2 * before.pulls
    assert 199 < after.spent <= 200


def test_dearer_pulls_end_a_search_with_the_bound_that_it_has_earned() -> None:
    result = shortlist.select(paid(2), budget=300, epsilon=0.01, **GIVEN)
    assert result.reached is False
    assert result.regret_bound is not None
    assert not result.partial
    assert 290 <= result.spent <= 301.5


WAYS: dict[str, dict[str, Any]] = {
    "here": {},
    "threads": {"workers": 4},
    "async": {"workers": 4},
    "many": {"batch": 3},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on_items", [False, True])
@pytest.mark.parametrize("goal", [{}, {"epsilon": 0.05}])
def test_a_budget_is_exceeded_at_most_by_the_excess_of_calls_under_way(
    way: str, on_items: bool, goal: dict[str, Any]
) -> None:
    declared = 2.0
    excess: list[float] = []

    def cost(times: int) -> float:
        actual: float = declared * times * (1 + 4 * len(excess) % 7)
        excess.append(actual - declared * times)
        return actual

    def pull(arm: int, item: Any = None) -> tuple[float, float]:
        return (arm + (item or 0)) % 3 / 2, cost(1)

    async def pull_async(arm: int, item: Any = None) -> tuple[float, float]:
        await asyncio.sleep(0)
        return pull(arm, item)

    def pull_many(arm: int, those: Any) -> tuple[list[float], float]:
        times = len(those) if on_items else those
        return [arm / 4] * times, cost(times)

    function = {"async": pull_async, "many": None}.get(way, pull)
    asked: dict[str, Any] = {"items": 50} if on_items else {}
    asked |= {"pull_many": pull_many} if way == "many" else {}
    arms = [shortlist.Arm(each, cost=declared) for each in range(4)]
    budget = 301.0
    result = shortlist.select(
        function, arms=arms, k=1, budget=budget, progress=False, **asked, **goal, **WAYS[way]
    )
    under_way = 4 if "workers" in WAYS[way] else 1
    assert result.spent is not None
    assert result.spent <= budget + sum(sorted(excess)[-under_way:])
    assert sum(excess) + declared * result.pulls > budget - 30 * declared * 3


def test_a_budget_is_hard_where_the_highest_cost_is_declared() -> None:
    def pull(arm: int, seed: int) -> tuple[float, float]:
        return arm / 4, seed % 100 / 50

    arms = [shortlist.Arm(each, cost=2.0) for each in range(4)]
    result = shortlist.select(pull, arms=arms, k=1, budget=100.0, workers=5, progress=False)
    assert result.spent is not None
    assert 95 < result.spent <= 100


def test_costs_are_told_with_a_store_as_without(tmp_path: Path) -> None:
    for function in (paid(2), paid(0.25), pull):
        path = tmp_path / f"{id(function)}.db"
        kept = shortlist.select(function, budget=200, store=path, **GIVEN)
        assert kept == shortlist.select(function, budget=200, **GIVEN)


def test_async_functions_and_lists_of_rewards_may_have_a_cost() -> None:
    async def slowly(arm: str, seed: int) -> tuple[bool, float]:
        return pull(arm, seed), 2.0

    def many(arm: str, times: int, seed: int) -> tuple[list[bool], float]:
        return [pull(arm, seed + each) for each in range(times)], 0.5 * times

    result = asyncio.run(shortlist.select_async(slowly, budget=100, workers=4, **GIVEN))
    assert result.spent == 2 * result.pulls <= 100 + 4 * 1.5
    together = shortlist.select(pull_many=many, budget=100, **GIVEN)
    assert together.spent == 0.5 * together.pulls <= 100


def test_two_rewards_in_a_tuple_are_two_rewards() -> None:
    result = shortlist.select(
        pull_many=lambda arm, times: (0.5,) * times, batch=2, arms=3, k=1, budget=30, progress=False
    )
    assert result.pulls == result.spent == 30


def test_costs_may_be_told_where_none_were_declared() -> None:
    given = GIVEN | {"arms": list(MEANS)}
    result = shortlist.select(paid(3), budget=300, **given)
    assert (result.pulls, result.spent) == (100, 300)


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), 1e13, "dear", True, [1]])
def test_a_cost_that_cannot_be_is_refused_by_name(cost: Any) -> None:
    with pytest.raises(InvalidInput, match=r"the cost of a pull of arm '.' is .*, but must be"):
        shortlist.select(paid(cost), budget=200, **GIVEN)
    with pytest.raises(InvalidInput, match="cost"):
        shortlist.select(pull, **GIVEN | {"arms": ["x", Arm("y", cost=cost)]}, budget=10)


@pytest.mark.parametrize("cost", [0, 1e-10, 2e12])
def test_a_declared_cost_lies_between_limits(cost: float) -> None:
    with pytest.raises(InvalidInput, match=r"`cost.* is "):
        shortlist.select(pull, budget=10, **GIVEN | {"arms": ["x", Arm("y", cost=cost)]})


def test_a_budget_that_does_not_pay_for_every_arm_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"`budget` is 13, .*once, which takes 13\.5"):
        shortlist.select(pull, budget=13, **GIVEN)


def test_a_budget_counts_pulls_in_whole_numbers_and_costs_to_rounding() -> None:
    request = Pulls(np.array([0, 1]), np.array([2, 1]))
    rewards = Rewards(np.zeros(2), np.zeros(2))
    pulls = Budget(Problem(3, 1, FixedBudget(4)))
    assert pulls.affords(request.arms, request.times).all()
    pulls.pay(request, rewards)
    assert (pulls.spent, pulls.left, type(pulls.spent)) == (3, 1, int)
    assert pulls.affords(request.arms, request.times).tolist() == [False, False]
    money = Budget(Problem(3, 1, FixedBudget(0.3), costs=(0.1, 0.1, 0.4)))
    assert money.affords(request.arms, request.times).all()
    money.pay(request, Rewards(np.zeros(2), np.zeros(2), None, np.array([0.05, 0.05])))
    assert money.spent == pytest.approx(0.1)
    assert Budget(Problem(3, 1, FixedConfidence(0.1, 0.1))).left == np.inf


def test_a_search_of_ones_own_may_spend_money_but_no_more_than_there_is() -> None:
    def greedy(problem: Problem, rng: np.random.Generator) -> Any:
        while True:
            yield Pulls(np.arange(problem.n_arms), np.ones(problem.n_arms, dtype=np.int64))

    with pytest.raises(InvalidInput, match=r"asks for pulls that cost 54.0, but the budget is 50"):
        shortlist.select(pull, budget=50, algorithm=greedy, **GIVEN)


def test_a_test_set_is_paid_by_the_cell() -> None:
    rng = np.random.default_rng(0)
    scores = (rng.random((4, 60)) < np.array(list(MEANS.values()))[:, None]).astype(float)

    def score(arm: str, item: int) -> float:
        return float(scores[list(MEANS).index(arm), item])

    goals: list[dict[str, Any]] = [{}, {"epsilon": 0.01}]
    for goal in goals:
        result = shortlist.select(score, items=60, budget=150, **goal, **GIVEN)
        assert result.spent == pytest.approx(spent_by(result))
        assert result.spent <= 150
        dearer = shortlist.select(
            lambda arm, item: (score(arm, item), 5.0), items=60, budget=150, **goal, **GIVEN
        )
        assert dearer.spent == 5 * dearer.pulls <= 155


def test_simulations_and_forecasts_speak_the_unit() -> None:
    means, costs = [0.2, 0.5, 0.8], [1.0, 10.0, 1.0]
    runs = shortlist.simulate("expected-loss", means, k=1, costs=costs, budget=100, runs=3)
    assert runs.summary()["spent"] == {"mean": pytest.approx(100, abs=1), "max": runs.spent.max()}  # type: ignore[union-attr]
    assert shortlist.simulate("uniform", means, k=1, budget=30).spent is None
    given: dict[str, Any] = {"k": 1, "means": means, "costs": costs, "runs": 3, "epsilon": 0.2}
    forecast = shortlist.forecast(budget=100, **given)
    assert all("spent" in each.summary() for each in forecast.prospects)
    assert "Cost until at most 0.2 is lost" in str(forecast)
    assert "Regret after a cost of 100:" in str(forecast)
    with pytest.raises(InvalidInput, match="with a `pilot`"):
        shortlist.forecast(k=1, pilot=([5, 5], [1, 4]), costs=[1, 2], budget=50)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def test_the_command_line_reads_costs_and_limits(tmp_path: Path) -> None:
    arms, store = tmp_path / "arms.csv", str(tmp_path / "money.db")
    arms.write_text("arm,cost,limit,colour\na,1,,red\nb,10,3,blue\nc,0.5,,\n")
    program = "python3 -c 'print(1, 2.5)' {arm}"
    made = ["-k", "1", "--budget", "50.5", "--store", store, "--format", "json"]
    done = run("run", str(arms), "--pull", program, *made)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["spent"] == 2.5 * result["pulls"] <= 53
    assert [(arm["cost"], arm["limit"]) for arm in result["arms"]] == [
        (1, None),
        (10, 3),
        (0.5, None),
    ]
    status = json.loads(run("status", "--store", store, "--format", "json").stdout)
    assert (status["spent"], status["budget"]) == (result["spent"], 50.5)
    assert "that cost" in run("status", "--store", store).stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a,dear,", "'dear' is no number"),
        ("a,-1,", "`cost of 'a'` is -1"),
        ("a,1,many", "limit 'many' must be"),
    ],
)
def test_a_file_of_arms_that_makes_no_sense_is_refused_by_its_line(
    tmp_path: Path, line: str, said: str
) -> None:
    path = tmp_path / "arms.csv"
    path.write_text(f"arm,cost,limit\n{line}\nb,1,2\n")
    done = run("create", str(path), "-k", "1", "--budget", "9", "--store", str(tmp_path / "x.db"))
    assert done.exit_code == 2
    assert f"{path}, line 2" in done.stderr.replace("\n", " ")
    assert said in done.stderr.replace("\n", " ")


def test_costs_are_told_by_hand_and_from_a_file(tmp_path: Path) -> None:
    arms, store = tmp_path / "arms.csv", str(tmp_path / "money.db")
    arms.write_text("arm,cost\na,1\nb,2\n")
    run("create", str(arms), "-k", "1", "--budget", "60", "--store", store)
    run("ask", "--store", store, "--limit", "3")
    run("tell", "0", "1", "--cost", "4", "--store", store)
    told = tmp_path / "told.csv"
    told.write_text("ticket,reward,cost\n1,0,0.5\n0,1,\n")
    assert run("tell", "--file", str(told), "--store", store).exit_code == 0
    status = json.loads(run("status", "--store", store, "--format", "json").stdout)
    assert status["spent"] == pytest.approx(4.5)
    assert run("tell", "0", "1", "--cost", "5", "--store", store).exit_code == 2


def test_a_file_of_means_may_have_costs(tmp_path: Path) -> None:
    path = tmp_path / "means.csv"
    path.write_text("mean,cost\n0.2,1\n0.8,10\n0.5,1\n")
    given = ["-k", "1", "--means", str(path), "--budget", "60", "--runs", "2", "--format", "json"]
    done = run("simulate", "--algorithm", "expected-loss", *given)
    assert 50 < json.loads(done.stdout)["spent"]["mean"] <= 60
    assert "spent" in json.loads(run("forecast", *given).stdout)["prospects"][0]
