"""Draw the pictures of docs/gallery.md: `python docs/gallery/pictures.py`, next to this file."""

import random
from pathlib import Path

import numpy as np

import shortlist

RATES = {f"prompt {place}": 0.9 - 0.03 * place for place in range(20)}  # unknown in practice
CLICKS = {"blue": 95, "red": 88, "green": 52, "grey": 45, "white": 42, "pink": 24}  # of 1,000 views
MEANS = np.linspace(0.3, 0.7, 30)


def evaluate(prompt: str, seed: int) -> bool:
    """Whether one question is answered rightly with this prompt."""
    return random.Random(seed).random() < RATES[prompt]


def main() -> None:
    """Draw every picture into this folder."""
    result = shortlist.select(
        evaluate, arms=list(RATES), k=5, epsilon=0.05, rewards="binary", progress=False
    )
    counts = {arm: (1000, clicked) for arm, clicked in CLICKS.items()}
    tried = ["certified", "expected-loss", "uniform"]
    several = ["expected-loss", "sar", "uniform"]
    budgets = [300, 600, 1200, 2400]
    pictures = {
        "result": result.plot(),
        "assessment": shortlist.assess(counts, k=2, fixed=True).plot(),
        "forecast": shortlist.forecast(
            k=5, n=40, prior=(2, 18), epsilon=0.1, budget=[500, 1500], algorithms=tried
        ).plot(),
        "runs": shortlist.simulate("certified", MEANS, k=5, epsilon=0.1, runs=40).plot(),
        "comparison": shortlist.compare(
            several, MEANS, k=5, epsilon=0.02, budgets=budgets, runs=50, seconds=None
        ).plot(),
    }
    for name, figure in pictures.items():
        figure.savefig(Path(__file__).with_name(f"{name}.png"), dpi=90)


if __name__ == "__main__":
    main()
