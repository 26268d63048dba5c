"""Random calls of the public names: what is usual for each, and then some of it replaced."""

import random
from typing import Any

import numpy as np
from call_targets import Arguments, Target, Trial, record, replaced, show
from client_calls import TARGETS as CLIENTS
from experiment_calls import TARGETS as EXPERIMENTS
from select_calls import TARGETS as SELECTIONS
from select_calls import algorithm_name, goal, options

import shortlist
from shortlist import instances
from shortlist import regret as metrics


def trial(rng: random.Random) -> Trial:
    """A call of a random target."""
    return replaced(rng.choice(TARGETS), rng)


def _simulate(rng: random.Random) -> Arguments:
    name = rng.choice(list(shortlist.ALGORITHMS))
    return {
        "algorithm": name,
        "means": [0.9, 0.5, 0.1, 0.2],
        "k": 1,
        "runs": 1,
        "seed": 3,
        "workers": 1,
        "rewards": rng.choice(("bernoulli", "beta", "gaussian")),
        "sd": rng.choice((None, None, 0.1, 1e-300, 1e200)),
        "options": options(rng, name),
        **goal(rng),
    }


def _compare(rng: random.Random) -> Arguments:
    return {
        "algorithms": rng.choice((["uniform"], ["sar", "uniform"])),
        "means": [0.9, 0.5, 0.1, 0.2],
        "k": 1,
        "budgets": rng.choice((40, [40, 80])),
        "epsilon": rng.choice((None, 0.5)),
        "runs": 2,
        "seconds": 1.0,
        "workers": 1,
    }


def _forecast(rng: random.Random) -> Arguments:
    arms: Arguments = rng.choice(
        (
            {"means": [0.9, 0.5, 0.1]},
            {"n": 5, "prior": (2.0, 3.0)},
            {"pilot": ([5, 6, 7], [1, 2, 6]), "n": 4},
        )
    )
    algorithms = rng.choice((None, ["uniform"], ["lucb", "sar"]))
    items = rng.choice((None, None, 7, ["x", "y"]))
    given = {"algorithms": None if items else algorithms, "items": items}
    return {"k": 1, "runs": 1, "workers": 1, **given, **arms, **goal(rng)}


def _certify(rng: random.Random) -> Arguments:
    return {
        "top": [0],
        "pulls": [50, 60, 70],
        "sums": [40, 20, 10],
        "boundary": 0.5,
        "fresh": True,
        "delta": 0.05,
        "epsilon": rng.choice((None, 0.3)),
        "rewards": rng.choice(((0, 1), "binary", shortlist.SubGaussian(0.5))),
        "strength": rng.choice((None, 10.0)),
    }


def _assess(rng: random.Random) -> Arguments:
    counts = {"a": (50, 40, 35.5), "b": (60, 20, 9), "c": (70, 10, 10)}
    fewer = {arm: row[:2] for arm, row in counts.items()}
    return {
        "counts": rng.choice((counts, fewer)),
        "k": 1,
        "fixed": rng.choice((True, False)),
        "delta": 0.05,
        "rewards": rng.choice((None, (0, 1), (0, 2), shortlist.SubGaussian(0.5))),
        "minimize": rng.choice((True, False)),
    }


def _start(algorithm: object, n_arms: object, k: object, goal: object, options: object) -> object:
    found = shortlist.find(algorithm)  # type: ignore[arg-type]
    problem = shortlist.Problem(n_arms, k, goal)  # type: ignore[arg-type]
    extra: Any = options
    found.check(problem, extra)
    extra = {} if extra is None else extra
    return next(found.start(problem, np.random.default_rng(0), **extra))


def _starting(rng: random.Random) -> Arguments:
    goal = rng.choice((shortlist.FixedConfidence(0.4, 0.2), shortlist.FixedBudget(50)))
    name = rng.choice(list(shortlist.ALGORITHMS))
    return {"algorithm": name, "n_arms": 4, "k": 2, "goal": goal, "options": options(rng, name)}


def _problem(n_arms: Any, k: Any, goal: Any, rewards: Any) -> Any:
    problem = shortlist.Problem(n_arms, k, goal, rewards)
    return problem.unit().complement(), problem.goal, repr(problem)


def _register(**arguments: Any) -> None:
    before = dict(shortlist.ALGORITHMS)
    try:
        shortlist.register(**arguments)
    finally:
        shortlist.ALGORITHMS.clear()
        shortlist.ALGORITHMS.update(before)


def _searching(problem: Any, rng: np.random.Generator) -> Any:
    yield shortlist.Pulls(np.arange(problem.n_arms), np.ones(problem.n_arms, dtype=np.int64))
    return shortlist.Answer(np.array([0]))


def _asked_wrongly(turn: Any, top: Any, bound: Any) -> Any:
    """A search of the user's that asks for anything, and answers anything."""

    def search(problem: Any, rng: np.random.Generator) -> Any:
        yield shortlist.Pulls(*turn) if isinstance(turn, tuple) else turn
        return shortlist.Answer(top, bound)

    return shortlist.simulate(search, [0.9, 0.1], k=1, budget=10)


