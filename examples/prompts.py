"""Choose the best two of five prompts with an async function, sixteen calls at a time."""

import asyncio
import random

import shortlist

RIGHT = {  # accuracy of a model with each prompt; unknown in practice
    "Answer briefly.": 0.52,
    "Think step by step.": 0.81,
    "You are an expert.": 0.58,
    "Answer, then check your answer.": 0.78,
    "": 0.47,
}


async def score(prompt: str, seed: int) -> float:
    """Ask the model one question, drawn by the seed, and score its answer: 1 right, 0 wrong."""
    await asyncio.sleep(0.0005)  # the call to the model
    return float(random.Random(seed).random() < RIGHT[prompt])


def main() -> None:
    """Ask until the two prompts lose at most 0.15, or 4,000 calls are spent."""
    result = shortlist.select(
        score, arms=list(RIGHT), k=2, epsilon=0.15, delta=0.05, budget=4000, workers=16
    )
    print(result)
    print(f"Reached: {result.reached}, with {result.pulls:,} calls in {result.seconds:.1f} s")


if __name__ == "__main__":
    main()
