"""Draw the price of every quota: `python docs/quotas/prices.py`, next to this file."""

import random
from pathlib import Path

import matplotlib.pyplot as plt

import shortlist
from shortlist import Arm

RATES = {  # of 20 prompts in four families
    "short": (0.42, 0.40, 0.37, 0.33, 0.30),
    "examples": (0.63, 0.61, 0.58, 0.52, 0.45),
    "step by step": (0.72, 0.70, 0.69, 0.66, 0.60),
    "roles": (0.55, 0.50, 0.41, 0.38, 0.35),
}
QUOTAS = {"short": (1, 5), "examples": (1, 2), "step by step": (0, 2), "roles": (0, 3)}


def main() -> None:
    """Choose six prompts, at most two of the better families, and draw what the quotas cost."""
    rng = random.Random(0)
    rates = {
        f"{family} {place}": rate
        for family, own in RATES.items()
        for place, rate in enumerate(own, start=1)
    }
    result = shortlist.select(
        lambda prompt: rng.random() < rates[prompt],
        arms=[Arm(label, group=label.rsplit(" ", 1)[0]) for label in rates],
        k=6,
        epsilon=0.05,
        quotas=QUOTAS,
        rewards="binary",
        progress=False,
    )
    groups = result.groups
    names = [f"{each.group}\n{each.chosen} of {each.least} to {each.most}" for each in groups]
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    axes.barh(names, [each.price for each in groups], color="tab:blue")
    axes.invert_yaxis()
    axes.set_xlabel("price: estimated gain in mean reward if the quota were one wider")
    axes.set_title(f"{len(result.top)} of {len(rates)} prompts, {result.pulls:,} pulls")
    figure.savefig(Path(__file__).with_name("prices.png"), dpi=110)
    print(result)


if __name__ == "__main__":
    main()
