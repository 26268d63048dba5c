"""Draw which arms were pulled, in the plane of two features: `python docs/features/plane.py`."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import shortlist


def main() -> None:
    """Choose the best 50 of 500 arms with two features, and draw the pulls of every arm."""
    rng = np.random.default_rng(0)
    features, means = shortlist.instances.linear(500, 3, rng)

    def works(arm: int, times: int) -> list[bool]:
        return list(rng.random(times) < means[arm])

    result = shortlist.select(
        pull_many=works,
        batch=100_000,
        arms=500,
        k=50,
        epsilon=0.02,
        rewards="binary",
        features=features,
        linear=True,
        progress=False,
    )
    pulls = np.array([arm.pulls for arm in result.arms])
    chosen = np.array([arm.chosen for arm in result.arms])
    figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
    for inside, colour, name in ((False, "tab:grey", "others"), (True, "tab:blue", "chosen")):
        points = features[chosen == inside]
        axes.scatter(points[:, 0], points[:, 1], s=4, color=colour, label=f"{name}, a dot per arm")
    pulled = pulls > 0
    axes.scatter(
        features[pulled, 0],
        features[pulled, 1],
        s=2 * pulls[pulled],
        facecolors="none",
        edgecolors="tab:red",
        label="pulls, by area",
    )
    axes.set_xlabel("first feature")
    axes.set_ylabel("second feature")
    axes.set_title(f"{result.pulls:,} pulls of {pulled.sum()} arms prove the best 50 of 500")
    axes.legend(loc="lower left", fontsize="small")
    figure.savefig(Path(__file__).with_name("plane.png"), dpi=110)
    print(f"{result.pulls:,} pulls of {pulled.sum()} arms")


if __name__ == "__main__":
    main()
