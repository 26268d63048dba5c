"""Experiments made by version 0.1 open and go on as they would have gone on there.

The files are as that version wrote them, each stopped half-way but for one; `answers.json` holds
what it answered when it went on. They are never written anew."""

import json
import random
import shutil
from pathlib import Path

import pytest

from shortlist.experiment import Experiment, Ticket, import_lines
from shortlist.storage.memory import MemoryStore

FILES = Path(__file__).with_name("version_0_1")
ANSWERS = json.loads((FILES / "answers.json").read_text(encoding="utf-8"))
MEANS = {"red": 0.31, "green": 0.52, "blue": 0.35, "grey": 0.12, "black": 0.47, "white": 0.28}


def clicked(ticket: Ticket) -> float:
    return float(random.Random(ticket.seed).random() < MEANS[str(ticket.arm)])


def finish(experiment: Experiment) -> dict[str, object]:
    """Go on to the end, as the worker who began; what it answers, as it is written in the file."""
    told = experiment.status().told
    while tickets := experiment.ask(50, worker="ann"):
        experiment.tell_many([(ticket, clicked(ticket)) for ticket in tickets])
    result = experiment.result()
    pulls = [arm.pulls for arm in result.arms]
    return {
        "told": told,
        "top": list(result.top),
        "pulls": pulls,
        "regret_bound": result.regret_bound,
    }


def same(found: dict[str, object], answer: dict[str, object]) -> bool:
    """Whether the answers agree, up to what bounds are rounded outward by."""
    bound = answer["regret_bound"]
    rounded = None if bound is None else pytest.approx(bound, rel=1e-12)
    return found == {**answer, "regret_bound": rounded}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_experiment_of_version_0_1_goes_on_as_it_would_have(name: str, tmp_path: Path) -> None:
    store = shutil.copy(FILES / "experiments.db", tmp_path)
    with Experiment.open(store, name) as experiment:
        assert same(finish(experiment), ANSWERS[name])


def test_an_export_of_version_0_1_can_be_imported_and_goes_on() -> None:
    store = MemoryStore()
    import_lines((FILES / "certified.jsonl").read_text(encoding="utf-8").splitlines(), store)
    assert same(finish(Experiment.open(store)), ANSWERS["certified"])
