"""Results of harnesses as scores: files as these harnesses write them, through every door."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shortlist
from shortlist.cli import main
from shortlist.errors import InvalidInput
from shortlist.reading.scores import named_scores

LOGS = Path(__file__).parent / "results"  # of inspect_ai 0.3.285; the .eval is compressed again


def lines(path: Path, records: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def document(path: Path, record: Any) -> Path:
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


def matrix(scores: Any, repeats: int | None = None) -> tuple[Any, Any, Any]:
    found = named_scores(scores, repeats)
    assert found is not None
    return found.arms, found.items, found.scores.tolist()


def test_real_logs_of_inspect_ai_are_read_as_zip_and_as_json(tmp_path: Path) -> None:
    both = [LOGS / "inspect.eval", LOGS / "inspect.json"]
    # one model, that scored the same samples twice: two arms
    expected = ["mockllm/model (inspect)", "mockllm/model (inspect)"]
    for path in both:
        arms, items, scores = matrix(path)
        assert (arms, items) == (("mockllm/model",), ("q0", "q1", "q2"))
        log = json.loads((LOGS / "inspect.json").read_text())
        if path.suffix == ".json":
            values = [each["scores"]["match"]["value"] for each in log["samples"]]
            assert scores == [[float(each == "C") for each in values]]
    second = shutil.copy(both[1], tmp_path / "b.json")
    assert matrix([both[0], second])[0] == tuple(
        each.replace("(inspect)", name)
        for each, name in zip(expected, ("(inspect)", "(b)"), strict=True)
    )


def eval_log(model: str, scores: dict[tuple[str, int], Any], **more: Any) -> dict[str, Any]:
    samples = [
        {"id": item, "epoch": epoch, "scores": {"match": {"value": value}}}
        for (item, epoch), value in scores.items()
    ]
    return {"eval": {"model": model, "task": "arithmetic", **more}, "samples": samples}


def test_epochs_are_repetitions_and_failed_samples_are_unknown(tmp_path: Path) -> None:
    log = eval_log("a/b", {("x", 1): "C", ("x", 2): "I", ("y", 1): 0.25, ("y", 2): "P"})
    log["samples"].append({"id": "z", "epoch": 1, "scores": None, "error": {"message": "gone"}})
    path = document(tmp_path / "log.json", log)
    arms, items, scores = matrix(path)
    assert (arms, items) == (("a/b",), ("x", "y", "z"))
    assert np.array_equal(scores, [[1, 0, 0.25, 0.5, np.nan, np.nan]], equal_nan=True)
    with pytest.raises(InvalidInput, match="has score 2 of 'a/b' on item 'x', but `repeats` is 1"):
        matrix(path, 1)


def test_a_folder_is_all_of_its_files_and_two_tasks_have_items_of_their_own(tmp_path: Path) -> None:
    for model in ("a", "b"):
        for task in ("sums", "words"):
            log = eval_log(model, {("1", 1): model == "a", ("2", 1): True}, task=task)
            document(tmp_path / f"{model} {task}.json", log)
    arms, items, scores = matrix(tmp_path)
    assert (arms, items) == (("a", "b"), ("sums: 1", "sums: 2", "words: 1", "words: 2"))
    assert scores == [[1, 1, 1, 1], [0, 1, 0, 1]]


def test_a_metric_is_chosen_where_there_are_several(tmp_path: Path) -> None:
    log = eval_log("a", {("1", 1): {"exact": 1, "f1": 0.5}})
    path = document(tmp_path / "log.json", log)
    assert matrix(f"{path}#match/f1")[2] == [[0.5]]
    with pytest.raises(InvalidInput, match=r"metrics match/exact, match/f1, but one must be chose"):
        matrix(path)
    with pytest.raises(InvalidInput, match="no metric 'acc', but has match/exact, match/f1"):
        matrix(f"{path}#acc")


def test_samples_of_lm_eval_have_their_model_in_the_name_of_the_folder(tmp_path: Path) -> None:
    for model, scores in (("org__small", (0, 1, 0)), ("org__large", (1, 1, 0))):
        lines(
            tmp_path / model / "samples_arc_easy_2026-11-18T20-00-00.123456.jsonl",
            [
                {"doc_id": n, "doc": {}, "filter": "none", "metrics": ["acc"], "acc": each}
                for n, each in enumerate(scores)
            ],
        )
        document(tmp_path / model / "results_2026.json", {"results": {"arc_easy": {}}})
    arms, items, scores_read = matrix(tmp_path)
    assert (arms, items) == (("org/large", "org/small"), ("0", "1", "2"))
    assert scores_read == [[1, 1, 0], [0, 1, 0]]


def test_filters_of_lm_eval_are_metrics(tmp_path: Path) -> None:
    records = [
        {"doc_id": 0, "filter": name, "metrics": ["exact_match"], "exact_match": value}
        for name, value in (("strict", 0.0), ("flexible", 1.0))
    ]
    path = lines(tmp_path / "gpt2" / "samples_gsm8k_2026.jsonl", records)
    assert matrix(f"{path}#exact_match,flexible")[2] == [[1.0]]


def test_instances_of_every_eval_ever(tmp_path: Path) -> None:
    def record(model: str, item: str, score: float) -> dict[str, Any]:
        return {
            "schema_version": "0.2.1",
            "evaluation_id": "e",
            "model_id": model,
            "evaluation_name": "hellaswag",
            "sample_id": item,
            "interaction_type": "single_turn",
            "evaluation": {"score": score, "is_correct": score > 0.5},
            "error": None,
        }

    cells = [("p/one", "id1", 1.0), ("p/one", "id2", 0.0), ("p/two", "id1", 0.0)]
    path = lines(tmp_path / "x_samples.jsonl", [record(*each) for each in cells])
    arms, items, scores = matrix(path)
    assert (arms, items) == (("p/one", "p/two"), ("id1", "id2"))
    assert np.array_equal(scores, [[1.0, 0.0], [0.0, np.nan]], equal_nan=True)


def promptfoo(provider: str, prompt: int, test: int, score: float, **more: Any) -> dict[str, Any]:
    return {
        "promptIdx": prompt,
        "testIdx": test,
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": "…", "label": f"style {prompt}"},
        "success": score > 0.5,
        "failureReason": 0 if score > 0.5 else 1,
        "score": score,
        "namedScores": {},
        **more,
    }


def test_results_of_promptfoo_are_of_providers_and_prompts(tmp_path: Path) -> None:
    rows = [promptfoo(name, 0, test, test / 2) for name in ("x:a", "x:b") for test in range(3)]
    rows[-1] |= {"failureReason": 2, "error": "timeout", "score": 0}  # no answer, so no score
    summary = {"version": 3, "results": rows, "prompts": [], "stats": {}}
    path = document(tmp_path / "out.json", {"evalId": "e", "results": summary})
    arms, items, scores = matrix(path)
    assert (arms, items) == (("x:a", "x:b"), ("0", "1", "2"))
    assert np.array_equal(scores, [[0, 0.5, 1], [0, 0.5, np.nan]], equal_nan=True)
    both = lines(tmp_path / "out.jsonl", [promptfoo("x:a", each, 0, each) for each in (0, 1)])
    assert matrix(both)[0] == ("x:a | style 0", "x:a | style 1")


def test_test_runs_of_deepeval(tmp_path: Path) -> None:
    for name, score in (("first", 0.25), ("second", 0.75)):
        metrics = [{"name": "Faithfulness", "score": score, "success": True, "threshold": 0.5}]
        case = {"name": "test_case_0", "input": "?", "success": True, "metricsData": metrics}
        document(tmp_path / f"{name}.json", {"testCases": [case], "identifier": name})
    assert matrix(tmp_path) == (("first", "second"), ("test_case_0",), [[0.25], [0.75]])


def test_results_are_read_through_every_door(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    right = rng.random((3, 60)) < np.array([[0.9], [0.5], [0.4]])
    for row, model in zip(right, "abc", strict=True):
        scores = {(f"q{item}", 1): bool(each) for item, each in enumerate(row)}
        document(tmp_path / f"{model}.json", eval_log(model, scores))
    found = shortlist.assess(scores=tmp_path, k=1)
    assert found.top == ("a",)
    assert found.regret_bound == pytest.approx(0)
    files = [f"--scores={tmp_path / model}.json" for model in "abc"]
    ran = CliRunner().invoke(main, ["assess", *files, "-k", "1", "--format", "json"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout) == found.to_dict()

    items = [f"q{item}" for item in range(60)]
    given: dict[str, Any] = {"arms": list("abc"), "items": items, "progress": False}
    result = shortlist.select(
        lambda arm, item: 1 / 0, k=1, epsilon=0.01, scores=str(tmp_path), **given
    )
    assert (result.top, result.pulls) == (("a",), 0)
    shares = shortlist.simulate("certified", scores=tmp_path, k=1, epsilon=0.05, runs=2)
    assert shares.pulls.max() <= 180


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", "[]", "has other content than expected, but must have a log of inspect_ai"),
        ("a.json", "{", "cannot be read as JSON"),
        ("a.jsonl", "", "has other content than expected"),
        ("a.jsonl", '{"doc_id": 1}', "line 1 has no 'metrics', but must have it"),
        ("a.eval", "no zip", "cannot be read as a log of inspect_ai"),
        ("a.json", '{"eval": {"task": "t"}}', "has no 'model', but must have it"),
        (
            "a.json",
            json.dumps(eval_log("m", {("x", 1): "maybe"})),
            "sample 1 says 'maybe', but a score must be a number",
        ),
    ],
)
def test_other_content_is_refused(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInput, match=said):
        matrix(tmp_path / name)


def test_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.eval", f"{tmp_path / 'none.json'}#acc"):
        with pytest.raises(InvalidInput, match="but there is no such file"):
            matrix(path)
    with pytest.raises(
        InvalidInput, match=r"the folder has none that ends in \.eval, \.jsonl, \.json"
    ):
        matrix(tmp_path)
    with pytest.raises(InvalidInput, match="`scores` has 5, but must have names of files"):
        matrix(["a.json", 5])
