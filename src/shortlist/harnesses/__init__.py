"""Evaluation harnesses and simulators as functions for `select`.

One module per harness, so that none needs the others installed: `with_inspect_ai`,
`with_lm_eval`, `with_dspy`, `with_simopt`."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from shortlist.errors import InvalidInput

Scorer = Callable[[Any, Sequence[Any]], list[float]]


def check_installed(package: str, extra: str) -> None:
    """Refuse to use a harness that is missing, with the command that installs it."""
    if find_spec(package) is None:
        raise InvalidInput(f"{package} is not installed: pip install 'shortlist[{extra}]'")


def in_turns(score_once: Scorer) -> Scorer:
    """Score items that are asked for several times, as with `repeats`, in a call for each time.

    Harnesses score every item of a call once."""

    def score_many(arm: Any, items: Sequence[Any]) -> list[float]:
        scores = [0.0] * len(items)
        places = list(range(len(items)))
        while places:
            first = list({items[place]: place for place in reversed(places)}.values())[::-1]
            told = score_once(arm, [items[place] for place in first])
            for place, score in zip(first, told, strict=True):
                scores[place] = score
            places = [place for place in places if place not in set(first)]
        return scores

    return score_many
