"""Every batch that a search asks for, recorded for each certificate, reward model, test set, cost
and limit: a change of the code that is not meant to change a search leaves all of them as they are.

Where a change is meant, raise the version of the algorithm, if that version is released, and write
the records again: `python tests/contracts/test_golden_batches.py`."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shortlist.algorithms import ALGORITHMS, find
from shortlist.arrays import FloatArray
from shortlist.constraints import Quotas
from shortlist.driver import counted
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Items, Problem
from shortlist.reward_models import Binary, Bounded, Normal, RewardModel, SubGaussian, Undeclared
from shortlist.search import Dialogue, Pulls, Rewards
from shortlist.simulation.worlds import (
    Bandit,
    BernoulliBandit,
    BetaBandit,
    GaussianBandit,
    NormalBandit,
    ScoreTable,
)

GOLDEN = Path(__file__).with_name("golden_batches.json")
SEED = 2017


@dataclass(frozen=True)
class Case:
    """A search on an instance: who is asked what, about which arms."""

    algorithm: str
    n: int
    k: int
    goal: Goal
    rewards: str = "bernoulli"
    settings: dict[str, Any] = field(default_factory=dict)  # of the problem
    options: dict[str, Any] = field(default_factory=dict)  # of the search
    items: int = 0


def confidence(epsilon: float, budget: float | None = None) -> Goal:
    return FixedConfidence(epsilon, 0.05, budget)


def costs(n: int) -> tuple[float, ...]:
    return tuple(float(1 + arm % 3) for arm in range(n))


def limits(n: int, most: int) -> tuple[int | None, ...]:
    return tuple(None if arm % 4 == 0 else most + arm % 5 for arm in range(n))


def quotas(n: int, k: int) -> dict[str, Any]:
    """One to two of the first of three groups, and at most half of the last."""
    groups = [arm % 3 for arm in range(n)]
    return {"constraint": Quotas(groups, {0: (1, 2), 2: (0, k // 2)}, k=k)}


CERTIFIED: dict[str, Case] = {
    # few arms: pairs
    "pairs, 0/1": Case("certified", 12, 3, confidence(0.05)),
    "pairs, one of 60": Case("certified", 60, 1, confidence(0.1)),
    "pairs, all but one": Case("certified", 15, 14, confidence(0.02)),
    "pairs, scores": Case("certified", 12, 3, confidence(0.05), "beta"),
    "pairs, sub-Gaussian": Case("certified", 12, 3, confidence(0.1), "gaussian"),
    "pairs, shifted range": Case("certified", 12, 3, confidence(0.5), "shifted"),
    "pairs, minimize": Case("certified", 12, 3, confidence(0.05), settings={"minimize": True}),
    "pairs, costs": Case("certified", 12, 3, confidence(0.05), settings={"costs": costs(12)}),
    "pairs, costs and budget": Case(
        "certified", 12, 3, confidence(0.02, 3000.5), settings={"costs": costs(12)}
    ),
    "pairs, budget": Case("certified", 12, 3, confidence(0.02, 3000)),
    "pairs, limits": Case(
        "certified", 12, 3, confidence(0.05), settings={"limits": limits(12, 200)}
    ),
    "pairs, limits of many": Case(
        "certified", 120, 30, confidence(0.05), settings={"limits": limits(120, 40)}
    ),
    "pairs, five rounds": Case("certified", 12, 3, confidence(0.05), options={"max_rounds": 5}),
    "pairs, large batches": Case("certified", 12, 3, confidence(0.05), options={"min_batch": 500}),
    "pairs, quotas": Case("certified", 12, 4, confidence(0.05), settings=quotas(12, 4)),
    "pairs, quotas and scores": Case(
        "certified", 12, 4, confidence(0.05), "beta", settings=quotas(12, 4)
    ),
    # many arms: plans
    "plans, 0/1": Case("certified", 150, 40, confidence(0.04)),
    "plans, half": Case("certified", 200, 100, confidence(0.03)),
    "plans, scores": Case("certified", 150, 40, confidence(0.04), "beta"),
    "plans, minimize": Case("certified", 150, 40, confidence(0.04), settings={"minimize": True}),
    "plans, costs": Case("certified", 150, 40, confidence(0.04), settings={"costs": costs(150)}),
    # many arms: split
    "split, 0/1": Case("certified", 150, 15, confidence(0.05)),
    "split, as asked": Case(
        "certified", 60, 20, confidence(0.05), options={"certificate": "split"}
    ),
    "split, scores": Case("certified", 60, 20, confidence(0.05), "beta"),
    "split, sub-Gaussian": Case("certified", 150, 40, confidence(0.1), "gaussian"),
    "split, budget": Case("certified", 150, 15, confidence(0.05, 20_000)),
    "split, large batches": Case(
        "certified", 150, 15, confidence(0.05), options={"min_batch": 2000}
    ),
    # a test set: items
    "items, 0/1": Case("certified", 20, 1, confidence(0.05), items=200),
    "items, five": Case("certified", 20, 5, confidence(0.05), items=200),
    "items, scores": Case("certified", 20, 5, confidence(0.05), "beta", items=200),
    "items, quotas": Case("certified", 20, 5, confidence(0.05), settings=quotas(20, 5), items=200),
    "items, minimize": Case(
        "certified", 20, 5, confidence(0.05), settings={"minimize": True}, items=200
    ),
    "items, budget": Case("certified", 20, 5, confidence(0.01, 1000), items=200),
    "items, costs and budget": Case(
        "certified", 20, 5, confidence(0.01, 1000.5), settings={"costs": costs(20)}, items=200
    ),
    "items, large batches": Case(
        "certified", 20, 1, confidence(0.05), options={"min_batch": 40}, items=200
    ),
    "items, ahead": Case(
        "certified", 20, 5, confidence(0.05), options={"min_batch": 16, "window": 96}, items=200
    ),
    "items, ahead, one by one": Case(
        "certified", 50, 2, confidence(0.05), options={"min_batch": 16, "window": 96}, items=200
    ),
    "items, four rounds": Case(
        "certified", 20, 5, confidence(0.05), options={"max_rounds": 4}, items=200
    ),
    # a budget alone
    "expected-loss, 0/1": Case("expected-loss", 60, 10, FixedBudget(3000)),
    "expected-loss, scores": Case("expected-loss", 60, 10, FixedBudget(3000), "beta"),
    "expected-loss, sub-Gaussian": Case("expected-loss", 60, 10, FixedBudget(3000), "gaussian"),
    "expected-loss, undeclared": Case("expected-loss", 60, 10, FixedBudget(3000), "undeclared"),
    "expected-loss, quotas": Case(
        "expected-loss", 60, 10, FixedBudget(3000), settings=quotas(60, 10)
    ),
    "expected-loss, costs": Case(
        "expected-loss", 60, 10, FixedBudget(3000.5), settings={"costs": costs(60)}
    ),
    "expected-loss, limits": Case(
        "expected-loss", 60, 10, FixedBudget(1500), settings={"limits": limits(60, 30)}
    ),
    "expected-loss, five rounds": Case(
        "expected-loss", 60, 10, FixedBudget(3000), options={"max_rounds": 5}
    ),
    "expected-loss, large batches": Case(
        "expected-loss", 60, 10, FixedBudget(3000), options={"min_batch": 300}
    ),
    "expected-loss, items": Case("expected-loss", 20, 5, FixedBudget(800), items=200),
}
GOALS: tuple[Goal, ...] = (confidence(0.2), FixedBudget(2000))
OTHERS = {
    f"{name}, {type(goal).__name__}": Case(
        name,
        40,
        1 if each.only_normal or name == "track-and-stop" else 8,
        goal,
        "normal" if each.only_normal else "bernoulli",
    )
    for name, each in ALGORITHMS.items()
    if name not in ("certified", "expected-loss")
    for goal in GOALS
    if type(goal) in each.goals
}
CASES = CERTIFIED | OTHERS


def world_of(case: Case) -> tuple[Callable[[Pulls], Rewards], RewardModel]:
    """What answers a batch, and what is declared of its rewards."""
    means = np.random.default_rng(case.n).permutation(np.linspace(0.2, 0.8, case.n))
    rng = np.random.default_rng(SEED)
    if case.items:
        shape = (case.n, case.items)
        uniform = rng.random(case.items)  # hard items are hard for all arms
        mixed = 0.5 * uniform + 0.5 * rng.random(shape)
        scores = (mixed < means[:, None]).astype(float) if case.rewards == "bernoulli" else mixed
        table = ScoreTable(scores, rng, "shared")
        return table.pull, Binary() if case.rewards == "bernoulli" else Bounded()
    bandit, model = BANDITS[case.rewards](means)

    def pull(batch: Pulls) -> Rewards:
        rewards = bandit.pull(batch.arms, batch.times, rng)
        if case.rewards != "shifted":
            return rewards
        sums, squares = rewards.sums, rewards.squares  # to 1000 + 10 x
        return Rewards(
            1000 * batch.times + 10 * sums, 1e6 * batch.times + 2e4 * sums + 100 * squares
        )

    return pull, model


BANDITS: dict[str, Callable[[FloatArray], tuple[Bandit, RewardModel]]] = {
    "bernoulli": lambda means: (BernoulliBandit(means), Binary()),
    "beta": lambda means: (BetaBandit(means, sd=0.1), Bounded()),
    "shifted": lambda means: (BetaBandit(means, sd=0.1), Bounded(1000, 1010)),
    "gaussian": lambda means: (GaussianBandit(7 + means), SubGaussian(0.5)),
    "normal": lambda means: (NormalBandit(7 + means, 0.5), Normal()),
    "undeclared": lambda means: (GaussianBandit(7 + means), Undeclared()),
}


def golden_record(case: Case) -> dict[str, object]:
    """A short digest of every batch, the pulls in all, and the answer."""
    pull, model = world_of(case)
    items = Items(case.items) if case.items else None
    problem = Problem(case.n, case.k, case.goal, model, items=items, **case.settings)
    run = counted(find(case.algorithm), problem, np.random.default_rng(SEED), **case.options)
    digests = []
    dialogue = Dialogue(run)
    while dialogue.result is None:
        batch = dialogue.unanswered[0]
        content = batch.arms.astype("<i8").tobytes() + batch.times.astype("<i8").tobytes()
        digests.append(blake2b(content, digest_size=2).hexdigest())
        dialogue.reply(pull(batch))
    outcome = dialogue.result
    bound = outcome.answer.regret_bound
    return {
        "version": find(case.algorithm).version,
        "pulls": int(outcome.pulls.sum()),
        "top": sorted(outcome.answer.top.tolist()),
        "bound": None if bound is None else float(f"{bound:.10g}"),
        "batches": " ".join(digests),
    }


@pytest.mark.parametrize("name", CASES)
def test_every_batch_is_the_one_on_record(name: str) -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert name in golden, "a new case needs its record: see the top of this file"
    assert golden_record(CASES[name]) == golden[name], (
        "if meant, raise the version: see the top of this file"
    )


def write_golden_records() -> None:
    """Write the records again, one per line."""
    records = {name: golden_record(case) for name, case in CASES.items()}
    lines = [f"  {json.dumps(name)}: {json.dumps(record)}" for name, record in records.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write_golden_records()
