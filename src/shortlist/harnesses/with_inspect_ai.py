"""inspect_ai: models as arms, the samples of a task as items.

from shortlist.harnesses.with_inspect_ai import select_models

found = select_models(task, ["openai/gpt-5", "google/gemini-3"], k=1, epsilon=0.02, workers=20)
print(found.result, [log.location for log in found.logs])

One evaluation runs over all models, with a log for each. Every sample waits until the search asks
for it, and is skipped if it never does."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cache
from typing import Any, NamedTuple

from shortlist.engine.calls import CONCURRENT, run_here
from shortlist.engine.tickets import Score
from shortlist.errors import EvaluationFailed, InvalidInput
from shortlist.harnesses import check_installed, in_turns
from shortlist.result import Result
from shortlist.selection import select_async
from shortlist.validation import shown

LONGEST_ANSWER = 1000  # characters of an answer that are kept with its score; the log has it all


class SelectedModels(NamedTuple):
    """The result of a search, and the logs of inspect_ai, one per model."""

    result: Result
    logs: list[Any]


def sample_ids(task: Any) -> list[int | str]:
    """Return the ids of a task's samples; samples without one are numbered from 1."""
    return [
        place if sample.id is None else sample.id for place, sample in enumerate(task.dataset, 1)
    ]


def select_models(
    task: Any,
    models: Iterable[str] | Mapping[Any, Any],
    *,
    k: int,
    workers: int = CONCURRENT,
    score: Callable[[Any], float] | None = None,
    cost: Callable[[Any], float] | None = None,
    evaluation: Mapping[str, Any] | None = None,
    **settings: Any,
) -> SelectedModels:
    """Find the k best models on the samples of a task, in one evaluation of inspect_ai.

    Samples run when the search asks for them, up to `workers` at a time over all models; samples
    that it does not need are skipped. The choice is the one that `select` makes with the same
    settings.

    Args:
        task: A task of inspect_ai.
        models: Names of models, or models by label.
        k: Number of models to choose.
        workers: Samples that run at a time. inspect_ai has limits of its own, such as
            `max_connections`.
        score: Turns the value of a score into a number; by default "C" is 1, "P" is 0.5, "I" and
            "N" are 0, and numbers stay.
        cost: Cost of a sample, from its record (`inspect_ai.log.EvalSample`), such as the price of
            its `model_usage`. Default: every sample costs 1.
        evaluation: Options of `inspect_ai.eval`, such as log_dir, retry_on_error or
            score_on_error. Default: nothing is displayed.
        settings: Settings of `select`, such as epsilon, delta, budget, seed, store or repeats.

    Returns:
        The result and the logs, one per model. A sample that ran before, by the `store`, is in the
        log of that run.

    Raises:
        EvaluationFailed: A sample ended with an error. What ran before is in the `store`.
        InvalidInput: An argument is not valid, or an event loop is running: then await
            `select_models_async`.

    Example: `examples/with_inspect_ai.py`."""
    given = {"workers": workers, "score": score, "cost": cost, "evaluation": evaluation, **settings}
    return run_here(select_models_async(task, models, k=k, **given), "select_models")


async def select_models_async(
    task: Any,
    models: Iterable[str] | Mapping[Any, Any],
    *,
    k: int,
    workers: int = CONCURRENT,
    score: Callable[[Any], float] | None = None,
    cost: Callable[[Any], float] | None = None,
    evaluation: Mapping[str, Any] | None = None,
    **settings: Any,
) -> SelectedModels:
    """`select_models` in the event loop that is running, such as a notebook's."""
    _listen()  # imports the harness, which takes longer than a search may be kept waiting
    managers = {label: _Samples(_number(score), cost) for label in _by_label(models)}

    async def pull(label: Any, item: Any, seed: int) -> Score:
        return await managers[label].score_of(item, seed)

    search = asyncio.ensure_future(
        select_async(
            pull,
            arms=list(managers),
            items=sample_ids(task),
            k=k,
            workers=workers,
            **{"retries": 0, **settings},
        )
    )
    for each in managers.values():
        search.add_done_callback(each.close)
    try:
        await _begun(search, managers.values())
        logs = []
        if not search.done():
            epochs = settings.get("repeats", 1)
            logs = await _evaluated(task, _by_label(models), managers, epochs, evaluation or {})
        for each in managers.values():
            each.end("inspect_ai ended before it")
        return SelectedModels(await search, logs)
    finally:
        search.cancel()


