"""Experiments on a test set: tickets name items, and a reopened experiment asks for the same."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import shortlist
from shortlist import Experiment, Ticket, instances
from shortlist.arrays import FloatArray
from shortlist.errors import ConflictingReward, InvalidInput, StoreExists

SCORES = instances.item_response(6, 60, np.random.default_rng(0))


def made(store: Path | None = None, scores: FloatArray | None = None) -> Experiment:
    return Experiment.create(
        *(6, 2),
        store=store,
        epsilon=0.05,
        items=60,
        scores=scores,
        rewards="binary",
        exist_ok=True,
    )


def score_of(ticket: Ticket) -> float:
    assert isinstance(ticket.arm, int)
    assert isinstance(ticket.item, int)
    return float(SCORES[ticket.arm, ticket.item])


def test_a_ticket_names_its_item_and_no_cell_has_two() -> None:
    experiment = made()
    cells = []
    while handout := experiment.ask(40):
        cells += [(ticket.arm, ticket.item) for ticket in handout]
        experiment.tell_many((ticket, score_of(ticket)) for ticket in handout)

    assert len(set(cells)) == len(cells) == experiment.result().pulls
    assert experiment.result().reached


def test_run_gives_what_select_gives(tmp_path: Path) -> None:
    def score(arm: int, item: int) -> float:
        return float(SCORES[arm, item])

    ran = made(tmp_path / "x.db").run(score, progress=False)
    selected = shortlist.select(
        score, arms=6, k=2, epsilon=0.05, items=60, rewards="binary", progress=False
    )

    assert ran.top == selected.top
    assert ran.pulls == selected.pulls


def test_reopened_in_the_middle_it_asks_for_the_same_cells(tmp_path: Path) -> None:
    once, twice = made(tmp_path / "a.db"), made(tmp_path / "b.db")
    cells: list[list[object]] = [[], []]
    for turn in range(200):
        for which, experiment in enumerate((once, twice)):
            handout = experiment.ask(25)
            cells[which] += [(ticket.arm, ticket.item) for ticket in handout]
            experiment.tell_many((ticket, score_of(ticket)) for ticket in handout)
        if not handout:
            break
        if turn == 3:
            twice.close()
            twice = Experiment.open(tmp_path / "b.db")

    assert cells[0] == cells[1]
    assert once.result().top == twice.result().top


WORKER = """
import sys
import numpy as np
from shortlist import Experiment, instances
scores = instances.item_response(6, 60, np.random.default_rng(0))
with open(sys.argv[2], "a") as log:
    def score(arm, item):
        print(arm, item, file=log, flush=True)
        import time
        time.sleep(0.01)
        return float(scores[arm, item])
    result = Experiment.create(6, 2, store=sys.argv[1], epsilon=0.05, items=60, rewards="binary",
                               exist_ok=True).run(score, worker="w", progress=False)
print(result.to_json())
"""


def test_killed_it_goes_on_with_the_same_cells(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", WORKER, str(tmp_path / "x.db"), str(tmp_path / "log")]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    while not (tmp_path / "log").exists() or len((tmp_path / "log").read_text().split("\n")) < 30:
        time.sleep(0.02)
    process.kill()  # SIGKILL
    process.wait()
    finished = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60)
    result = json.loads(finished.stdout)
    cells = (tmp_path / "log").read_text().split("\n")[:-1]
    alone = made().run(lambda arm, item: float(SCORES[arm, item]), progress=False)

    assert len(cells) - len(set(cells)) <= 1  # what was under way when it was killed
    assert len(set(cells)) == result["pulls"] == alone.pulls
    assert result["top"] == list(alone.top)


def test_known_scores_stay_with_the_experiment(tmp_path: Path) -> None:
    known = SCORES.copy()
    known[:, 20:] = np.nan
    made(tmp_path / "x.db", scores=known).close()
    experiment = Experiment.open(tmp_path / "x.db")
    asked = []
    while handout := experiment.ask(50):
        asked += [ticket.item for ticket in handout]
        experiment.tell_many((ticket, score_of(ticket)) for ticket in handout)

    assert all(isinstance(item, int) and item >= 20 for item in asked)
    with pytest.raises(StoreExists, match="other items, or other scores known of them"):
        made(tmp_path / "x.db")


def test_a_cell_told_twice_with_another_score_is_refused_and_the_first_stays() -> None:
    experiment = made()
    (ticket,) = experiment.ask(1)
    experiment.tell(ticket, 1)
    experiment.tell(ticket, 1)
    with pytest.raises(ConflictingReward, match=r"was told 1\.0 before, which stays"):
        experiment.tell(ticket, 0)


def test_items_that_a_store_cannot_keep_are_refused() -> None:
    with pytest.raises(InvalidInput, match="an item is called"):
        Experiment.create(3, 1, epsilon=0.1, items=[{"question": "?"}, {"question": "!"}])
