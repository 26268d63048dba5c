"""Test sets at a service: tickets name items, by HTTP and by the client, and after a kill -9."""

import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from services import Call

from shortlist import Client, Experiment, Ticket, instances
from shortlist.errors import (
    ConflictingReward,
    InvalidInput,
    InvalidReward,
    StoreExists,
    UnknownTicket,
)
from shortlist.stores.base import MemoryStore

pytest_plugins = ["service_fixtures"]

ARMS = ["a", "b", "c", "d", "e"]
ITEMS = [f"q{item}" for item in range(40)]
SCORES = instances.item_response(5, 40, np.random.default_rng(4))
SETTINGS: dict[str, Any] = {"k": 2, "epsilon": 0.05, "items": ITEMS, "rewards": "binary"}
MAKE = {"arms": ARMS, **SETTINGS}
ONE = "/v1/experiments/experiment"


def score(arm: Any, item: Any) -> float:
    return float(SCORES[ARMS.index(arm), ITEMS.index(item)])


def alone(**more: Any) -> Any:
    experiment = Experiment.create(ARMS, **SETTINGS, **more)
    return experiment.run(score, progress=False)


def test_a_test_set_is_made_asked_for_told_and_answered_by_http(call: Call) -> None:
    made = call("POST", "/v1/experiments", MAKE)
    assert made.status == 201
    assert made.data["settings"]["items"] == ITEMS
    cells: list[tuple[str, str]] = []
    while (handout := call("POST", f"{ONE}/ask", {"limit": 30}).data)["tickets"]:
        given = handout["tickets"]
        cells += [(ticket["arm"], ticket["item"]) for ticket in given]
        told = [
            {"ticket": each["id"], "reward": score(each["arm"], each["item"])} for each in given
        ]
        assert call("POST", f"{ONE}/tell", {"results": told}).status == 200
    status = call("GET", f"{ONE}/status").data
    result = call("GET", f"{ONE}/result").data

    assert len(cells) == len(set(cells)) == status["told"] == result["pulls"] <= SCORES.size
    assert result["top"] == list(alone().top)
    assert result["regret_bound"] <= 0.05
    assert result["evidence"]["certificate"] == "items"


def test_a_client_asks_for_the_same_cells_as_an_experiment_here(url: str) -> None:
    there = Client(url).create(ARMS, **SETTINGS)
    here = Experiment.create(ARMS, **SETTINGS)
    while tickets := there.ask(35):
        same = here.ask(35)
        assert [(each.arm, each.item) for each in tickets] == [
            (each.arm, each.item) for each in same
        ]
        there.tell_many((each, score(each.arm, each.item)) for each in tickets)
        here.tell_many((each, score(each.arm, each.item)) for each in same)
    assert there.status().told == here.status().told
    assert there.result().top == here.result().top
    assert there.result().regret_bound == here.result().regret_bound


def test_a_client_runs_a_function_of_arm_and_item(url: str) -> None:
    result = Client(url).create(ARMS, **SETTINGS).run(score, progress=False)
    assert (result.top, result.pulls) == (alone().top, alone().pulls)


def test_what_a_client_knows_already_is_read_here_and_not_asked_for(
    url: str, tmp_path: Path
) -> None:
    file = tmp_path / "known.csv"
    rows = [f"{arm},{item},{score(arm, item)}" for arm in ARMS for item in ITEMS[:15]]
    file.write_text("\n".join(["arm,item,score", *rows]))
    known = np.where(np.arange(40) < 15, SCORES, np.nan)
    client = Client(url).create(ARMS, scores=file, **SETTINGS)
    asked = []

    def noted(arm: Any, item: Any) -> float:
        asked.append(item)
        return score(arm, item)

    result = client.run(noted, progress=False)
    assert not set(asked) & set(ITEMS[:15])
    assert result.pulls == alone(scores=known).pulls == len(asked)
    with pytest.raises(StoreExists, match="made with other scores"):
        Client(url).create(ARMS, exist_ok=True, **SETTINGS)


