"""One evaluation of inspect_ai over all models, with its own mock models; skipped without it."""

import asyncio
import gc
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shortlist
from shortlist.errors import EvaluationFailed, InvalidInput

pytest.importorskip("inspect_ai")

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

from shortlist.harnesses.with_inspect_ai import (
    sample_ids,
    scorer_of,
    select_models,
    select_models_async,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of the harness, which are not ours


@pytest.fixture(autouse=True, scope="module")
def collected() -> Iterator[None]:
    """The harness leaves streams open; they are collected while its warnings are ignored."""
    yield
    gc.collect()


RATES = {"poor": 0.45, "best": 0.9, "worst": 0.3, "fair": 0.6}
IDS = [f"q{number}" for number in range(100)]


def right(label: str, item: str) -> bool:
    """Whether a model knows a question; it is as random as an answer, but the same every time."""
    return random.Random(f"{label} {item}").random() < RATES[label]


def model_of(label: str, broken: str = "") -> Any:
    """A mock model that knows a share of the questions, and raises at one that is broken."""

    def output(messages: Any, *_: Any, **__: Any) -> Any:
        item = messages[-1].text
        if item == broken:
            raise RuntimeError("the model is gone")
        made = ModelOutput.from_content(
            "mockllm/model", "yes" if right(label, item) else "no, not at all"
        )
        made.usage = ModelUsage(output_tokens=2)  # or it looks for a tokenizer on the network
        return made

    return get_model("mockllm/model", custom_outputs=output, memoize=False)


def task_of(ids: list[str] = IDS) -> Any:
    samples = [Sample(id=each, input=each, target="yes") for each in ids]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=match())


MODELS = {label: model_of(label) for label in RATES}
SETTINGS: dict[str, Any] = {"k": 1, "epsilon": 0.1, "workers": 8, "progress": False}


def selected(logs: Path, models: Any = MODELS, task: Any = None, **more: Any) -> Any:
    given = {**SETTINGS, **more, "evaluation": {"log_dir": str(logs), **more.get("evaluation", {})}}
    return select_models(task or task_of(), models, **given)


def cells(result: Any) -> dict[tuple[str, str], float]:
    return {(cell.arm, cell.item): cell.score for cell in result.cells}


def means(result: Any) -> list[tuple[int, float]]:
    return [(arm.pulls, arm.mean) for arm in result.arms]


def in_logs(logs: Any) -> list[int]:
    return [len(log.samples or []) for log in logs]


def test_one_evaluation_makes_a_log_per_model_and_chooses_as_select_does(tmp_path: Path) -> None:
    found = selected(tmp_path)
    result, logs = found
    same = shortlist.select(
        lambda label, item: float(right(label, item)), arms=list(RATES), items=IDS, **SETTINGS
    )

    assert result.top == same.top == ("best",)
    assert (result.reached, result.regret_bound) == (True, same.regret_bound)
    assert means(result) == means(same)
    assert len(logs) == len(list(tmp_path.glob("*.eval"))) == 4
    assert {log.status for log in logs} == {"success"}
    assert result.pulls <= sum(in_logs(logs)) < 400
    skipped = [len(log.results.early_stopping.early_stops) for log in logs]
    assert [ran + left for ran, left in zip(in_logs(logs), skipped, strict=True)] == [100] * 4
    for label, log in zip(RATES, logs, strict=True):
        for sample in log.samples:
            assert (sample.scores["match"].value == "C") == right(label, sample.id)


def test_logs_are_read_as_scores(tmp_path: Path) -> None:
    result, logs = selected(tmp_path)
    found = shortlist.assess(scores=tmp_path, k=1)
    assert {arm.label for arm in found.arms} == set(RATES)
    assert found.pulls == sum(in_logs(logs))
    again = selected(tmp_path / "more", scores=tmp_path).result
    assert (again.top, again.reached) == (result.top, True)
    ran = {(label, each.id) for label, log in zip(RATES, logs, strict=True) for each in log.samples}
    assert not ran & cells(again).keys()


def test_a_run_in_a_store_continues_and_keeps_answers_and_costs(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"

    def tokens(sample: Any) -> float:
        return float(sum(each.output_tokens for each in sample.model_usage.values()))

    first = selected(tmp_path, store=store, cost=tokens, budget=60).result
    assert {cell.cost for cell in first.cells} == {2.0}
    assert {cell.info["answer"] for cell in first.cells} == {"yes", "no, not at all"}
    again, logs = selected(tmp_path, store=store, cost=tokens, budget=60)
    assert (again.top, logs) == (first.top, [])  # nothing is left to run

    broken = {**MODELS, "fair": model_of("fair", broken=first.cells[-1].item)}
    del broken["worst"]
    with pytest.raises(EvaluationFailed, match=r"sample 'q\d+' of inspect_ai failed: .*is gone"):
        selected(tmp_path, broken, store=store, name="broken")
    whole = {label: MODELS[label] for label in broken}
    done, logs = selected(tmp_path, whole, store=store, name="broken")
    assert sum(in_logs(logs)) < len(done.cells)
    assert means(done) == means(selected(tmp_path, whole).result)


def test_a_failed_sample_can_count_as_a_score(tmp_path: Path) -> None:
    broken = {**MODELS, "worst": model_of("worst", broken=IDS[7])}
    result = selected(tmp_path, broken, epsilon=0.01, evaluation={"score_on_error": True}).result
    assert result.top == ("best",)
    assert cells(result).get(("worst", IDS[7]), 0.0) == 0.0


def test_samples_run_once_per_repetition(tmp_path: Path) -> None:
    result, logs = selected(tmp_path, task=task_of(IDS[:12]), repeats=2, epsilon=0.05)
    ran = [(sample.id, sample.epoch) for sample in logs[1].samples]
    assert len(ran) == len(set(ran))
    assert {epoch for _, epoch in ran} == {1, 2}
    assert result.top == ("best",)


def test_bad_settings_are_refused_before_there_is_a_log(tmp_path: Path) -> None:
    for wrong, why in (
        ({"k": 4}, "`k` is 4"),
        ({"epsilon": -1}, "`epsilon` is -1"),
        ({"models": [MODELS["best"]]}, "must be names of models"),
        ({"models": "mockllm/model"}, "must be names of models"),
    ):
        with pytest.raises(InvalidInput, match=why):
            selected(tmp_path, **wrong)
    assert not list(tmp_path.iterdir())


def test_a_model_that_does_not_exist_ends_the_search(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="nosuch"):
        selected(tmp_path, ["mockllm/a", "nosuch/b"])


def test_it_can_be_awaited_in_a_loop_that_is_running(tmp_path: Path) -> None:
    async def run() -> Any:
        with pytest.raises(InvalidInput, match="await select_models_async"):
            selected(tmp_path)
        evaluation = {"log_dir": str(tmp_path)}
        return await select_models_async(task_of(), MODELS, evaluation=evaluation, **SETTINGS)

    assert asyncio.run(run()).result.top == ("best",)


def test_samples_are_scored_by_their_ids(tmp_path: Path) -> None:
    task = task_of(IDS[:12])
    score = scorer_of(task, log_dir=str(tmp_path))
    ids = [IDS[1], IDS[3], IDS[2], IDS[3]]
    for label in ("best", "worst"):
        assert score(MODELS[label], ids) == [float(right(label, each)) for each in ids]
    assert sample_ids(task)[:2] == ["q0", "q1"]
