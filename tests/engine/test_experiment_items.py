"""Experiments on a test set: tickets name items, and a reopened experiment asks for the same."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import until

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


def score_of(ticket: Ticket, scores: FloatArray = SCORES) -> float:
    assert isinstance(ticket.arm, int)
    assert isinstance(ticket.item, int)
    return float(scores[ticket.arm, ticket.item])


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
    log = tmp_path / "log"
    until(lambda: log.exists() and log.read_text().count("\n") >= 30, "the run does not get on")
    process.kill()  # SIGKILL
    process.wait()
    finished = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120)
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
    with pytest.raises(StoreExists, match="made with other scores"):
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


@pytest.mark.parametrize("minimize", [False, True])
def test_scores_known_before_are_in_everything_that_is_shown(minimize: bool) -> None:
    """Arm 0 is known to score best on 200 of 300 items, arm 1 worst; the first pulls say the
    contrary, and cannot make up for it."""
    best, worst = (-3.0, 5.0) if minimize else (5.0, -3.0)
    known = np.full((2, 300), np.nan)
    known[:, :200] = [[best], [worst]]
    experiment = Experiment.create(
        2, 1, items=300, scores=known, epsilon=0.2, rewards=(-3, 5), minimize=minimize
    )
    before = experiment.status().arms
    assert before.means.tolist() == [best, worst]
    experiment.tell_many((each, (worst, best)[int(each.arm)]) for each in experiment.ask(4))

    status, partial = experiment.status(), experiment.result(partial=True)
    assert partial.top == (0,)
    assert status.arms.pulls.tolist() == [2, 2]
    assert status.arms.known.tolist() == [200, 200]
    assert status.arms.means == pytest.approx([(2 * best + worst) / 3, (2 * worst + best) / 3])
    # 200 items are known, 2 are pulled, 98 are open
    ends = sorted([(200 * best + 100 * worst) / 300, (298 * best + 2 * worst) / 300])
    middle = (2 * best + worst) / 3
    assert ends[0] - 1e-9 <= status.arms.low[0] <= middle <= status.arms.high[0] <= ends[1] + 1e-9
    assert status.arms.places == ("in", "out")
    assert status.arms.chances[0] > 0.8
    shown = [(arm.mean, arm.low, arm.high, arm.known) for arm in partial.arms]
    arms = status.arms
    assert shown == list(zip(arms.means, arms.low, arms.high, arms.known, strict=True))
    for text in (str(status), str(partial)):
        assert "400 scores were known before: means and intervals include them." in text
    handout = experiment.ask(50)
    assert handout.state.value == "pending"
    assert experiment.ask(1).meanwhile == 0


def test_intervals_hold_at_every_look_whichever_scores_are_known() -> None:
    """Known are the best cells of some arms and the worst of others, all of one and none of one."""
    rng = np.random.default_rng(5)
    for seed in range(6):
        scores = np.round(rng.random((5, 40)), 2)
        truth = scores.mean(1)
        known, ranked = np.full(scores.shape, np.nan), np.argsort(scores, axis=1)
        for arm, cells in ((0, ranked[0, :25]), (1, ranked[1, 15:]), (2, ranked[2])):
            known[arm, cells] = scores[arm, cells]
        order = rng.permutation(5)
        scores, known, truth = scores[order], known[order], truth[order]
        experiment = Experiment.create(5, 2, items=40, scores=known, epsilon=1e-6, seed=seed)
        while True:
            arms = experiment.status().arms
            assert (arms.low <= truth + 1e-12).all()
            assert (truth <= arms.high + 1e-12).all()
            exact = arms.pulls + arms.known == 40
            assert exact[order == 2].all()
            assert (arms.high[exact] == arms.low[exact]).all()
            assert arms.means[exact] == pytest.approx(truth[exact], abs=1e-12)
            if not (handout := experiment.ask(30)):
                break
            experiment.tell_many((each, score_of(each, scores)) for each in handout)
        shown = experiment.result().arms
        assert [arm.mean for arm in shown] == pytest.approx(arms.means.tolist())


def test_the_mean_that_is_shown_is_unbiased_whichever_scores_are_known() -> None:
    """Known are the best cells alone: the mean of all scores would be far too high."""
    scores = np.sort(np.random.default_rng(1).random((2, 100)), axis=1)
    known = np.where(scores >= scores[:, [70]], scores, np.nan)
    off = []
    for seed in range(60):
        experiment = Experiment.create(2, 1, items=100, scores=known, budget=40, seed=seed)
        for each in experiment.ask(20):
            experiment.tell(each, score_of(each, scores))
        arms = experiment.status().arms
        off.append(arms.means[arms.pulls > 0] - scores.mean(1)[arms.pulls > 0])
    errors = np.concatenate(off)
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(errors.size)


def test_select_shows_the_exact_mean_of_an_arm_scored_on_every_item() -> None:
    known = np.full((3, 60), np.nan)
    known[:, :20] = 1

    def score(arm: int, item: int) -> float:
        return float(item % 2) if arm else float(item % 3 == 0)

    asked: dict[str, Any] = {"arms": 3, "k": 1, "items": 60, "scores": known, "epsilon": 1e-4}
    found = shortlist.select(score, progress=False, **asked)
    truth = [
        np.mean([1.0 if item < 20 else score(arm, item) for item in range(60)]) for arm in (0, 1)
    ]
    for arm in found.arms:
        assert arm.low <= truth[min(int(arm.label), 1)] <= arm.high
        if arm.pulls == 40:
            assert arm.low == arm.mean == arm.high == truth[min(int(arm.label), 1)]
    assert sum(arm.pulls == 40 for arm in found.arms) >= 2
