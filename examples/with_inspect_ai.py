"""Choose the best of four models on a task of inspect_ai, with its mock models.

Needs `pip install 'shortlist[inspect]'`. With real models, MODELS is a list of names such as
"openai/gpt-5"."""

import random
import tempfile
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalSample
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

from shortlist.harnesses.with_inspect_ai import select_models

RIGHT = {"alpha": 0.5, "beta": 0.85, "gamma": 0.6, "delta": 0.4}


def model_of(name: str) -> Model:
    """A mock model that knows a share of the answers."""

    def answer(messages: Any, *_: Any, **__: Any) -> ModelOutput:
        left, right = messages[-1].text.split(" + ")
        knows = random.Random(f"{name} {left} {right}").random() < RIGHT[name]
        output = ModelOutput.from_content(name, str(int(left) + int(right) + (not knows)))
        output.usage = ModelUsage(input_tokens=20, output_tokens=5, total_tokens=25)
        return output

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def cost(sample: EvalSample) -> float:
    """Tokens of a sample; dollars, if inspect_ai knows the prices of your models."""
    return float(sum(usage.total_tokens for usage in sample.model_usage.values()))


TASK = Task(
    dataset=MemoryDataset(
        [Sample(id=f"sum {n}", input=f"{n} + {n % 7}", target=str(n + n % 7)) for n in range(100)]
    ),
    solver=generate(),
    scorer=match(),
)
MODELS = {name: model_of(name) for name in RIGHT}


def main() -> None:
    """Run one evaluation over all models; samples that are not needed are skipped."""
    with tempfile.TemporaryDirectory() as folder:
        found = select_models(
            TASK,
            MODELS,
            k=1,
            epsilon=0.1,
            workers=8,
            cost=cost,
            store=Path(folder, "models.db"),  # called again, it continues where it ended
            evaluation={"log_dir": folder},
            progress=False,
        )
        print(found.result)
        ran = [len(log.samples or []) for log in found.logs]
        print(f"{len(ran)} logs, {sum(ran)} of {len(RIGHT) * 100} samples")


if __name__ == "__main__":
    main()
