"""Calls of `Experiment`: made, opened, asked, told, run."""

import random
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from call_targets import Arguments, Target, record, show
from select_calls import question

import shortlist


def _experiment(**arguments: Any) -> None:
    with shortlist.Experiment.create(**arguments) as experiment:
        show(experiment.status())


def _lived(
    limit: Any,
    worker: Any,
    lease: Any,
    ticket: Any,
    reward: Any,
    reason: Any,
    rows: Any,
    seconds: Any,
    arm: Any,
    partial: Any,
) -> None:
    """A day in the life of an experiment."""
    experiment = shortlist.Experiment.create(3, 1, budget=12, on_failure="retire")
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
        lambda: experiment.retire(arm, reason),
        lambda: experiment.resume(),
        lambda: experiment.result(partial=partial),
        lambda: experiment.status().table(rows),
    ):
        with suppress(shortlist.errors.ShortlistError):
            step()
    show(experiment.status())
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
        "arm": 2,
        "partial": rng.random() < 0.5,
    }


def _run(**arguments: Any) -> None:
    shortlist.Experiment.create(3, 1, budget=9).run(**arguments)


def _running(rng: random.Random) -> Arguments:
    return {"pull": lambda arm: 0.5, "workers": 2, "retries": 0, "worker": "w", "progress": False}


def _opened(store: Any, name: Any, readonly: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "experiments.db"
        shortlist.Experiment.create(3, 1, budget=9, store=file).close()
        place = file if isinstance(store, str) and store == "there" else store
        if isinstance(place, str | Path) and not Path(str(place)).is_absolute():
            place = f"{folder}/{place}"
        shortlist.Experiment.open(place, name, readonly=readonly).close()


def _made(rng: random.Random) -> Arguments:
    more = {"lease": 9, "on_late": rng.choice(("wait", "again", 0.0)), "on_failure": "retire"}
    return {**question(rng), "name": "e", "retries": 1, **more}


TARGETS = (
    Target("Experiment.create", _experiment, _made, shortlist.Experiment.create),
    Target("Experiment", _lived, _living),
    Target("Experiment.run", _run, _running),
    Target("Experiment.open", _opened, record(store="there", name=None, readonly=False)),
)
