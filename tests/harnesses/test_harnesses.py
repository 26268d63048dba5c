"""Adapters against the real harnesses, with models of their own that need no network.

A harness that is not installed is skipped: they are large, and no part of the development setup."""

import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist
from shortlist.errors import EvaluationFailed, InvalidInput

TARGETS = ["no" if number % 3 == 0 else "yes" for number in range(12)]  # eight yes, four no
Scorer = Callable[[Any, Sequence[Any]], list[float]]


def check(score: Scorer, items: Sequence[Any]) -> None:
    """Scores come in the order asked for, and arm 0, which says yes, is better than arm 1."""
    assert score(0, [items[1], items[3], items[2], items[3]]) == [1, 0, 1, 0]
    assert score(1, [items[1], items[3], items[2], items[3]]) == [0, 1, 0, 1]
    result = shortlist.select(
        pull_many=score, arms=2, items=items, k=1, epsilon=0.1, rewards="binary", progress=False
    )
    assert result.top == (0,)


def test_lm_eval_scores_documents_by_their_numbers(tmp_path: Path) -> None:
    pytest.importorskip("lm_eval")
    from lm_eval.api.model import LM

    from shortlist.harnesses.with_lm_eval import scorer_of

    class Says(LM):  # type: ignore[misc]
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

        def loglikelihood(self, requests: Any, **_: Any) -> list[tuple[float, bool]]:
            says = [each.args[1].strip() == self.text for each in requests]
            return [(0.0 if each else -5.0, True) for each in says]

        def loglikelihood_rolling(self, requests: Any, **_: Any) -> list[float]:
            return [0.0 for _ in requests]

        def generate_until(self, requests: Any, **_: Any) -> list[str]:
            return [self.text for _ in requests]

    lines = [json.dumps({"q": f"{n}?", "a": each}) for n, each in enumerate(TARGETS)]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    task = {
        "task": "yesno",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(tmp_path / "docs.jsonl")}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{q}}",
        "doc_to_choice": ["yes", "no"],
        "doc_to_target": "{{a}}",
        "metric_list": [{"metric": "acc"}],
    }
    texts, loads = ["yes", "no"], []

    def load(arm: int) -> Any:
        loads.append(arm)
        return Says(texts[arm])

    check(scorer_of(task, metric="acc", model=load), range(12))
    assert loads == [0, 1]  # once each, however often they are called
    score = scorer_of(task, metric="acc", model=load, loaded=1)
    for arm in (0, 0, 1, 1, 0):
        score(arm, [1, 2])
    assert loads == [0, 1, 0, 1, 0]


def test_lm_eval_loads_a_model_by_its_name_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lm_eval")
    from lm_eval.models.dummy import DummyLM

    from shortlist.harnesses.with_lm_eval import _loader

    given: list[Any] = []
    monkeypatch.setattr(DummyLM, "create_from_arg_string", lambda *each: given.append(each))
    _loader("dummy", "pretrained={}", {"batch_size": 4})("gpt2")
    sizes = {"batch_size": 4, "max_batch_size": None, "device": None}
    assert given == [("pretrained=gpt2", sizes)]


def test_dspy_scores_examples_by_their_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    dspy = pytest.importorskip("dspy")
    from shortlist.harnesses.with_dspy import scorer_of

    class Says(dspy.Module):  # type: ignore[misc, name-defined]
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

        def forward(self, question: str) -> Any:
            if self.text == "":
                raise RuntimeError(question)
            return dspy.Prediction(answer=self.text)

    examples = [
        dspy.Example(question=f"{n}?", answer=each).with_inputs("question")
        for n, each in enumerate(TARGETS)
    ]
    programs = {0: Says("yes"), 1: Says("no"), 2: Says("")}
    score = scorer_of(
        programs,
        examples,
        lambda example, prediction, trace=None: example.answer == prediction.answer,
    )

    capfd.readouterr()
    check(score, range(12))
    with pytest.raises(EvaluationFailed, match="program 2 raised on an example: RuntimeError"):
        score(2, [0, 1])
    assert capfd.readouterr() == ("", "")  # no progress, no log
    dspy.Evaluate(devset=examples, metric=lambda *_: 1.0)(programs[0])
    assert "Average Metric" in capfd.readouterr().err  # evaluations of others still log


def test_simopt_solutions_are_compared_on_common_random_numbers() -> None:
    pytest.importorskip("simopt")
    from simopt.models.cntnv import CntNVMaxProfit

    from shortlist.harnesses.with_simopt import Replications

    orders = (0.02, 0.1, 0.3, 1.0)
    designs = Replications(CntNVMaxProfit(), {f"order {x}": (x,) for x in orders})
    how = dict[str, Any](k=1, epsilon=0.2, rewards="normal", progress=False)
    how |= {"arms": designs.labels, "minimize": designs.minimize}
    shared = shortlist.select(designs, seeds="shared", **how)

    long_run = {x: np.mean([designs(x, seed) for seed in range(1000)]) for x in designs.labels}
    best = max(long_run.values())
    assert not designs.minimize
    assert best - long_run[shared.top[0]] <= 0.2
    assert shared.evidence["correlation"] > 0.3  # type: ignore[operator]
    assert designs("order 1.0", 7) == designs("order 1.0", 7) != designs("order 1.0", 7 + 2**40)
    assert shared == shortlist.select(designs, seeds="shared", executor="threads", workers=2, **how)


def test_seeds_of_simopt_have_no_random_numbers_in_common() -> None:
    pytest.importorskip("simopt")
    from simopt.models.san import SANLongestPath

    from shortlist.harnesses.with_simopt import Replications

    problem = SANLongestPath()
    designs = Replications(problem, {"slow": (8.0,) * problem.dim, "fast": (2.0,) * problem.dim})
    near = {designs("fast", seed) for seed in (0, 1, 2**16, 2**16 + 1, 2**63 - 1)}
    assert len(near) == 5
    assert designs.minimize
    with pytest.raises(InvalidInput, match=r"'none' is .*, but must keep to the constraints"):
        Replications(problem, {"none": (-1.0,) * problem.dim})


@pytest.mark.parametrize(
    ("package", "extra", "given"),
    [
        ("inspect_ai", "inspect", {"task": "arc"}),
        ("lm_eval", "lm-eval", {"task": "arc", "metric": "acc", "model": "hf"}),
        ("dspy", "dspy", {"programs": {}, "devset": [], "metric": None}),
    ],
)
def test_a_harness_that_is_missing_is_named_with_its_extra(
    package: str, extra: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    scorer_of = import_module(f"shortlist.harnesses.with_{package}").scorer_of
    message = rf"{package} is not installed: pip install 'shortlist\[{extra}\]'"
    with pytest.raises(InvalidInput, match=message):
        scorer_of(**given)
