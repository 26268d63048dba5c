"""Draw the pictures of docs/gallery.md: `python docs/gallery/pictures.py`, next to this file."""

import random
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import shortlist

RATES = {f"prompt {place}": 0.9 - 0.03 * place for place in range(20)}  # unknown in practice
CLICKS = {"blue": 95, "red": 88, "green": 52, "grey": 45, "white": 42, "pink": 24}  # of 1,000 views
MEANS = np.linspace(0.3, 0.7, 30)


def evaluate(prompt: str, seed: int) -> bool:
    """Whether one question is answered rightly with this prompt."""
    return random.Random(seed).random() < RATES[prompt]


def bound_against_pulls() -> Figure:
    """The bound of a search, after every batch."""
    experiment = shortlist.Experiment.create(
        list(RATES), k=5, epsilon=0.05, rewards="binary", min_batch=50
    )
    experiment.run(evaluate, progress=False)
    points = [(at, now.bound) for at, now in experiment.history() if now.bound is not None]
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(*zip(*points, strict=True), drawstyle="steps-post", color="#0072B2")
    axes.axhline(0.05, color="#767676", linestyle="--")
    axes.annotate("epsilon = 0.05", (0, 0.05), xytext=(4, 4), textcoords="offset points")
    axes.set(xlabel="pulls", ylabel="regret bound", ylim=(0, None))
    axes.set_title("The best 5 of 20 prompts: the bound after every batch", loc="left")
    return figure


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
    pictures["bound"] = bound_against_pulls()
    for name, figure in pictures.items():
        figure.savefig(Path(__file__).with_name(f"{name}.png"), dpi=90)


if __name__ == "__main__":
    main()
