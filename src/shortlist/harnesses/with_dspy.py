"""DSPy: programs as arms, the examples of a development set as items.

from shortlist.harnesses.with_dspy import scorer_of

score = scorer_of(programs, devset, metric)  # programs by label
shortlist.select(pull_many=score, arms=list(programs), items=len(devset), k=1, epsilon=0.05)
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from shortlist.errors import EvaluationFailed
from shortlist.harnesses import Scorer, check_installed, in_turns
from shortlist.validation import shown

EVALUATE = "dspy.evaluate.evaluate"  # logs a line per evaluation: the mean of its scores


def scorer_of(
    programs: Mapping[Any, Any],
    devset: Sequence[Any],
    metric: Callable[..., Any],
    **options: Any,
) -> Scorer:
    """Return a function that scores a program on some examples, for `select(pull_many=...)`.

    It prints and logs nothing.

    Args:
        programs: Programs by label.
        devset: The examples; their positions are the items.
        metric: Scores an example and a prediction.
        options: Passed to `dspy.Evaluate`, for example num_threads, or display_progress=True.

    Returns:
        A function of a label and a list of positions that returns their scores. It raises
        `EvaluationFailed` if a program or the metric raises: a score of 0 instead would void the
        guarantee."""
    check_installed("dspy", "dspy")
    from dspy import Evaluate

    def score_once(label: Any, numbers: Sequence[int]) -> list[float]:
        failed: list[Exception] = []
        settings = {"display_progress": False, **options}
        examples = [devset[each] for each in numbers]
        evaluate = Evaluate(devset=examples, metric=_noting(metric, failed), **settings)
        with _quiet():
            results = evaluate(_noting(programs[label], failed)).results
        if failed:
            why = f"program {shown(label)} raised on an example: {failed[0]!r}"
            raise EvaluationFailed(why) from failed[0]
        return [float(score) for _, _, score in results]

    return in_turns(score_once)


def _noting(function: Callable[..., Any], failed: list[Exception]) -> Callable[..., Any]:
    """A program or metric that notes its errors; DSPy would log them and count a 0."""

    def called(*given: Any, **named: Any) -> Any:
        if failed:
            return math.nan
        try:
            return function(*given, **named)
        except Exception as error:
            failed.append(error)
            return math.nan

    return called


_is_quiet: ContextVar[bool] = ContextVar("_is_quiet", default=False)


@contextmanager
def _quiet() -> Iterator[None]:
    """No log line about an evaluation that is a part of ours; others keep theirs."""
    logging.getLogger(EVALUATE).addFilter(_passes)
    token = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(token)


def _passes(_: logging.LogRecord) -> bool:
    return not _is_quiet.get()
