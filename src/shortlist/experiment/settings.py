"""What an experiment was made with: written once, and all that its replay needs beside the log."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from shortlist.algorithms import ALGORITHMS
from shortlist.errors import CannotReplay, StoreDamaged
from shortlist.evaluation import Label
from shortlist.problem import (
    Binary,
    Bounded,
    FixedBudget,
    FixedConfidence,
    Problem,
    RewardModel,
    SubGaussian,
    number,
    whole,
)
from shortlist.question import Question, labels_of

FORMAT = 1  # how tickets are numbered and seeded; another number means another replay
MODELS: dict[str, type[RewardModel]] = {"bounded": Bounded, "binary": Binary, "sub-gaussian": SubGaussian}


@dataclass(frozen=True)
class Settings:
    """The problem, the search, and the manners of an experiment."""

    labels: tuple[Label, ...]
    problem: Problem
    algorithm: str
    version: int  # of the algorithm
    options: dict[str, Any]
    seed: int
    lease: float  # seconds
    retries: int

    @classmethod
    def of(cls, asked: Question, seed: int, lease: float, retries: int) -> "Settings":
        """Settings for a new experiment, if they make sense."""
        return cls(
            asked.labels,
            asked.problem,
            asked.algorithm.name,
            asked.algorithm.version,
            dict(asked.options),
            whole("seed", seed, at_least=0),
            number("lease", lease, above=0),
            whole("retries", retries, at_least=0),
        )

    def to_json(self) -> str:
        """One line."""
        rewards = self.problem.rewards
        kind = next(name for name, model in MODELS.items() if type(rewards) is model)
        numbered = self.labels == tuple(range(len(self.labels)))
        record = {
            "format": FORMAT,
            "algorithm": self.algorithm,
            "version": self.version,
            "options": self.options,
            "k": self.problem.k,
            "goal": asdict(self.problem.goal),
            "rewards": {"kind": kind, **asdict(rewards)},
            "seed": self.seed,
            "lease": self.lease,
            "retries": self.retries,
            "arms": len(self.labels) if numbered else self.labels,
        }
        return json.dumps(record, ensure_ascii=False)

    def difference(self, other: "Settings") -> str | None:
        """What is said differently by another, in words."""
        mine, theirs = (json.loads(each.to_json()) for each in (self, other))
        for name in mine:
            if mine[name] != theirs[name]:
                return "other arms" if name == "arms" else f"{name} = {mine[name]!r} and not {theirs[name]!r}"
        return None

    @classmethod
    def from_json(cls, text: str, where: str) -> "Settings":
        """Read what `to_json` wrote, if this version of the package can replay it."""
        try:
            data = json.loads(text)
            _check_versions(data["format"], data["algorithm"], data["version"], where)
            labels = labels_of(data["arms"])
            goal = FixedConfidence(**data["goal"]) if "epsilon" in data["goal"] else FixedBudget(**data["goal"])
            rewards = MODELS[data["rewards"].pop("kind")](**data["rewards"])
            problem = Problem(len(labels), data["k"], goal, rewards)
            same = {name: data[name] for name in ("algorithm", "version", "options", "seed", "lease", "retries")}
        except (ValueError, LookupError, TypeError) as error:
            raise StoreDamaged(f"the settings of {where} cannot be read: {error!r}") from error
        return cls(labels, problem, **same)


def _check_versions(format_: int, algorithm: str, version: int, where: str) -> None:
    known = ALGORITHMS.get(algorithm)
    if known is None:
        raise CannotReplay(f"{where} was made with {algorithm}, an algorithm that this shortlist does not have")
    made, have = f"version {version} of {algorithm}", f"version {known.version}"
    if format_ != FORMAT:
        made, have = f"format {format_} of tickets", f"format {FORMAT}"
    if (format_, version) != (FORMAT, known.version):
        raise CannotReplay(
            f"{where} was made with {made}, but this shortlist has {have} and would go on differently: "
            "continue it with the shortlist that made it, or export its rewards"
        )
