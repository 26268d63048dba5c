"""No view fails because of the shape of a search, or because of how far it is.

Random experiments of every algorithm, with all settings there are, at any moment: the live page,
its picture and its stream, the tables and the JSON of a status and of a result, the picture of a
result, and the command line."""

import http.client
import itertools
import json
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
from click.testing import CliRunner

import shortlist
from shortlist.arms import Arm
from shortlist.cli import main
from shortlist.engine import Experiment, Ticket
from shortlist.engine.locate import Place
from shortlist.errors import Doubtful, InvalidInput
from shortlist.problem import FixedBudget, FixedConfidence
from shortlist.result import Result
from shortlist.reward_models import SubGaussian, Unranged
from shortlist.stores.base import MemoryStore
from shortlist.stores.sqlite import SQLiteStore

pytest.importorskip("starlette", reason="pip install 'shortlist[serve]'")
from services import caller, serving

from shortlist.service.experiments import OpenExperiments
from shortlist.service.pages.render import experiment_page, parts
from shortlist.service.pages.view import bound_history, view_experiment

RANGES = [(0.0, 1.0), (1000.0, 1001.0), (1e-9, 2e-9), (-1e6, 1e6)]
KINDS = ("plain", "max_rounds", "min_batch", "costs", "items", "sigma", "split")
ITEMS = 30


@dataclass(frozen=True)
class Shape:
    """What an experiment is made with, the rewards of its arms, and how far it goes."""

    made: dict[str, Any]
    rewards: tuple[float, float]
    spread: str
    end: str

    def reward(self, ticket: Ticket) -> float:
        """The reward of a pull: all the same, one for every arm, or noise."""
        low, high = self.rewards
        noise = float(np.random.default_rng(ticket.seed).random())
        arm = int(str(ticket.arm).removeprefix("arm "))
        share = {"equal": 0.5, "by arm": (arm % 7) / 7, "noise": noise}[self.spread]
        return low + (high - low) * share


def shape_of(algorithm: str, kind: str, end: str, chance: np.random.Generator) -> Shape:
    """An experiment of that kind, its other settings at random; some no algorithm takes."""
    found = shortlist.find(algorithm)
    n_arms = int(chance.choice([2, 3, 5, 70], p=[0.3, 0.3, 0.3, 0.1]))
    low, high = RANGES[chance.integers(len(RANGES))]
    labels = [f"arm {number}" for number in range(n_arms)]
    made: dict[str, Any] = {"arms": labels, "algorithm": algorithm, "rewards": (low, high)}
    if found.only_normal:
        made["rewards"] = "normal"
    single = found.only_normal or algorithm == "track-and-stop"
    made["k"] = 1 if single else int(chance.integers(1, n_arms))
    made["minimize"] = bool(chance.integers(2))
    if FixedBudget not in found.goals or (FixedConfidence in found.goals and chance.integers(2)):
        made["epsilon"] = float(chance.choice([0.1, 0.3, 0.9])) * (high - low)
        made["delta"] = float(chance.choice([0.3, 1e-5]))
    if "epsilon" not in made or (found.capped and chance.integers(2)):
        made["budget"] = int(chance.integers(3, 40)) * n_arms
    made |= extra(kind, labels, low, high, chance)
    spread = str(chance.choice(["equal", "by arm", "noise"]))
    return Shape(made, (low, high), spread, end)


def extra(
    kind: str, labels: list[str], low: float, high: float, chance: np.random.Generator
) -> dict[str, Any]:
    """The settings that only experiments of that kind have."""
    if kind in ("max_rounds", "min_batch"):
        return {kind: int(chance.integers(2, 30))}
    if kind == "costs":
        terms = [(0.5, None), (1.0, 9), (2.25, None)]
        return {"arms": [Arm(label, *terms[chance.integers(3)]) for label in labels]}
    if kind == "items":
        known = np.full((len(labels), ITEMS), np.nan)
        known[:, ::3] = (low + high) / 2
        return {"items": ITEMS, "scores": known.tolist() if chance.integers(2) else None}
    if kind == "sigma":
        return {"rewards": SubGaussian(high - low)}
    return {"certificate": "split"} if kind == "split" else {}


def pulled(experiment: Experiment, shape: Shape, most: int) -> None:
    """Tell so many rewards."""
    while most > 0 and (tickets := experiment.ask(min(most, 500), "w")):
        experiment.tell_many([(ticket, shape.reward(ticket)) for ticket in tickets])
        most -= len(tickets)


def late(experiment: Experiment, shape: Shape) -> None:
    """Tell the large ones of the rewards, and be late with the others."""
    pulled(experiment, shape, 20)
    middle = sum(shape.rewards) / 2
    told = [(ticket, shape.reward(ticket)) for ticket in experiment.ask(100, "w")]
    experiment.tell_many([(ticket, reward) for ticket, reward in told if reward > middle])


def failed(experiment: Experiment, shape: Shape) -> None:
    """Fail until the experiment stops."""
    pulled(experiment, shape, 10)
    for _ in range(3):
        for ticket in experiment.ask(1, "w"):
            experiment.fail(ticket, "no network")


