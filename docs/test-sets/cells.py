"""Draw which cells were evaluated: `python docs/test-sets/cells.py`, next to this file."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import shortlist

MODELS, QUESTIONS, K = 80, 1000, 5


def main() -> None:
    """Choose the best 5 of 80 made-up models on 1000 questions, and draw who was asked what."""
    scores = shortlist.instances.item_response(MODELS, QUESTIONS, np.random.default_rng(0))
    asked = np.zeros(scores.shape, dtype=np.bool_)
    order: dict[int, int] = {}  # the place of every question, as it was first asked

    def score(model: int, question: int) -> float:
        order.setdefault(question, len(order))
        asked[model, question] = True
        return float(scores[model, question])

    result = shortlist.select(
        score, arms=MODELS, k=K, epsilon=0.02, items=QUESTIONS, rewards="binary", progress=False
    )
    best_first = np.argsort(-scores.mean(1), kind="stable")
    columns = [*order, *(each for each in range(QUESTIONS) if each not in order)]
    share = result.pulls / scores.size
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.imshow(asked[best_first][:, columns], aspect="auto", cmap="Blues", interpolation="nearest")
    axes.axhline(K - 0.5, color="tab:red", linewidth=1)
    axes.set_xlabel("questions, in the order drawn")
    axes.set_ylabel("models, best first")
    axes.set_title(f"{share:.0%} of the cells prove the best {K} of {MODELS} up to 0.02")
    figure.savefig(Path(__file__).with_name("cells.png"), dpi=110)
    print(f"{result.pulls:,} of {scores.size:,} cells, {share:.3f}")


if __name__ == "__main__":
    main()
