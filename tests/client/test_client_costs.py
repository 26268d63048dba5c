"""Costs at a service: said with the arms, told with rewards, kept, and shown."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from services import serving

from shortlist import Arm, Client
from shortlist.engine import Experiment
from shortlist.errors import InvalidInput
from shortlist.stores.base import MemoryStore

ARMS = [Arm("a", cost=1), Arm("b", cost=4, limit=5), Arm("c", cost=0.5)]
GIVEN: dict[str, Any] = {"arms": ARMS, "k": 1, "budget": 30.5, "rewards": "binary", "seed": 2}


@pytest.fixture
def url() -> Iterator[str]:
    with serving(MemoryStore()) as url:
        yield url


def pull(arm: str, seed: int) -> tuple[int, float]:
    return (seed >> 7) % 2 if arm == "a" else int(arm == "c"), 1.25


def test_a_client_pays_as_an_experiment_here_does(url: str) -> None:
    there, here = Client(url).create(**GIVEN), Experiment.create(**GIVEN)
    assert there.settings.problem.costs == (1, 4, 0.5)
    assert there.settings.problem.limits == (None, 5, None)
    for experiment in (there, here):
        experiment.run(pull, progress=False)
    assert there.result() == here.result()
    assert there.result().spent == 1.25 * there.result().pulls <= 30.5 + 0.75
    assert there.status().spent == here.status().spent
    assert (there.status().budget, str(there.status())) == (30.5, str(here.status()))
    assert list(there.export_lines())[1:-1]


def test_a_cost_is_told_from_afar_and_refused_if_it_cannot_be(url: str) -> None:
    client = Client(url).create(**GIVEN)
    first, second = client.ask(2)
    client.tell(first, 1, cost=2.5)
    for cost in (-1, float("nan"), float("inf"), "dear"):
        with pytest.raises(InvalidInput, match="the cost of ticket 1"):
            client.tell(second, 1, cost=cost)  # type: ignore[arg-type]
    client.tell_many([(second, 0, None)])
    assert client.status().spent == 2.5 + ARMS["abc".index(str(second.arm))].cost


def test_the_page_of_an_experiment_shows_its_cost_budget(url: str) -> None:
    Client(url).create(**GIVEN)
    with urllib.request.urlopen(f"{url}/experiments/experiment") as page:
        assert "at a cost of at most 30.5" in page.read().decode()


@pytest.mark.parametrize("arm", [{"cost": 1}, {"arm": "x", "price": 1}, {"arm": "x", "cost": 0}])
def test_arms_that_make_no_sense_are_refused(url: str, arm: dict[str, Any]) -> None:
    body = json.dumps({"arms": ["y", arm], "k": 1, "budget": 9}).encode()
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/experiments", body, head)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    refused.value.close()
    assert refused.value.code in (400, 422)