def left(experiment: Experiment, shape: Shape) -> None:
    """Let an arm leave in the middle."""
    pulled(experiment, shape, 15)
    experiment.retire("arm 1", "sold out")
    pulled(experiment, shape, 40)


def asked(experiment: Experiment, _shape: Shape) -> None:
    """Hand out tickets, and wait."""
    experiment.ask(5, "w")


ENDS: dict[str, Callable[[Experiment, Shape], None]] = {
    "begun": lambda _experiment, _shape: None,
    "asked": asked,
    "one pull": lambda experiment, shape: pulled(experiment, shape, 1),
    "some": lambda experiment, shape: pulled(experiment, shape, 100),
    "all": lambda experiment, shape: pulled(experiment, shape, 300),
    "late": late,
    "failed": failed,
    "left": left,
}


@pytest.mark.parametrize("algorithm", sorted(shortlist.ALGORITHMS))
def test_every_page_and_table_renders_at_any_moment(algorithm: str) -> None:
    chance = np.random.default_rng(zlib.crc32(algorithm.encode()))
    opened = OpenExperiments(MemoryStore())
    shown = set()
    for number, (kind, end) in enumerate(itertools.product(KINDS, ENDS)):
        if kind == "plain" or (number + number // len(ENDS)) % 4 == 0:
            made = begun(shape_of(algorithm, kind, end, chance), opened.store, str(number))
            if made is not None:
                check_look(opened, made)
                shown.add(kind)
    others = ("plain",) if shortlist.find(algorithm).only_normal else ("plain", "sigma")
    taken = KINDS if algorithm == "certified" else others
    assert shown >= set(taken)


def begun(shape: Shape, store: Place, name: str) -> Experiment | None:
    """The experiment as far as it goes, if the algorithm takes it and an arm may leave."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Doubtful)
        try:
            experiment = Experiment.create(store=store, name=name, retries=1, **shape.made)
            ENDS[shape.end](experiment, shape)
        except InvalidInput:
            return None
    return experiment


def check_look(opened: OpenExperiments, experiment: Experiment) -> None:
    """The page and the tables of it, with no detour."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a division by 0, a mean of nothing
        view = view_experiment(opened, experiment.name, bound_history(opened, experiment.name))
        assert experiment_page(view, parts(view))
        status, result = experiment.status(), compared(experiment.result(partial=True))
        assert status._repr_html_()
        assert result._repr_html_()
        json.dumps(status.summary(), allow_nan=False)
        result.to_json()


def compared(result: Result) -> Result:
    """The result with a control, where there can be one."""
    declared = result.rewards.knows_spread and not isinstance(result.rewards, Unranged)
    fit = result.items is None and declared
    return replace(result, control=result.arms[0].label) if fit else result


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A file of experiments, and the address of a service in front of it."""
    path = tmp_path_factory.mktemp("views") / "views.db"
    with closing(SQLiteStore(path, "rwc")) as store, serving(store) as url:
        yield path, url


@pytest.mark.parametrize(("kind", "end"), [*zip(KINDS, reversed(ENDS), strict=False)])
def test_the_service_and_the_command_line_show_every_kind_of_experiment(
    kind: str, end: str, place: tuple[Path, str]
) -> None:
    path, url = place
    chance = np.random.default_rng(0)
    tries = (begun(shape_of("certified", kind, end, chance), path, f"{kind} {x}") for x in range(9))
    made = next(each for each in tries if each is not None)
    check_pages(url, made.name)
    check_pictures(made)
    check_commands(path, made.name)
    made.close()


def check_pages(url: str, name: str) -> None:
    """All that the service has of it, in a browser and elsewhere."""
    call, page = caller(url), f"/experiments/{quote(name)}"
    for path in (page, "/", f"{page}/arms.csv"):
        reply = call("GET", path, accept="text/html")
        assert (path, reply.status) == (path, 200)
    for path in ("status", "standing", "result?partial=true"):
        assert (path, call("GET", f"/v1{page}/{path}").status) == (path, 200)
    assert first_event(url, f"{page}/stream") == "event: parts"


def first_event(url: str, path: str) -> str:
    """What a stream says first."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    connection.request("GET", path)
    with connection.getresponse() as response:
        lines = (response.readline().decode().strip() for _ in range(10))
        kind = next(line for line in lines if line.startswith("event"))
    connection.close()
    return kind


def check_pictures(experiment: Experiment) -> None:
    """What a notebook and a terminal show."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a picture of infinities
        result = experiment.result(partial=True)
        assert str(experiment.status())
        assert str(result)
        result.plot().canvas.draw()


def check_commands(path: Path, name: str) -> None:
    """All that the command line has of it."""
    for command in (["status"], ["result", "--partial"]):
        for style in ("table", "json", "csv"):
            line = [*command, "--store", str(path), "--name", name, "--format", style]
            done = CliRunner().invoke(main, line)
            assert (done.exit_code, done.stderr) == (0, "")
            assert done.stdout
