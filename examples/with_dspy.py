"""Choose the best of three DSPy programs on a development set, without a language model.

Needs `pip install 'shortlist[dspy]'`. With a language model, programs are made of
`dspy.Predict` and the like, after `dspy.configure(lm=...)`."""

import random
import tempfile
from pathlib import Path

import dspy

import shortlist
from shortlist.harnesses.with_dspy import scorer_of

RIGHT = {"plain": 0.5, "chain of thought": 0.85, "few examples": 0.65}


class Program(dspy.Module):  # type: ignore[misc]
    """Knows a share of the answers."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, question: str) -> dspy.Prediction:
        """Answer a question."""
        knows = random.Random(f"{self.name} {question}").random() < RIGHT[self.name]
        return dspy.Prediction(answer=question.upper() if knows else "?")


def metric(example: dspy.Example, prediction: dspy.Prediction, _: object = None) -> bool:
    """Whether the answer is right."""
    return bool(example.answer == prediction.answer)


DEVSET = [
    dspy.Example(question=f"q{n}", answer=f"Q{n}").with_inputs("question") for n in range(200)
]


def main() -> None:
    """Choose a program; called again with the same store, it continues where it ended."""
    programs = {name: Program(name) for name in RIGHT}
    with tempfile.TemporaryDirectory() as folder:
        result = shortlist.select(
            pull_many=scorer_of(programs, DEVSET, metric, num_threads=2),
            arms=list(programs),
            items=len(DEVSET),
            k=1,
            epsilon=0.1,
            batch=20,
            store=Path(folder, "programs.db"),
            progress=False,
        )
        print(result)
        print(f"{result.pulls} of {len(RIGHT) * len(DEVSET)} evaluations")


if __name__ == "__main__":
    main()
