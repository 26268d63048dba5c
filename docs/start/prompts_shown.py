"""Draw the example of the README: `python docs/start/prompts_shown.py`, next to this file."""

import random
from pathlib import Path

import shortlist

QUALITY = {f"prompt {n}": 0.9 - 0.01 * n for n in range(60)}


def evaluate(prompt: str, seed: int) -> bool:
    """Answer one question with this prompt: right or wrong."""
    return random.Random(seed).random() < QUALITY[prompt]


def main() -> None:
    """Choose the best five of sixty prompts."""
    result = shortlist.select(
        evaluate,
        arms=list(QUALITY),
        k=5,
        epsilon=0.05,
        delta=0.05,
        rewards="binary",
        seed=0,
        progress=False,
    )
    figure = result.plot()
    figure.set_size_inches(7, 4.5)
    figure.savefig(Path(__file__).with_name("prompts.png"), dpi=110)
    print(result)


if __name__ == "__main__":
    main()