def _by_label(models: Iterable[str] | Mapping[Any, Any]) -> dict[Any, Any]:
    """The models by label; names are labels of their own."""
    if isinstance(models, Mapping):
        return dict(models)
    names = list(models)
    wrong = next((each for each in names if not isinstance(each, str)), None)
    if wrong is not None or isinstance(models, str):
        given = shown(models if wrong is None else wrong)
        raise InvalidInput(
            f"`models` has {given}, but must be names of models, or a mapping of models by label"
        )
    return {name: name for name in names}


def _number(score: Callable[[Any], float] | None) -> Callable[[Any], float]:
    if score is not None:
        return score
    from inspect_ai.scorer import value_to_float

    number: Callable[[Any], float] = value_to_float()
    return number


async def _begun(search: "asyncio.Future[Result]", managers: Iterable["_Samples"]) -> None:
    """Wait until the search asks for its first sample, or ends: bad settings make no logs."""
    asked = [asyncio.ensure_future(each.asked.wait()) for each in managers]
    ends: list[asyncio.Future[Any]] = [search, *asked]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for each in asked:
        each.cancel()


async def _evaluated(
    task: Any,
    models: Mapping[Any, Any],
    managers: Mapping[Any, "_Samples"],
    epochs: int,
    options: Mapping[str, Any],
) -> list[Any]:
    """The logs of one evaluation, with a task per model that differs in model and manager only."""
    from inspect_ai import eval_async, task_with
    from inspect_ai.util._display import init_display_type

    init_display_type(options.get("display", "none"))
    tasks = [
        task_with(
            copy(task),
            model=model,
            early_stopping=managers[label],
            metadata={**(task.metadata or {}), "shortlist_arm": str(label)},  # for `scores=`
        )
        for label, model in models.items()
    ]
    # all samples must be able to wait at once: the search asks for them in its own order
    size = len(task.dataset) * epochs
    own = {"max_tasks": len(tasks), "max_samples": size, "epochs": epochs}
    settings = {name: each for name, each in {**own, **options}.items() if name != "display"}
    return list(await eval_async(tasks, **settings))


class _Samples:
    """The early stopping manager of one model: its samples wait until they are asked for."""

    def __init__(self, number: Callable[[Any], float], cost: Callable[[Any], float] | None) -> None:
        self.asked = asyncio.Event()  # whether any sample was
        self._number = number
        self._cost = cost
        self._times: Counter[str] = Counter()  # epochs of every sample that were asked for
        self._epochs: dict[int, tuple[str, int]] = {}  # sample and epoch by the seed of the pull
        self._wanted: dict[tuple[str, int], asyncio.Event] = {}
        self._scores: dict[tuple[str, int], asyncio.Future[Score]] = {}
        self._closed = False

    async def score_of(self, item: Any, seed: int) -> Score:
        """Let the next epoch of a sample run, and return its score.

        A pull that is made again, with the same seed, gets the score of the first time."""
        if seed not in self._epochs:
            self._times[str(item)] += 1
            key = self._epochs[seed] = str(item), self._times[str(item)]
            self._scores[key] = asyncio.get_running_loop().create_future()
            self._gate(key).set()
            self.asked.set()
        return await asyncio.shield(self._scores[self._epochs[seed]])

    def _gate(self, key: tuple[str, int]) -> asyncio.Event:
        return self._wanted.setdefault(key, asyncio.Event())

    def close(self, _: object = None) -> None:
        """Skip all samples that wait: the search is over."""
        self._closed = True
        for gate in self._wanted.values():
            gate.set()

    def take(self, sample: Any) -> None:
        """Tell the score of a sample that ended, or its error."""
        waiting = self._scores.get((str(sample.id), sample.epoch))
        if waiting is None or waiting.done():
            return
        try:
            waiting.set_result(self._score(sample))
        except (EvaluationFailed, InvalidInput) as error:
            waiting.set_exception(error)

    def _score(self, sample: Any) -> Score:
        if not sample.scores:
            why = sample.error.message if sample.error else "it has no score"
            raise EvaluationFailed(f"sample {sample.id!r} of inspect_ai failed: {why}")
        only = _only_score(sample)
        answer = None if only.answer is None else only.answer[:LONGEST_ANSWER]
        cost = None if self._cost is None else float(self._cost(sample))
        return Score(
            float(self._number(only.value)), cost, {"answer": answer, "sample": sample.uuid}
        )

    def end(self, why: str) -> None:
        """Fail the samples that are still waited for."""
        for (item, _), waiting in self._scores.items():
            if not waiting.done():
                waiting.set_exception(EvaluationFailed(f"sample {item!r} has no score: {why}"))
                waiting.exception()  # it is no error if none waits for it

    async def start_task(self, task: Any, samples: Any, epochs: int) -> str:  # noqa: ARG002
        """Called by inspect_ai before the first sample."""
        _running[task.eval_id] = self
        return "shortlist"

    async def schedule_sample(self, id: Any, epoch: int) -> Any:  # noqa: A002  # its name there
        """Wait until the search asks for a sample, or ends; then skip it."""
        from inspect_ai.util import EarlyStop

        key = str(id), epoch
        if not self._closed:
            await self._gate(key).wait()
        if key in self._scores:
            return None
        return EarlyStop(id=id, epoch=epoch, reason="the search does not need it")

    async def complete_sample(self, id: Any, epoch: int, scores: Any) -> None:  # noqa: A002
        """Nothing: `take` gets the whole sample, with its usage."""

    async def complete_task(self) -> dict[str, Any]:
        """What the log notes about the samples that were skipped."""
        return {"asked for": len(self._scores)}


