"""`seeds="shared"`: all arms run on the same fresh seeds, behind every door."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke

from shortlist import Arm, Experiment, Matching, Result, SubGaussian, select, simulate
from shortlist.engine import export_lines, import_lines
from shortlist.engine.tickets import Numbering, shared_seed
from shortlist.errors import InvalidInput, InvalidReward, Unfinished, UnsupportedGoal
from shortlist.search import Pulls
from shortlist.stores.base import MemoryStore

DESIGNS = {"a": 1.0, "b": 0.0, "c": 0.4, "d": 0.2}


def run(design: str, seed: int) -> float:
    own = random.Random(f"{design} {seed}").gauss(0, 0.2)
    return DESIGNS[design] + random.Random(seed).gauss(0, 1) + own


def out_of_step(design: str, seed: int) -> float:
    return DESIGNS[design] + random.Random(f"{design} {seed}").gauss(0, 1)


ASKED: dict[str, Any] = {
    "arms": list(DESIGNS),
    "k": 1,
    "epsilon": 0.1,
    "rewards": "normal",
    "seeds": "shared",
}


def test_all_arms_of_a_batch_have_the_same_fresh_seeds() -> None:
    made = Experiment.create(**ASKED)
    used: set[int] = set()
    batches = 0
    while tickets := made.ask(1000):
        by_arm: dict[object, list[int]] = {}
        for ticket in tickets:
            by_arm.setdefault(ticket.arm, []).append(ticket.seed)
        streams = list(by_arm.values())
        assert all(stream == streams[0] for stream in streams)
        assert used.isdisjoint(streams[0])  # an arm that returns skips what it missed
        used.update(streams[0])
        batches += 1
        for ticket in tickets:
            made.tell(ticket, run(str(ticket.arm), ticket.seed))
    assert batches > 2
    assert made.result().top == ("a",)


def test_select_gives_the_same_answer_on_any_executor() -> None:
    alone = select(run, progress=False, **ASKED)
    with ThreadPoolExecutor(3) as threads:
        together = select(run, progress=False, executor=threads, **ASKED)
    assert alone.top == together.top == ("a",)
    assert alone.pulls == together.pulls
    assert float(str(alone.evidence["correlation"])) > 0.9
    assert not alone.notes


def test_shared_seeds_take_fewer_pulls_than_own_ones() -> None:
    shared = select(run, progress=False, **ASKED)
    own = select(run, progress=False, **{**ASKED, "seeds": "own"})
    assert shared.pulls < own.pulls / 2


def test_arms_that_are_not_in_step_are_noted() -> None:
    result = select(out_of_step, progress=False, **ASKED)
    assert result.top == ("a",)
    assert any("seeds are shared, but outputs" in note for note in result.notes)


def test_an_experiment_is_replayed_with_the_same_seeds(tmp_path: Path) -> None:
    place = tmp_path / "runs.sqlite"
    made = Experiment.create(**ASKED, store=place)
    first = made.ask(3)
    again = Experiment.open(place)
    assert again.settings.problem.shared_seeds
    for ticket in first:
        again.tell(ticket, run(str(ticket.arm), ticket.seed))
    assert again.run(run).pulls == select(run, progress=False, **ASKED).pulls


def test_a_failed_pull_is_retried_with_the_same_seed() -> None:
    seen: list[int] = []

    def fails_once(design: str, seed: int) -> float:
        seen.append(seed)
        if len(seen) == 5:
            raise OSError("the machine is gone")
        return run(design, seed)

    made = Experiment.create(**ASKED)
    result = made.run(fails_once)
    assert result.pulls == select(run, progress=False, **ASKED).pulls
    assert seen.count(seen[4]) == len(DESIGNS) + 1


FAILING: dict[str, Any] = {"on_failure": "void", "retries": 1}
AT_ONCE = {**FAILING, "retries": 0}  # without pauses


def counted(result: Result) -> list[tuple[object, ...]]:
    """All but what was spent, which depends on how many pulls on void seeds were made."""
    arms = [(arm.label, arm.pulls, arm.mean) for arm in result.arms]
    return [(result.top, result.regret_bound, result.pulls, *arms)]


def fails_on(design: str, seed: int) -> float:
    """Some designs fail on some seeds, for no reason that the output knows."""
    if random.Random(f"fails {design} {seed}").random() < 0.06:
        raise OSError("the machine is gone")
    return run(design, seed)


@pytest.mark.parametrize(
    "goal",
    [
        {"algorithm": "certified"},
        {"algorithm": "kn"},
        {"epsilon": None, "budget": 300, "algorithm": "expected-loss"},
        {"algorithm": "certified", "budget": 400},
    ],
)
def test_a_seed_on_which_an_arm_fails_is_void_for_all_arms(goal: dict[str, Any]) -> None:
    made = Experiment.create(**{**ASKED, **goal}, **AT_ONCE)
    by_seed: dict[int, dict[str, float]] = {}
    bad: set[int] = set()

    def noted(design: str, seed: int) -> float:
        try:
            by_seed.setdefault(seed, {})[design] = fails_on(design, seed)
        except OSError:
            bad.add(seed)
            raise
        return by_seed[seed][design]

    result = made.run(noted, progress=False)
    good = {seed: rewards for seed, rewards in by_seed.items() if seed not in bad}
    assert bad
    assert result.top == ("a",)
    assert result.pulls == sum(map(len, good.values()))
    for arm in result.arms:
        own = [rewards[arm.label] for rewards in good.values() if arm.label in rewards]
        assert arm.pulls == len(own)
        assert arm.mean == pytest.approx(np.mean(own))
    status = made.status()
    made_in_all = sum(map(len, by_seed.values()))  # those on void seeds, too
    assert status.told + status.unused == made_in_all == status.spent
    assert status.undrawn >= len(bad)


@pytest.mark.parametrize("place", ["memory", "void.db"])
def test_void_seeds_are_replayed_from_any_store_in_any_order(place: str, tmp_path: Path) -> None:
    store = None if place == "memory" else tmp_path / place
    alone = Experiment.create(**ASKED, **FAILING).run(fails_on, progress=False)
    made = Experiment.create(**ASKED, **FAILING, store=store)
    rng = random.Random(5)
    for turn in range(10**6):
        tickets = made.ask(7, f"worker {turn % 3}")
        if not tickets:
            break
        for ticket in rng.sample(tickets, len(tickets)):
            try:
                made.tell(ticket, fails_on(str(ticket.arm), ticket.seed))
            except OSError as error:
                made.fail(ticket, str(error), attempts=2)
    assert counted(made.result()) == counted(alone)
    if store is not None:
        with Experiment.open(store) as again:
            assert again.result() == made.result()
            assert again.status().spent == made.status().spent
    copy = MemoryStore()
    import_lines(export_lines(made.store, "experiment"), copy)
    assert counted(Experiment.open(copy).result()) == counted(alone)


@pytest.mark.parametrize("place", ["memory", "void.db"])
def test_select_voids_the_same_seeds_as_an_experiment(place: str, tmp_path: Path) -> None:
    where: dict[str, Any] = {} if place == "memory" else {"store": tmp_path / place}
    result = select(fails_on, **ASKED, **AT_ONCE, **where, progress=False)
    assert counted(result) == counted(Experiment.create(**ASKED, **AT_ONCE).run(fails_on))
    assert result.spent is not None
    assert result.spent > result.pulls


def test_select_voids_a_seed_after_the_last_retry_only() -> None:
    tries: dict[tuple[str, int], int] = {}

    def fails_once(design: str, seed: int) -> float:
        tries[design, seed] = tries.get((design, seed), 0) + 1
        if len(tries) == 5 and tries[design, seed] == 1:
            raise OSError("the machine is gone")
        return run(design, seed)

    result = select(fails_once, **ASKED, on_failure="void", retries=1, progress=False)
    assert counted(result) == counted(select(run, **ASKED, progress=False))
    assert max(tries.values()) == 2


def test_select_async_and_threads_void_the_same_seeds() -> None:
    async def later(design: str, seed: int) -> float:
        return fails_on(design, seed)

    alone = counted(select(fails_on, **ASKED, **AT_ONCE, progress=False))
    assert counted(select(later, **ASKED, **AT_ONCE, progress=False)) == alone
    threads = select(fails_on, **ASKED, **AT_ONCE, executor="threads", workers=3, progress=False)
    assert counted(threads) == alone


def test_select_raises_the_error_of_a_replication_unless_seeds_may_be_void() -> None:
    with pytest.raises(OSError, match="the machine is gone"):
        select(fails_on, **ASKED, retries=0, progress=False)


def test_select_ends_when_an_arm_always_fails() -> None:
    def broken(design: str, seed: int) -> float:
        if design == "c":
            raise OSError("no licence")
        return run(design, seed)

    with pytest.raises(Unfinished, match="no licence") as raised:
        select(broken, **ASKED, **AT_ONCE, progress=False)
    assert vars(raised.value)["partial"].top


def test_a_bad_reward_ends_select_and_voids_no_seed() -> None:
    with pytest.raises(InvalidReward):
        select(lambda design, seed: float("nan"), **ASKED, **AT_ONCE, progress=False)


def test_pulls_that_are_made_together_cannot_void_a_seed() -> None:
    asked = {**ASKED, **AT_ONCE}
    with pytest.raises(InvalidInput, match="`on_failure` is 'void', but `pull_many` makes many"):
        select(pull_many=lambda arm, times: [0.0] * times, **asked, progress=False)


def test_threads_void_the_same_seeds() -> None:
    alone = Experiment.create(**ASKED, **AT_ONCE).run(fails_on, progress=False)
    with ThreadPoolExecutor(3) as threads:
        made = Experiment.create(**ASKED, **AT_ONCE)
        result = made.run(fails_on, executor=threads, progress=False)
    assert counted(result) == counted(alone)


def test_a_result_that_comes_after_its_seed_is_void_is_not_used() -> None:
    made = Experiment.create(**ASKED, **FAILING)
    tickets = made.ask(1000)
    first = [each for each in tickets if each.seed == tickets[0].seed]
    made.tell(first[1], 3.0)
    made.fail(first[0], "broken", attempts=2)

    assert made.tell(first[2], 5.0).unused == (first[2].id,)
    assert made.tell(first[1], 3.0).unused == ()
    made.fail(first[3], "broken, too")  # changes nothing
    others = [each for each in tickets if each.seed != first[0].seed]
    made.tell_many((each, run(str(each.arm), each.seed)) for each in others)
    assert made.status().told == len(others) + 1
    assert {arm.pulls for arm in made.result(partial=True).arms} == {len(others) // len(DESIGNS)}


def test_a_batch_may_be_void_as_a_whole() -> None:
    made = Experiment.create(**ASKED, **FAILING)
    for ticket in made.ask(1000):
        made.fail(ticket, "broken", attempts=2)
    assert made.status().told == 0
    assert made.run(run, progress=False).top == ("a",)


def test_an_arm_that_always_fails_stops_the_search_instead_of_voiding_seeds_for_ever() -> None:
    def broken(design: str, seed: int) -> float:
        if design == "c":
            raise OSError("no licence")
        return run(design, seed)

    made = Experiment.create(**ASKED, **AT_ONCE)
    with pytest.raises(Unfinished, match=r"no licence \(all of the last 100 pulls of its arm"):
        made.run(broken, progress=False)
    made.resume()
    assert made.run(run, progress=False).top == ("a",)


@pytest.mark.parametrize("rewards", ["normal", (0, 60), SubGaussian(2)])
def test_an_epsilon_in_percent_is_not_one_relative_to_a_mean(rewards: Any) -> None:
    with pytest.raises(InvalidInput, match="`epsilon` is '1%', but percent are for rewards"):
        select(run, **{**ASKED, "epsilon": "1%", "seeds": "own", "rewards": rewards})


def test_epsilon_in_percent_on_a_command_line_is_refused_for_normal_rewards(tmp_path: Path) -> None:
    (tmp_path / "arms.txt").write_text("a\nb\n")
    asked = ["create", str(tmp_path / "arms.txt"), "-k", "1", "--epsilon", "1%"]
    made = invoke([*asked, "--rewards", "normal", "--store", str(tmp_path / "runs.db")])
    assert made.exit_code == 2
    assert "`epsilon` is 1%, but percent are for rewards between -1 and 1" in made.stderr


def test_void_is_for_shared_seeds_only() -> None:
    with pytest.raises(InvalidInput, match="`on_failure` is 'void', but only shared seeds"):
        Experiment.create(**{**ASKED, "seeds": "own"}, on_failure="void")


def test_void_seeds_leave_the_promise() -> None:
    """Failing does not depend on the output: wrong in at most delta of many runs."""
    from scipy.stats import binomtest

    wrong, runs = 0, 60
    for seed in range(runs):
        means = {"a": 0.0, "b": 0.11, "c": 0.0}

        def fragile(design: str, seed: int, means: dict[str, float] = means) -> float:
            if random.Random(f"{design} fails {seed}").random() < 0.2:
                raise OSError
            return (
                means[design]
                + random.Random(seed).gauss(0, 1)
                + random.Random(f"{design}{seed}").gauss(0, 0.1)
            )

        asked = {**ASKED, "arms": list(means), "delta": 0.3, "seed": seed}
        made = Experiment.create(**asked, on_failure="void", retries=0)
        wrong += made.run(fragile, progress=False).top != ("b",)
    assert binomtest(wrong, runs, 0.3, alternative="greater").pvalue > 0.01


def test_rewards_with_a_range_may_share_seeds() -> None:
    def won(design: str, seed: int) -> bool:
        return random.Random(seed).random() < 0.3 + 0.4 * DESIGNS[design]

    shared = select(won, progress=False, **{**ASKED, "rewards": "binary"})
    assert shared.top == ("a",)
    assert shared.regret_bound is not None
    assert shared.regret_bound <= 0.1


def test_positions_follow_the_batch_and_not_the_arm() -> None:
    arms, times = np.array([0, 2, 2]), np.array([3, 3, 1])
    numbering = Numbering(Pulls(arms, times), 10, np.array([5, 0, 9]), 40)
    by_arm = {
        arm: sorted(
            numbering.positions(numbering.tickets[numbering.arms(numbering.tickets) == arm])
        )
        for arm in (0, 2)
    }
    assert by_arm == {0: [40, 41, 42], 2: [40, 41, 42, 43]}
    assert numbering.stream_end == 44
    assert shared_seed(1, 5) != shared_seed(1, 6) != shared_seed(2, 5)


@pytest.mark.parametrize("certificate", ["pairs", "plans", "split"])
def test_certificates_that_need_independent_arms_are_refused(certificate: Any) -> None:
    for rewards in ("normal", "binary"):
        settings = {**ASKED, "rewards": rewards, "certificate": certificate}
        with pytest.raises(InvalidInput, match="independent of each other"):
            select(run, progress=False, **settings)


def test_what_does_not_go_together_is_refused_before_any_pull() -> None:
    for change, why in (
        ({"rewards": SubGaussian(1)}, "range or be 'normal'"),
        ({"arms": [Arm("a", limit=9), Arm("b")]}, "limits"),
        ({"items": 40, "rewards": (0, 1)}, "items"),
        ({"seeds": "both"}, "`seeds` is 'both'"),
    ):
        with pytest.raises(InvalidInput, match=why):
            select(run, progress=False, **{**ASKED, **change})
    with pytest.raises(UnsupportedGoal, match="lucb needs arms that are independent"):
        select(run, progress=False, **{**ASKED, "rewards": (0, 1), "algorithm": "lucb"})
    with pytest.raises(InvalidInput, match="no arm can retire"):
        Experiment.create(**{**ASKED, "rewards": "binary"}, on_failure="retire")
    made = Experiment.create(**{**ASKED, "rewards": "binary"})
    with pytest.raises(InvalidInput, match="no arm can retire"):
        made.retire("a", "broken")


def test_simulated_correlations_need_shared_seeds() -> None:
    for change, why in (
        ({"correlation": 0.5}, "unless `seeds` is"),
        ({"correlation": 1.5, "seeds": "shared"}, "from 0 to 1"),
        ({"rewards": "beta", "seeds": "shared"}, "'bernoulli' or 'normal'"),
        ({"sd": 0.1, "seeds": "shared"}, "follows from their mean"),
    ):
        settings: dict[str, Any] = change
        with pytest.raises(InvalidInput, match=why):
            simulate("certified", [0.5, 0.2], k=1, epsilon=0.1, **settings)
    with pytest.raises(InvalidInput, match="scores"):
        simulate("certified", scores=np.eye(3), k=1, epsilon=0.1, seeds="shared")


def test_the_command_line_simulates_shared_seeds() -> None:
    words = "simulate --means - -k 1 --epsilon 0.2 --rewards normal --seeds shared --runs 3"
    done = invoke([*words.split(), "--correlation", "0.9", "--algorithm", "certified"], "1\n0\n0\n")
    assert done.exit_code == 0, done.output


def test_arms_on_shared_seeds_are_not_compared_as_if_they_were_independent() -> None:
    def pull(arm: int, seed: int) -> float:
        return float(random.Random(seed).random() < (0.2, 0.8)[arm])

    asked: dict[str, Any] = {"arms": 2, "k": 1, "epsilon": 0.3, "rewards": "binary"}
    found = select(pull, seeds="shared", progress=False, **asked)
    with pytest.raises(InvalidInput, match="needs independent arms, but these were run on shared"):
        found.lift(0)
    with pytest.raises(InvalidInput, match="for independent arms and not for shared seeds"):
        select(pull, seeds="shared", control=0, **asked)
    assert json.loads(found.to_json())["seeds"] == "shared"


BUDGET: dict[str, Any] = {"arms": list(DESIGNS), "k": 1, "budget": 200, "seeds": "shared"}


def test_a_budget_alone_is_spent_on_shared_seeds() -> None:
    seen: dict[int, set[str]] = {}

    def noted(design: str, seed: int) -> float:
        seen.setdefault(seed, set()).add(design)
        return run(design, seed)

    result = select(noted, rewards="normal", progress=False, **BUDGET)
    assert (result.top, result.regret_bound) == (("a",), None)
    assert 190 <= result.pulls <= 200
    assert min(map(len, seen.values())) >= 2  # a seed that one arm alone has seen tells nothing


@pytest.mark.parametrize("rewards", ["binary", (0.0, 1.0), None])
def test_a_budget_on_shared_seeds_takes_any_rewards(rewards: Any) -> None:
    def click(design: str, seed: int) -> float:
        return float(random.Random(seed).random() < 0.2 + 0.6 * DESIGNS[design])

    assert select(click, rewards=rewards, progress=False, **BUDGET).top == ("a",)


@pytest.mark.parametrize("seeds", ["own", "shared"])
@pytest.mark.parametrize(("scale", "offset"), [(2.0**-30, 0.0), (2.0**30, 0.0), (1.0, 2.0**30)])
def test_scale_and_offset_change_no_pull_of_a_budget(
    seeds: str, scale: float, offset: float
) -> None:
    def chosen(scale: float, offset: float) -> list[int]:
        def moved(design: str, seed: int) -> float:
            return offset + scale * round(1024 * run(design, seed)) / 1024

        asked = {**BUDGET, "seeds": seeds, "rewards": "normal"}
        return [arm.pulls for arm in select(moved, progress=False, **asked).arms]

    assert chosen(scale, offset) == chosen(1.0, 0.0)


def test_costs_are_kept_within_the_budget_on_shared_seeds() -> None:
    arms = [Arm(name, cost=1.0 + place) for place, name in enumerate(DESIGNS)]
    result = select(run, rewards="normal", progress=False, **{**BUDGET, "arms": arms})
    assert sum(arm.pulls * cost.cost for arm, cost in zip(result.arms, arms, strict=True)) <= 200


def test_correlated_arms_lose_less_within_the_same_budget() -> None:
    means = np.linspace(0, 1.5, 20)
    how: dict[str, Any] = {"k": 5, "budget": 1000, "rewards": "normal", "sd": 2.0, "runs": 40}
    own = simulate("expected-loss", means, **how)
    shared = simulate("expected-loss", means, seeds="shared", correlation=0.8, **how)
    assert shared.regret.mean() < 0.5 * own.regret.mean()


def test_options_that_need_independent_arms_are_refused_within_a_budget() -> None:
    for change, why in (
        ({"options": {"holdout": 0.3}, "rewards": (0, 1)}, "`holdout` is 0.3, but must be 0 on"),
        ({"max_rounds": 3}, "`max_rounds` is 3, but on shared seeds only"),
        ({"k": 2, "constraint": Matching([0, 0, 1, 1], [0, 1, 0, 1])}, "constraints on shared"),
    ):
        with pytest.raises(InvalidInput, match=why):
            select(run, progress=False, **{**BUDGET, "rewards": "normal", **change})


@pytest.mark.parametrize("door", ["select", "run"])
def test_a_function_without_a_seed_is_refused_before_the_first_pull(door: str) -> None:
    def alone(design: str) -> float:
        raise AssertionError("never called")

    given: dict[str, Any] = {"k": 1, "budget": 40, "rewards": "normal", "seeds": "shared"}

    def call() -> object:
        if door == "select":
            return select(alone, arms=list(DESIGNS), **given)
        return Experiment.create(list(DESIGNS), **given).run(alone, progress=False)

    with pytest.raises(InvalidInput, match="takes no `seed`, but `seeds` is 'shared'"):
        call()