def served(store: Path, port: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "shortlist", "serve", "--store", str(store)]
    service = subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.PIPE, text=True)
    assert service.stderr is not None
    assert re.search(r"http://\S+", service.stderr.readline())
    return service


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_service_goes_on_with_the_same_cells(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = served(tmp_path / "store.db", port)
    cells: list[tuple[Any, Any]] = []
    try:
        client = Client(f"http://127.0.0.1:{port}", patience=60).create(ARMS, **SETTINGS)
        while tickets := client.ask(12):
            cells += [(each.arm, each.item) for each in tickets]
            if len(cells) % 36 == 0:  # while tickets are out
                service.kill()
                service.communicate()
                service = served(tmp_path / "store.db", port)
            client.tell_many((each, score(each.arm, each.item)) for each in tickets)
        result = client.result()
    finally:
        service.kill()
        service.communicate()
    calm = Experiment.create(ARMS, store=MemoryStore(), **SETTINGS)
    undisturbed: list[tuple[Any, Any]] = []
    while handout := calm.ask(12):
        undisturbed += [(each.arm, each.item) for each in handout]
        calm.tell_many((each, score(each.arm, each.item)) for each in handout)
    assert cells == undisturbed
    assert result.top == calm.result().top


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "ragged": ({"scores": [[1], [1, 0], [1], [0], [0]]}, "`scores` cannot be read"),
    "shape": ({"scores": [[1, 0]] * 5}, r"`scores` has shape (5, 2), but must have a row for each"),
    "range": ({"scores": [[0.5] * 40] * 5}, "the known score of arm 0 on item 0 is 0.5, but must"),
    "file": ({"scores": "known.csv"}, "`scores` is 'known.csv', but must be a list of lists"),
    "twice": ({"items": ["x", "x"]}, "two items are called 'x', but labels must differ"),
    "none": ({"items": []}, "`items` is empty, but must hold at least one item"),
    "kind": ({"items": [{"question": 1}]}, "an item is called"),
    "many": ({"items": 10**7}, "`items` is 10000000, but must be at most 1,000,000"),
    "order": ({"order": "mine"}, "`order` is 'mine', but must be one of shared, independent"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_test_set_is_refused_in_words_and_nothing_is_made(call: Call, what: str) -> None:
    wrong, said = BAD[what]
    reply = call("POST", "/v1/experiments", {**MAKE, **wrong})
    assert 400 <= reply.status < 500
    assert said in reply.error[1]
    assert call("GET", "/v1/experiments").data["total"] == 0


def test_nan_is_no_score_of_json(call: Call) -> None:
    body = b'{"arms": 2, "k": 1, "budget": 4, "items": 2, "scores": [[NaN, 1], [0, 1]]}'
    reply = call("POST", "/v1/experiments", body)
    assert reply.status == 400
    assert "NaN is no number of JSON" in reply.error[1]


def test_what_a_service_refuses_of_a_score_leaves_the_others(url: str) -> None:
    client = Client(url).create(ARMS, **SETTINGS)
    first, second, *_ = client.ask(10)
    client.tell(first, 1)
    for value in (float("nan"), 0.5, 2):
        with pytest.raises(InvalidReward, match="the reward of ticket 1"):
            client.tell_many([(second, value)])
    with pytest.raises(ConflictingReward, match=r"was told 1\.0 before, which stays"):
        client.tell(first, 0)
    client.tell(first, 1)
    client.tell(second, 0)
    assert client.status().told == 2


def test_a_ticket_with_another_item_is_refused_and_the_score_may_still_be_told(url: str) -> None:
    for place in (Client(url).create(ARMS, **SETTINGS), Experiment.create(ARMS, **SETTINGS)):
        (ticket,) = place.ask(1)
        for item in ("q99", next(each for each in ITEMS if each != ticket.item), 3):
            wrong = Ticket(
                *(ticket.id, ticket.arm, ticket.draw, ticket.seed, ticket.expires),
                *(ticket.experiment, item),
            )
            with pytest.raises(UnknownTicket, match=f"ticket 0 is for item {item!r}, but here"):
                place.tell(wrong, 1)
        place.tell(ticket, 1)
        assert place.status().told == 1


def test_infos_are_told_by_http_and_by_the_client(call: Call, url: str) -> None:
    call("POST", "/v1/experiments", MAKE)
    (ticket,) = call("POST", f"{ONE}/ask", {"limit": 1}).data["tickets"]
    told = {"ticket": ticket["id"], "reward": 1, "info": {"answer": "yes"}}
    assert call("POST", f"{ONE}/tell", {"results": [told]}).status == 200
    experiment = Client(url).open("experiment")
    (other,) = experiment.ask(1)
    experiment.tell(other, 0.0, info=["no"])
    with pytest.raises(InvalidInput, match="must be JSON"):
        experiment.tell(other, 0.0, info={1, 2})
    assert [cell.info for cell in experiment.cells()] == [{"answer": "yes"}, ["no"]]


def test_workers_set_the_width_of_an_experiment_at_a_service(url: str) -> None:
    client = Client(url).create(ARMS, **SETTINGS, workers=6)
    assert client.settings.options == {"min_batch": 3, "window": 18}
    again = Client(url).create(ARMS, **SETTINGS, workers=2, exist_ok=True)
    assert again.settings.options == {"min_batch": 3, "window": 18}
    result = client.run(score, workers=6, progress=False)
    assert result.top == Client(url).open("experiment").result().top