_running: dict[str, _Samples] = {}  # managers by the id of their evaluation


@cache
def _listen() -> None:
    """Have samples and tasks that end told to their manager."""
    check_installed("inspect_ai", "inspect")
    from inspect_ai.hooks import Hooks, hooks

    @hooks(name="shortlist", description="Tells scores of samples to a search.")
    class Listener(Hooks):  # type: ignore[misc]
        async def on_sample_end(self, data: Any) -> None:
            if data.eval_id in _running:
                _running[data.eval_id].take(data.sample)

        async def on_task_end(self, data: Any) -> None:
            if data.eval_id in _running:
                error = data.log.error
                _running.pop(data.eval_id).end(error.message if error else "the task ended")


def scorer_of(
    task: Any, score: Callable[[Any], float] | None = None, **options: Any
) -> Callable[[Any, Sequence[Any]], list[float]]:
    """Return a function that scores a model on some samples, for `select(pull_many=...)`.

    Every call is an evaluation with a log of its own; `select_models` makes one per model.

    Args:
        task: A task of inspect_ai. It is evaluated with one epoch.
        score: Turns the value of a score into a number; by default "C" is 1, "P" is 0.5, "I" and
            "N" are 0, and numbers stay.
        options: Passed to `inspect_ai.eval`.

    Returns:
        A function of a model and a list of sample ids that returns their scores."""
    check_installed("inspect_ai", "inspect")
    from inspect_ai import eval as evaluate

    number = _number(score)

    def score_once(model: Any, ids: Sequence[Any]) -> list[float]:
        settings = {"display": "none", "epochs": 1, **options}
        (log,) = evaluate(task, model=model, sample_id=list(ids), **settings)
        if log.status != "success":
            why = log.error.message if log.error else "no message"
            raise EvaluationFailed(f"inspect_ai ended with {log.status}: {why}")
        values = {sample.id: _only_score(sample).value for sample in log.samples or []}
        missing = [each for each in ids if each not in values]
        if missing:
            raise EvaluationFailed(f"inspect_ai has no score of sample {missing[0]!r}")
        return [float(number(values[each])) for each in ids]

    return in_turns(score_once)


def _only_score(sample: Any) -> Any:
    """The one score a sample has."""
    scores = list((sample.scores or {}).values())
    if len(scores) != 1:
        raise InvalidInput(f"sample {sample.id!r} has {len(scores)} scores, but must have one")
    return scores[0]
