"""Choose the best two of six models with async calls: costs in dollars, and a store to resume.

`Client` stands for the async client of a provider, such as `openai.AsyncOpenAI()`: it answers from
a formula, so that this runs without a key."""

import asyncio
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

import shortlist

PRICES = {  # dollars per call, roughly; what a call really cost is told with its score
    "tiny": 0.0002,
    "small": 0.0004,
    "medium": 0.001,
    "large": 0.002,
    "huge": 0.004,
    "other": 0.001,
}
RIGHT = {"tiny": 0.4, "small": 0.5, "medium": 0.7, "large": 0.86, "huge": 0.9, "other": 0.55}
QUESTIONS = {f"question {number}": f"answer {number}" for number in range(200)}


@dataclass
class Reply:
    """What a provider sends back."""

    text: str
    tokens: int


class Client:
    """A provider."""

    calls = 0

    async def create(self, model: str, prompt: str) -> Reply:
        """Answer a question, after a while."""
        await asyncio.sleep(0.0005)
        self.calls += 1
        chance = random.Random(f"{model} {prompt}")
        is_right = chance.random() < RIGHT[model]
        return Reply(QUESTIONS[prompt] if is_right else "no idea", chance.randint(80, 120))


client = Client()


async def score(model: str, question: str) -> shortlist.Score:
    """Ask a model, and grade its answer: 1 right, 0 wrong."""
    reply = await client.create(model, question)
    dollars = PRICES[model] * reply.tokens / 100
    right = float(reply.text == QUESTIONS[question])
    return shortlist.Score(right, cost=dollars, info={"answer": reply.text})


def choose(store: Path, budget: float) -> shortlist.Result:
    """Choose two models; called again with the same store, it continues where it ended."""
    return shortlist.select(
        score,
        arms=[shortlist.Arm(model, cost=price) for model, price in PRICES.items()],
        items=list(QUESTIONS),
        k=2,
        epsilon=0.05,
        budget=budget,
        workers=16,
        retries=3,
        store=store,
        progress=False,
    )


def main() -> None:
    """Choose, then call again with the same store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "models.db")
        result = choose(store, budget=3.0)
        spent = sum(cell.cost for cell in result.cells or ())
        print(result)
        print(f"{client.calls} of {len(PRICES) * len(QUESTIONS):,} calls, ${spent:.2f}")
        before = client.calls
        again = choose(store, budget=3.0)
        print(f"Again: {', '.join(again.top)} after {client.calls - before} more calls")


if __name__ == "__main__":
    main()
