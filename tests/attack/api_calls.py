"""Random calls of the public names: what is usual for each, and then some of it replaced."""

import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from hostile import hostile

import shortlist
from shortlist import instances, metrics
from shortlist.algorithms.options import options_of

Arguments = dict[str, Any]
ENOUGH = 300  # evaluations, after which the user's function has had its say


class UsersOwn(Exception):
    """Raised by a function of the user, which is nobody's fault here."""


@dataclass(frozen=True)
class Target:
    """Something public that is called, and what it is usually called with."""

    name: str
    function: Callable[..., Any]
    usual: Callable[[random.Random], Arguments]
    public: Callable[..., Any] | None = None  # what it stands for, if it takes more than is usual

    def unusual(self, arguments: Arguments) -> list[str]:
        """What else could be given."""
        if self.public is None:
            return []
        return [
            name for name in signature(self.public).parameters if name not in {*arguments, "clock"}
        ]


@dataclass(frozen=True)
class Trial:
    """One call, ready to be made."""

    target: Target
    arguments: Arguments
    replaced: tuple[str, ...]

    def __call__(self) -> Any:
        return self.target.function(**self.arguments)

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self.arguments.items())
        return f"{self.target.name}({shown}), replaced: {', '.join(self.replaced) or 'nothing'}"


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # a number of too many digits
        return "a huge number"
    return text if len(text) < 200 else f"{text[:200]}..."


def trial(rng: random.Random) -> Trial:
    """A call of a random target with none to all of its arguments replaced, dropped or added."""
    target = rng.choice(TARGETS)
    arguments = target.usual(rng)
    replaced = []
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        if not arguments:
            break
        name = rng.choice(list(arguments))
        arguments[name] = hostile(rng)
        replaced.append(name)
    others = target.unusual(arguments)
    if others and rng.random() < 0.3:
        replaced.append(rng.choice(others))
        arguments[replaced[-1]] = hostile(rng)
    if rng.random() < 0.02:
        arguments.pop(rng.choice(list(arguments)), None) if arguments else None
    if rng.random() < 0.01:
        arguments["unheard_of"] = hostile(rng)
    return Trial(target, arguments, tuple(replaced))


# What is usual.


def _pull() -> Callable[..., float]:
    made = iter(range(ENOUGH))

    def pull(arm: object, seed: int) -> float:
        if next(made, None) is None:
            raise UsersOwn("enough")
        return float(seed % 2)

    return pull


def _goal(rng: random.Random) -> Arguments:
    confidence = {"epsilon": rng.choice((0.3, 0.5)), "delta": rng.choice((0.1, 0.3))}
    return rng.choice((confidence, {"budget": 60}, {**confidence, "budget": 60}))


def _options(rng: random.Random, algorithm: str) -> Arguments:
    """Options that the algorithm takes, some of them replaced."""
    name = "certified" if algorithm == "auto" else algorithm
    there = options_of(shortlist.ALGORITHMS[name].search)
    kept = rng.sample(list(there), rng.randint(0, len(there)))
    return {each: rng.choice((there[each].default, hostile(rng))) for each in kept}


def _algorithm(rng: random.Random) -> str:
    return rng.choice(("auto", *shortlist.ALGORITHMS))


def _question(rng: random.Random) -> Arguments:
    return {
        "arms": rng.choice((4, ["a", "b", "c"], {"x": 1, "y": 2})),
        "k": 1,
        "rewards": rng.choice(((0, 1), "binary", shortlist.SubGaussian(0.5))),
        "algorithm": (name := _algorithm(rng)),
        "options": _options(rng, name),
        "seed": rng.randrange(5),
        **_goal(rng),
    }


def _select(rng: random.Random) -> Arguments:
    return {"pull": _pull(), "progress": False, "workers": None, **_question(rng)}


def _select_many(rng: random.Random) -> Arguments:
    pull = _pull()

    def pull_many(arm: object, times: int, seed: int) -> list[float]:
        return [pull(arm, seed + draw) for draw in range(times)]

    return {"pull_many": pull_many, "batch": 20, "progress": False, **_question(rng)}


