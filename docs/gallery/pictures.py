"""Draw the pictures of docs/gallery.md: `python docs/gallery/pictures.py`, next to this file."""

import random
import textwrap
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


def lead_by_day() -> Figure:
    """A novelty that fades while the level of both pages moves, and what the test says of it."""
    rng, days, visitors = np.random.default_rng(1), 14, 20_000
    test = shortlist.Experiment.create(
        ["old", "new"], 1, epsilon="0.5%", rewards="binary", unit="%", per_day=visitors,
        min_blocks=days, seed=1,
    )  # fmt: skip
    rates = np.zeros((days, 2))
    for day in range(days):
        shares = np.array(list(test.shares(f"day {day + 1}").percent.values())) / 100
        came = rng.multinomial(visitors, shares)
        level = 0.7 if day % 7 > 4 else 1.0
        won = rng.binomial(came, level * (0.03 + np.array([0.0, 0.012 * 0.5 ** (day / 3)])))
        rates[day] = won / came
        told = zip(("old", "new"), zip(came.tolist(), won.tolist(), strict=True), strict=True)
        test.tell_counts(f"day {day + 1}", dict(told))
    (note, *_) = (each for each in test.result(partial=True).notes if "lead of new" in each)
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    level_axes, lead_axes = figure.subplots(2, sharex=True)
    at = np.arange(1, days + 1)
    for page, colour in ((0, "#767676"), (1, "#0072B2")):
        look = {"color": colour, "marker": "o", "markersize": 3, "label": ("old", "new")[page]}
        level_axes.plot(at, 100 * rates[:, page], **look)
    level_axes.set(ylabel="converted, %", ylim=(0, None))
    level_axes.set_title("The level moves for both pages, and cancels", loc="left")
    level_axes.legend(loc="lower left", ncols=2)
    lead_axes.bar(at, 100 * (rates[:, 1] - rates[:, 0]), color="#0072B2")
    lead_axes.axhline(0, color="#767676", linewidth=0.8)
    lead_axes.set(xlabel="day", ylabel="lead of new, points")
    lead_axes.set_title("\n".join(textwrap.wrap(note, 88)), loc="left", fontsize="small")
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
    pictures["drift"] = lead_by_day()
    for name, figure in pictures.items():
        figure.savefig(Path(__file__).with_name(f"{name}.png"), dpi=90)


if __name__ == "__main__":
    main()
