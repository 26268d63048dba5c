"""What an experiment was made with: written once, and all that its replay needs beside the log."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

from shortlist.algorithms import Algorithm, find, name_to_keep
from shortlist.arms import Label, labels_of, labels_to_keep
from shortlist.cells import Cells
from shortlist.engine.leases import Late, checked_late
from shortlist.errors import CannotReplay, InvalidInput, StoreDamaged, StoreExists
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.question import Question
from shortlist.reward_models import MODELS, RewardModel, Undeclared
from shortlist.validation import MOST_RETRIES, number, seeded, shown, whole

OnFailure = Literal["stop", "retire"]
FORMAT = 1  # how tickets are numbered and seeded; another number means another replay


@dataclass(frozen=True)
class Settings:
    """The problem, the search, and the manners of an experiment."""

    labels: tuple[Label, ...]
    problem: Problem
    algorithm: str
    version: int  # of the algorithm
    options: dict[str, Any]
    seed: int
    lease: float | None  # seconds; None for one that fits how long pulls take
    retries: int
    on_late: Late  # what happens when a lease is over
    identity: str  # no two experiments share it
    on_failure: OnFailure = "stop"  # of a pull that failed too often
    cells: Cells | None = None  # of a test set

    @classmethod
    def of(
        cls,
        asked: Question,
        seed: int,
        lease: float | None,
        retries: int,
        on_late: Late,
        on_failure: OnFailure = "stop",
    ) -> "Settings":
        """Settings for a new experiment, if they make sense."""
        algorithm, options = asked.algorithm, dict(asked.options)
        manners = _manners(seed, lease, retries, on_late, asked.problem.rewards)
        name, labels = name_to_keep(algorithm), labels_to_keep(asked.labels)
        identity = secrets.token_hex(8)
        cells = asked.cells
        if cells is not None:
            labels_to_keep(cells.labels, "an item")
        ending = _checked_ending(on_failure, asked.problem.rewards)
        problem, version = asked.problem, algorithm.version
        return cls(labels, problem, name, version, options, *manners, identity, ending, cells)

    @property
    def on_items(self) -> bool:
        """Whether tickets name items of a test set."""
        return self.cells is not None

    def item(self, arm: int, draw: int) -> Label | None:
        """The item that a pull of an arm is, where there are items."""
        return None if self.cells is None else self.cells.label(arm, draw)

    def searched_by(self) -> Algorithm:
        """The algorithm, if it still has the version that the experiment was made with."""
        return _replayed(FORMAT, self.algorithm, self.version, "the experiment")

    def to_json(self) -> str:
        """One line."""
        numbered = self.labels == tuple(range(len(self.labels)))
        cells, problem, rewards = self.cells, self.problem, self.problem.rewards
        record = {
            "format": FORMAT,
            "algorithm": self.algorithm,
            "version": self.version,
            "options": self.options,
            "k": problem.k,
            "goal": asdict(problem.goal),
            "rewards": {"kind": rewards.kind, **asdict(rewards)},
            "seed": self.seed,
            "lease": self.lease,
            "retries": self.retries,
            "on_late": self.on_late,
            "on_failure": self.on_failure,
            "identity": self.identity,
            "arms": len(self.labels) if numbered else self.labels,
            "minimize": problem.minimize,
            "limits": problem.limits,
            "costs": problem.costs,
            "items": None if cells is None else cells.to_record(),
        }
        return json.dumps(record, ensure_ascii=False)

    def difference(self, other: "Settings") -> str | None:
        """What is said differently by another, in words; who names no lease asks for none."""
        if self.labels != other.labels:
            return "other arms"
        if not (other.cells is None if self.cells is None else self.cells.same(other.cells)):
            return "other items, or other scores known of them"
        if self.problem.minimize != other.problem.minimize:
            return f"minimize = {self.problem.minimize} and not {other.problem.minimize}"
        if self.problem.limits != other.problem.limits:
            return "other limits"
        if self.problem.costs != other.problem.costs:
            return "other costs"
        if self.on_failure != other.on_failure:
            return f"on_failure = {self.on_failure!r} and not {other.on_failure!r}"
        mine, theirs = self._flat(), other._flat()
        if other.lease is None:
            del mine["lease"]
        if isinstance(other.problem.rewards, Undeclared):  # who declares nothing takes what is
            del mine["rewards"]
        for name in mine:
            if mine[name] != theirs[name]:
                made = f"no {name}" if mine[name] is None else f"{name} = {_in_words(mine[name])}"
                return f"{made} and not {_in_words(theirs[name])}"
        return None

    def check_same(self, made: "Settings", name: str) -> None:
        """Refuse to go on with an experiment that is not the one asked for by these settings."""
        difference = made.difference(self)
        if difference is not None:
            raise StoreExists(
                f"there is an experiment {name!r} already, but it was made with {difference}"
            )

    def _flat(self) -> dict[str, object]:
        """Every setting but the arms, and what nobody asks for.

        The goal comes first, since the algorithm may follow from it."""
        data = json.loads(self.to_json())
        del data["version"], data["identity"], data["items"]
        goal = data.pop("goal")
        return {**{name: goal.get(name) for name in ("epsilon", "delta", "budget")}, **data}

    @classmethod
    def from_json(cls, text: str, where: str) -> "Settings":
        """Read what `to_json` wrote, if this version of the package can replay it."""
        with _readable(where):
            data = json.loads(text)
            algorithm = _replayed(data["format"], data["algorithm"], data["version"], where)
            settings = cls._of(data)
            algorithm.check(settings.problem, settings.options)
            return settings

    @classmethod
    def read(cls, text: str, where: str) -> "Settings":
        """The same, whether this version of the package has the search or not: to look at them."""
        with _readable(where):
            return cls._of(json.loads(text))

    @classmethod
    def _of(cls, data: dict[str, Any]) -> "Settings":
        labels, rewards = _declared(data)
        goal = (
            FixedConfidence(**data["goal"])
            if "epsilon" in data["goal"]
            else FixedBudget(**data["goal"])
        )
        cells = _cells(data, len(labels), rewards)
        said = {name: data[name] for name in ("minimize", "limits", "costs")}
        items = None if cells is None else cells.problem_items
        problem = Problem(len(labels), data["k"], goal, rewards, items=items, **said)
        manners = _manners(data["seed"], data["lease"], data["retries"], data["on_late"], rewards)
        name, version, options = data["algorithm"], data["version"], dict(data["options"])
        identity = str(data["identity"])
        ending = _checked_ending(data["on_failure"], rewards)
        return cls(labels, problem, name, version, options, *manners, identity, ending, cells)


def _cells(data: dict[str, Any], n_arms: int, rewards: RewardModel) -> Cells | None:
    if data["items"] is None:
        return None
    return Cells.from_record(dict(data["items"]), n_arms, rewards, data["seed"])


def _checked_ending(on_failure: object, model: RewardModel) -> OnFailure:
    if not (isinstance(on_failure, str) and on_failure in ("stop", "retire")):
        raise InvalidInput(f"`on_failure` is {shown(on_failure)}, but must be 'stop' or 'retire'")
    if on_failure == "retire" and not model.has_range:
        raise InvalidInput(
            "`on_failure` is 'retire', but where rewards have no range no arm can retire: there is"
            " no worst reward"
        )
    return "stop" if on_failure == "stop" else "retire"


def _in_words(value: object) -> str:
    if isinstance(value, dict) and "kind" in value:
        shown = {
            name: repr(limit).removesuffix(".0") for name, limit in value.items() if name != "kind"
        }
        limits = ", ".join(f"{name} = {limit}" for name, limit in shown.items())
        return f"{value['kind']} ({limits})" if limits else str(value["kind"])
    return "none" if value is None else str(value)


def declared(text: str, where: str) -> tuple[tuple[Label, ...], RewardModel]:
    """The arms and the kind of rewards in settings of whatever version: all that it takes to read a
    log."""
    with _readable(where):
        return _declared(json.loads(text))


def _manners(
    seed: object, lease: object, retries: object, on_late: object, model: RewardModel
) -> tuple[int, float | None, int, Late]:
    seconds = None if lease is None else number("lease", lease, above=0)
    return (
        seeded(seed),
        seconds,
        whole("retries", retries, at_least=0, at_most=MOST_RETRIES),
        checked_late(on_late, seconds, model),
    )


def _declared(data: dict[str, Any]) -> tuple[tuple[Label, ...], RewardModel]:
    rewards = dict(data["rewards"])
    return labels_of(data["arms"]), MODELS[rewards.pop("kind")](**rewards)


@contextmanager
def _readable(where: str) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise StoreDamaged(f"the settings of {where} make no sense: {error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise StoreDamaged(f"the settings of {where} cannot be read: {error!r}") from error


def _replayed(format_: int, algorithm: str, version: int, where: str) -> Algorithm:
    """The algorithm, if it is as it was when the experiment was made."""
    if not isinstance(algorithm, str):
        raise InvalidInput(f"`algorithm` is {algorithm!r}, but must be a name")
    try:
        known = find(algorithm)
    except InvalidInput as error:
        raise CannotReplay(
            f"{where} was made with {algorithm}, an algorithm that this shortlist does not have:"
            f" {error}"
        ) from error
    made, have = f"version {version} of {algorithm}", f"version {known.version}"
    if format_ != FORMAT:
        made, have = f"format {format_} of tickets", f"format {FORMAT}"
    if version != known.version or format_ != FORMAT:
        raise CannotReplay(
            f"{where} was made with {made}, but this shortlist has {have} and would go on"
            " differently: continue it with the shortlist that made it, or export its rewards"
        )
    return known
