"""The file that holds fresh rewards of every arm, and which arms were chosen before."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shortlist.cli.totals import decimal, read_totals, total, whole
from shortlist.errors import InvalidInput
from shortlist.reading.columns import Line

if TYPE_CHECKING:
    from shortlist.arrays import BoolArray, FloatArray, IntArray
    from shortlist.reward_models import RewardsDeclared

WORDS = {"yes": True, "1": True, "true": True, "no": False, "0": False, "false": False}


@dataclass(frozen=True, slots=True)
class Fresh:
    """A line for every arm, and what it says."""

    lines: list[Line]
    chosen: "BoolArray"  # (arms,), as all others
    pulls: "IntArray"
    sums: "FloatArray"
    squares: "FloatArray | None"

    @property
    def usual_rewards(self) -> "RewardsDeclared":
        """0 or 1 where successes were counted, else anything in between."""
        return "binary" if "successes" in self.lines[0].cells else (0.0, 1.0)

    def check(self, rewards: "RewardsDeclared") -> None:
        """Refuse the first line whose sums cannot be those of so many rewards."""
        from shortlist.certification.certify import possible_squares, possible_sums
        from shortlist.reward_models import model_of

        model = model_of(rewards)
        possible = possible_sums(self.sums, self.pulls, model)
        self._check_all(possible, self.sums, f"the sum of rewards, each {model.rule}")
        if self.squares is not None:
            possible = possible_squares(self.squares, self.pulls, self.sums)
            self._check_all(
                possible, self.squares, "what squares of rewards with its sum add up to"
            )

    def _check_all(self, possible: "BoolArray", told: "FloatArray", rule: str) -> None:
        if not possible.all():
            arm = int(possible.argmin())
            raise InvalidInput(
                f"{self.lines[arm].where} says {told[arm]:.15g} for {self.pulls[arm]:,} pulls, but"
                f" must say {rule}"
            )


def read_fresh(path: str) -> Fresh:
    """Columns chosen, pulls and sum (or successes), and perhaps squares."""
    import numpy as np

    lines = read_totals(path, "chosen")
    chosen = np.array([_chosen(line) for line in lines], dtype=np.bool_)
    if chosen.all() or not chosen.any():
        raise InvalidInput(
            f"{path} says that {chosen.sum():,} of {chosen.size:,} arms were chosen, but some must"
            " be chosen and some not"
        )
    squared = "squares" in lines[0].cells
    return Fresh(
        lines,
        chosen,
        np.array([whole(line, "pulls", least=1) for line in lines], dtype=np.int64),
        np.array([total(line) for line in lines], dtype=np.float64),
        np.array([decimal(line, "squares") for line in lines]) if squared else None,
    )


def _chosen(line: Line) -> bool:
    cell = line["chosen"].strip()
    if cell.lower() not in WORDS:
        raise InvalidInput(f"{line.where} says {cell!r}, but chosen must be yes or no")
    return WORDS[cell.lower()]
