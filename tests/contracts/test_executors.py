"""One contract for everything that evaluations can run on: the same seed gives the same result on
all of them."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from multiprocessing import active_children
from pathlib import Path
from types import ModuleType
from typing import Any

import evaluations
import numpy as np
import pytest

import shortlist
from shortlist.algorithms import ALGORITHMS, Algorithm
from shortlist.engine.executors import RayExecutor
from shortlist.errors import InvalidInput, InvalidReward
from shortlist.problem import FixedBudget, Problem
from shortlist.search import Answer, Pulls, Rewards, Search

N_ARMS = 8


@dataclass
class Place:
    """Somewhere to evaluate: the arguments of `select` that name it, and whether its functions are
    async."""

    arguments: dict[str, Any] = field(default_factory=dict)
    asynchronous: bool = False
    survives: bool = False  # the death of a worker

    def select(self, function: str, **arguments: Any) -> shortlist.Result:
        chosen = getattr(evaluations, f"{function}_async" if self.asynchronous else function)
        name = "pull_many" if function.endswith("many") else "pull"
        return shortlist.select(**{name: chosen, **DEFAULTS, **self.arguments, **arguments})


DEFAULTS: dict[str, Any] = {
    "arms": N_ARMS,
    "k": 2,
    "budget": 120,
    "algorithm": "sar",
    "seed": 7,
    "progress": False,
}


@contextmanager
def in_this_thread() -> Iterator[Place]:
    yield Place()


@contextmanager
def three_threads() -> Iterator[Place]:
    yield Place({"workers": 3})


@contextmanager
def two_processes() -> Iterator[Place]:
    yield Place({"executor": "processes", "workers": 2}, survives=True)


@contextmanager
def threads_of_the_user() -> Iterator[Place]:
    with ThreadPoolExecutor(5) as pool:
        yield Place({"executor": pool})


@contextmanager
def processes_of_the_user() -> Iterator[Place]:
    with ProcessPoolExecutor(2) as pool:
        yield Place({"executor": pool, "workers": 3})


@contextmanager
def event_loop() -> Iterator[Place]:
    yield Place({"workers": 4}, asynchronous=True)


@contextmanager
def dask_cluster() -> Iterator[Place]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield Place({"executor": client}, survives=True)


@contextmanager
def ray_cluster() -> Iterator[Place]:
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield Place({"executor": "ray"}, survives=True)
    finally:
        ray.shutdown()


LOCAL = (
    in_this_thread,
    three_threads,
    two_processes,
    threads_of_the_user,
    processes_of_the_user,
    event_loop,
)
CLUSTERS = (dask_cluster, ray_cluster)


class StandIn(ModuleType):
    """As much of Ray as starting and ending it takes."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.running, self.log = False, list[str]()

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **options: object) -> None:
        self.log.append("init")

    def shutdown(self) -> None:
        self.log.append("shutdown")

    def remote(self, function: object) -> "StandIn":
        return self

    def options(self, **options: object) -> "StandIn":
        return self