def _simulate(rng: random.Random) -> Arguments:
    name = rng.choice(list(shortlist.ALGORITHMS))
    return {
        "algorithm": name,
        "means": [0.9, 0.5, 0.1, 0.2],
        "k": 1,
        "runs": 1,
        "seed": 3,
        "jobs": 1,
        "rewards": rng.choice(("bernoulli", "beta", "gaussian")),
        "options": _options(rng, name),
        **_goal(rng),
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
    return {"k": 1, "runs": 1, "jobs": 1, **given, **arms, **_goal(rng)}


def _certify(rng: random.Random) -> Arguments:
    return {
        "top": [0],
        "pulls": [50, 60, 70],
        "sums": [40, 20, 10],
        "boundary": 0.5,
        "delta": 0.05,
        "epsilon": rng.choice((None, 0.3)),
        "rewards": rng.choice(((0, 1), "binary", shortlist.SubGaussian(0.5))),
        "strength": rng.choice((None, 10.0)),
    }


def _record(**fields: Any) -> Callable[[random.Random], Arguments]:
    return lambda rng: dict(fields)


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
    return {"algorithm": name, "n_arms": 4, "k": 2, "goal": goal, "options": _options(rng, name)}


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


def _show(outcome: Any) -> None:
    for shown in (str, repr, lambda each: each._repr_html_()):
        shown(outcome)


def _experiment(**arguments: Any) -> None:
    with shortlist.Experiment.create(**arguments) as experiment:
        _show(experiment.status())


def _lived(
    limit: Any,
    worker: Any,
    lease: Any,
    ticket: Any,
    reward: Any,
    reason: Any,
    rows: Any,
    seconds: Any,
) -> None:
    """A day in the life of an experiment."""
    experiment = shortlist.Experiment.create(3, 1, budget=12)
    for step in (
        lambda: experiment.ask(limit, worker, lease=lease),
        lambda: experiment.ask(limit, worker, alive=seconds),
        lambda: experiment.tell(ticket, reward),
        lambda: experiment.tell_many([(ticket, reward), (1, 0.5)]),
        lambda: experiment.tell_many(reward),
        lambda: experiment.fail(ticket, reason),
        lambda: experiment.release(worker, overdue=seconds),
        lambda: experiment.release(tickets=reward),
        lambda: experiment.release(tickets=[ticket]),
        lambda: experiment.resume(),
        lambda: experiment.result(),
        lambda: experiment.status().table(rows),
    ):
        with suppress(shortlist.errors.ShortlistError):
            step()
    _show(experiment.status())
    str(experiment)


def _living(rng: random.Random) -> Arguments:
    return {
        "limit": 3,
        "worker": "ann",
        "lease": 60.0,
        "ticket": 0,
        "reward": 1,
        "reason": "no network",
        "rows": 2,
        "seconds": 5,
    }


def _run(**arguments: Any) -> None:
    shortlist.Experiment.create(3, 1, budget=9).run(**arguments)


def _running(rng: random.Random) -> Arguments:
    return {"pull": lambda arm: 0.5, "jobs": 2, "retries": 0, "worker": "w", "progress": False}


def _opened(store: Any, name: Any, readonly: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "experiments.db"
        shortlist.Experiment.create(3, 1, budget=9, store=file).close()
        place = file if isinstance(store, str) and store == "there" else store
        if isinstance(place, str | Path) and not Path(str(place)).is_absolute():
            place = f"{folder}/{place}"
        shortlist.Experiment.open(place, name, readonly=readonly).close()


def _command(template: Any, timeout: Any, arm: Any, seed: Any) -> None:
    shortlist.Command(template, timeout).arguments(arm, seed=seed, draw=0, ticket=0)


def _simulated_and_shown(**arguments: Any) -> None:
    runs = shortlist.simulate(**arguments)
    _show(runs)
    runs.summary()


def _selected_and_shown(**arguments: Any) -> None:
    result = shortlist.select(**arguments)
    _show(result)
    result.to_json()


def _forecast_and_shown(**arguments: Any) -> None:
    _show(shortlist.forecast(**arguments))


def _hardness_shown(**arguments: Any) -> None:
    _show(shortlist.hardness(**arguments))


MEANS = [0.9, 0.8, 0.2, 0.1]
TARGETS = (
    Target("select", _selected_and_shown, _select, shortlist.select),
    Target("select", _selected_and_shown, _select_many, shortlist.select),
    Target("simulate", _simulated_and_shown, _simulate, shortlist.simulate),
    Target("forecast", _forecast_and_shown, _forecast, shortlist.forecast),
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
    Target("Arm", shortlist.Arm, _record(label="a", cost=1.0, limit=5)),
    Target("hardness", _hardness_shown, _record(means=MEANS, k=2, epsilon=0.1)),
    Target("find", shortlist.find, lambda rng: {"algorithm": _algorithm(rng)}),
    Target(
        "register",
        _register,
        _record(name="mine", search=_searching, goals=None, guarantee="none", version=1),
    ),
    Target("Algorithm.start", _start, _starting),
    Target(
        "a search of one's own",
        _asked_wrongly,
        _record(turn=([0, 1], [1, 2]), top=np.array([0]), bound=None),
    ),
    Target(
        "Experiment.create",
        _experiment,
        lambda rng: {**_question(rng), "name": "e", "lease": 9},
        shortlist.Experiment.create,
    ),
    Target("Experiment", _lived, _living),
    Target("Experiment.run", _run, _running),
    Target("Experiment.open", _opened, _record(store="there", name=None, readonly=False)),
    Target("Command", _command, _record(template="echo {arm}", timeout=None, arm="a", seed=1)),
    Target("Bounded", shortlist.Bounded, _record(low=0.0, high=1.0)),
    Target("SubGaussian", shortlist.SubGaussian, _record(sigma=1.0)),
    Target("FixedConfidence", shortlist.FixedConfidence, _record(epsilon=0.1, delta=0.1, budget=9)),
    Target("FixedBudget", shortlist.FixedBudget, _record(budget=100)),
    Target(
        "Problem",
        _problem,
        _record(n_arms=4, k=2, goal=shortlist.FixedBudget(9), rewards=shortlist.Binary()),
    ),
    Target("two_group", instances.two_group, _record(n=10, k=3)),
    Target("uniform", instances.uniform, _record(n=10)),
    Target("synthetic", instances.synthetic, _record(p=2.0, n=10, k=3)),
    Target("lower_bound", instances.lower_bound, _record(n=10, eta=0.1, surplus=0)),
    Target("aggregate_regret", metrics.aggregate_regret, _record(means=MEANS, top=[0, 2])),
    Target("misidentified", metrics.misidentified, _record(means=MEANS, top=[0, 2])),
    Target("explore_k", metrics.explore_k, _record(means=MEANS, top=[0, 2], epsilon=0.1)),
    Target("elementwise", metrics.elementwise, _record(means=MEANS, top=[0, 2], epsilon=0.1)),
    Target(
        "expected_aggregate_regret",
        metrics.expected_aggregate_regret,
        _record(means=MEANS, tops=[[0], [1]]),
    ),
    Target(
        "misidentification_probability",
        metrics.misidentification_probability,
        _record(means=MEANS, tops=[[0], [1]]),
    ),
)
