"""The file that holds fresh rewards of every arm, and which arms were chosen before."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shortlist.errors import InvalidInput
from shortlist.reading.columns import Line
from shortlist.reading.totals import decimal, read_totals, total, whole

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
        from shortlist.certification.certify import check_possible
        from shortlist.reward_models import model_of

        where = [line.where for line in self.lines]
        check_possible(where, self.pulls, self.sums, self.squares, model_of(rewards))


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