def _command(template: Any, timeout: Any, arm: Any, seed: Any) -> None:
    shortlist.Command(template, timeout).arguments(arm, seed=seed, draw=0, ticket=0)


def _simulated_and_shown(**arguments: Any) -> None:
    runs = shortlist.simulate(**arguments)
    show(runs)
    runs.summary()


def _compared_and_shown(**arguments: Any) -> None:
    show(shortlist.compare(**arguments))


def _forecast_and_shown(**arguments: Any) -> None:
    show(shortlist.forecast(**arguments))


def _assessed_and_shown(**arguments: Any) -> None:
    show(shortlist.assess(**arguments))


def _hardness_shown(**arguments: Any) -> None:
    show(shortlist.hardness(**arguments))


MEANS = [0.9, 0.8, 0.2, 0.1]


def _few_arms(arms: frozenset[int]) -> bool:
    return len(arms) <= 2


TARGETS = (
    *SELECTIONS,
    *EXPERIMENTS,
    *CLIENTS,
    Target("simulate", _simulated_and_shown, _simulate, shortlist.simulate),
    Target("compare", _compared_and_shown, _compare, shortlist.compare),
    Target("forecast", _forecast_and_shown, _forecast, shortlist.forecast),
    Target("assess", _assessed_and_shown, _assess, shortlist.assess),
    Target("certify", shortlist.certify, _certify),
    Target(
        "item_response",
        shortlist.instances.item_response,
        lambda rng: {"n": 4, "n_items": 6, "rng": np.random.default_rng(rng.randrange(9))},
        shortlist.instances.item_response,
    ),
    Target(
        "item_response_with",
        shortlist.instances.item_response_with,
        lambda rng: {"means": MEANS, "n_items": 6, "rng": np.random.default_rng(rng.randrange(9))},
        shortlist.instances.item_response_with,
    ),
    Target(
        "linear",
        shortlist.instances.linear,
        lambda rng: {"n": 6, "d": 2, "rng": np.random.default_rng(rng.randrange(9))},
        shortlist.instances.linear,
    ),
    Target("levels", instances.levels, record(n=10, groups=2)),
    Target("matching", instances.matching, record(size=3)),
    Target("Arm", shortlist.Arm, record(label="a", cost=1.0, limit=5, group="g")),
    Target("hardness", _hardness_shown, record(means=MEANS, k=2, epsilon=0.1)),
    Target("find", shortlist.find, lambda rng: {"algorithm": algorithm_name(rng)}),
    Target(
        "register",
        _register,
        record(name="mine", search=_searching, goals=None, guarantee="none", version=1),
    ),
    Target("Algorithm.start", _start, _starting),
    Target(
        "a search of one's own",
        _asked_wrongly,
        record(turn=([0, 1], [1, 2]), top=np.array([0]), bound=None),
    ),
    Target("Command", _command, record(template="echo {arm}", timeout=None, arm="a", seed=1)),
    Target("Bounded", shortlist.Bounded, record(low=0.0, high=1.0)),
    Target("SubGaussian", shortlist.SubGaussian, record(sigma=1.0)),
    Target("Normal", shortlist.Normal, record()),
    Target("Score", shortlist.Score, record(value=1.0, cost=2.0, info={"answer": "yes"})),
    Target("FixedConfidence", shortlist.FixedConfidence, record(epsilon=0.1, delta=0.1, budget=9)),
    Target("FixedBudget", shortlist.FixedBudget, record(budget=100)),
    Target(
        "Problem",
        _problem,
        record(n_arms=4, k=2, goal=shortlist.FixedBudget(9), rewards=shortlist.Binary()),
    ),
    Target(
        "Laminar",
        shortlist.Laminar,
        record(groups={"a": [0, 1], "b": [2]}, quotas={"a": (1, 1)}, n_arms=4, k=2),
    ),
    Target("Quotas", shortlist.Quotas, record(groups=["a", "a", "b"], quotas={"a": (1, 1)}, k=2)),
    Target("Matching", shortlist.Matching, record(rows=["a", "a"], columns=["b", "c"], k=1)),
    Target("Matroid", shortlist.Matroid, record(independent=_few_arms, n_arms=4, k=2)),
    Target("two_group", instances.two_group, record(n=10, k=3)),
    Target("uniform", instances.uniform, record(n=10)),
    Target("synthetic", instances.synthetic, record(p=2.0, n=10, k=3)),
    Target("lower_bound", instances.lower_bound, record(n=10, eta=0.1, surplus=0)),
    Target("aggregate_regret", metrics.aggregate_regret, record(means=MEANS, top=[0, 2])),
    Target("misidentified", metrics.misidentified, record(means=MEANS, top=[0, 2])),
    Target("explore_k", metrics.explore_k, record(means=MEANS, top=[0, 2], epsilon=0.1)),
    Target("elementwise", metrics.elementwise, record(means=MEANS, top=[0, 2], epsilon=0.1)),
    Target(
        "expected_aggregate_regret",
        metrics.expected_aggregate_regret,
        record(means=MEANS, tops=[[0], [1]]),
    ),
    Target(
        "misidentification_probability",
        metrics.misidentification_probability,
        record(means=MEANS, tops=[[0], [1]]),
    ),
)