@contextmanager
def watched() -> Iterator[list[Rewards]]:
    """The replies that a search called "watched" gets, which pulls every arm ten times in each of
    two entries."""
    replies: list[Rewards] = []

    def search(problem: Problem, rng: np.random.Generator) -> Search:
        arms = np.tile(np.arange(problem.n_arms), 2)
        replies.append((yield Pulls(arms, np.full(arms.size, 10))))
        return Answer(np.array([0]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            ALGORITHMS, "watched", Algorithm("watched", search, (FixedBudget,), "none", "here")
        )
        yield replies


def the_result_is_that_of_this_thread(place: Place, scratch: Path) -> None:
    for function in ("noisy", "noisy_many"):
        assert place.select(function) == Place().select(function)


def every_pull_of_an_arm_is_evaluated_anew(place: Place, scratch: Path) -> None:
    with watched() as replies:
        place.select("unseeded", algorithm="watched", budget=20 * N_ARMS)
    (reply,) = replies
    spread = reply.squares / 10 - (reply.sums / 10) ** 2
    assert (spread > 0.001).all()  # ten equal rewards have none
    assert len(set(reply.sums)) == reply.sums.size


def an_error_names_the_arm_and_leaves_the_executor_at_work(place: Place, scratch: Path) -> None:
    with pytest.raises(KeyError, match="no such page") as caught:
        place.select("failing")
    assert any(
        note.startswith("raised while evaluating arm 3, pull ") for note in caught.value.__notes__
    )
    assert len(place.select("noisy").top) == 2


def a_refused_reward_leaves_the_executor_at_work(place: Place, scratch: Path) -> None:
    with pytest.raises(
        InvalidReward, match=r"a reward of arm 3 is 1\.5, but must be a number between 0 and 1"
    ):
        place.select("too_large", rewards=(0, 1))
    assert len(place.select("noisy").top) == 2


def an_evaluation_whose_worker_is_lost_is_made_again(place: Place, scratch: Path) -> None:
    if place.survives:  # the others have no workers to lose, or they are the user's to replace
        fatal = evaluations.Fatal(scratch, deaths=2)
        result = shortlist.select(fatal, **{**DEFAULTS, **place.arguments})
        assert len(list(scratch.iterdir())) == 2
        assert result == Place().select("noisy")


CLAUSES = (
    the_result_is_that_of_this_thread,
    every_pull_of_an_arm_is_evaluated_anew,
    an_error_names_the_arm_and_leaves_the_executor_at_work,
    a_refused_reward_leaves_the_executor_at_work,
    an_evaluation_whose_worker_is_lost_is_made_again,
)


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("somewhere", LOCAL)
def test_wherever_evaluations_run(
    somewhere: Callable[[], AbstractContextManager[Place]],
    clause: Callable[[Place, Path], None],
    tmp_path: Path,
) -> None:
    with somewhere() as place:
        clause(place, tmp_path)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_keeps_every_clause(
    cluster: Callable[[], AbstractContextManager[Place]], tmp_path: Path
) -> None:
    """In one test, since it takes seconds to start one."""
    with cluster() as place:
        for clause in CLAUSES:
            clause(place, tmp_path)


def test_an_evaluation_that_always_ends_its_process_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(BrokenExecutor) as caught:
        shortlist.select(
            evaluations.Fatal(tmp_path, deaths=99), **DEFAULTS, executor="processes", workers=1
        )
    assert any(note.startswith("raised while evaluating arm") for note in caught.value.__notes__)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_broken_executor_of_the_user_is_an_error_that_names_the_arm(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1) as pool, pytest.raises(BrokenExecutor) as caught:
        shortlist.select(evaluations.Fatal(tmp_path, deaths=99), **DEFAULTS, executor=pool)
    assert any(note.startswith("raised while evaluating arm") for note in caught.value.__notes__)


def test_processes_are_ended_at_once_when_an_evaluation_fails(tmp_path: Path) -> None:
    others = set(active_children())
    with pytest.raises(KeyError):
        shortlist.select(
            evaluations.OneSlow(tmp_path / "done"), **DEFAULTS, executor="processes", workers=2
        )
    assert set(active_children()) <= others
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize("executor", ["thread", 3, ThreadPoolExecutor, object()])
def test_what_is_no_executor_is_refused(executor: object) -> None:
    with pytest.raises(
        InvalidInput,
        match=r"`executor` is .*, but must be 'threads', 'processes', 'ray', an executor",
    ):
        shortlist.select(evaluations.unseeded, **DEFAULTS, executor=executor)


def test_ray_is_started_and_ended_where_nobody_else_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a stand-in, since starting Ray takes seconds; the cluster above is the real one."""
    ray = StandIn()
    monkeypatch.setitem(sys.modules, "ray", ray)
    for running, expected in ((False, ["init", "shutdown"]), (True, [])):
        ray.running, ray.log = running, []
        with RayExecutor():
            pass
        assert ray.log == expected


def test_ray_that_is_not_installed_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidInput, match=r"Ray is not installed: pip install 'shortlist\[ray\]'"):
        shortlist.select(evaluations.unseeded, **DEFAULTS, executor="ray")


def test_a_function_that_no_process_can_take_is_refused_in_words() -> None:
    with pytest.raises(
        InvalidInput, match=r"the function cannot be sent to another process .* top of a module"
    ):
        shortlist.select(lambda arm: 1, arms=4, k=1, budget=20, executor="processes", workers=1)
