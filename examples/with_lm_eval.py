"""Choose the best of three models on a task of lm-evaluation-harness, with mock models.

Needs `pip install 'shortlist[lm-eval]'`. With real models, `model="hf"` and
`model_args="pretrained={}"` load the model that an arm names, once."""

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from lm_eval.api.model import LM

import shortlist
from shortlist.harnesses.with_lm_eval import scorer_of

RIGHT = {"small": 0.5, "large": 0.9, "medium": 0.7}
SIZE = 200


class Mock(LM):  # type: ignore[misc]
    """Prefers the right one of two choices on a share of the documents."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def loglikelihood(self, requests: Any, **_: Any) -> list[tuple[float, bool]]:
        """How likely a choice is after a question."""
        return [(self._logarithm(*each.args), False) for each in requests]

    def _logarithm(self, question: str, choice: str) -> float:
        knows = random.Random(f"{self.name} {question}").random() < RIGHT[self.name]
        return -1.0 if (choice.strip() == "yes") == knows else -5.0

    def loglikelihood_rolling(self, requests: Any, **_: Any) -> list[float]:
        """Not used by this task."""
        raise NotImplementedError

    def generate_until(self, requests: Any, **_: Any) -> list[str]:
        """Not used by this task."""
        raise NotImplementedError


def task_in(folder: str) -> dict[str, Any]:
    """A task of yes/no questions; the name of a task such as "arc_easy" does as well."""
    path = Path(folder, "documents.jsonl")
    path.write_text("\n".join(json.dumps({"question": f"{n}?"}) for n in range(SIZE)))
    return {
        "task": "questions",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(path)}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{question}}",
        "doc_to_choice": ["yes", "no"],
        "doc_to_target": "yes",
        "metric_list": [{"metric": "acc"}],
    }


def main() -> None:
    """Choose a model; called again with the same store, it continues where it ended."""
    with tempfile.TemporaryDirectory() as folder:
        result = shortlist.select(
            pull_many=scorer_of(task_in(folder), metric="acc", model=Mock),
            arms=list(RIGHT),
            items=SIZE,
            k=1,
            epsilon=0.1,
            batch=20,
            store=Path(folder, "models.db"),
            progress=False,
        )
        print(result)
        print(f"{result.pulls} of {len(RIGHT) * SIZE} documents")


if __name__ == "__main__":
    main()
