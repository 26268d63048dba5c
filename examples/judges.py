"""Choose the best assistants by a judge that compares two answers: Borda scores, and a baseline.

A judge that says which of two answers is better gives no score to a single assistant. Two recipes
turn its verdicts into scores that `select` can work with.

1. A random opponent. A pull of an arm is one duel with an opponent drawn at random from all others,
   independently of everything else. Its mean is the Borda score: the chance to win against a random
   other arm. With probability 0.95 the mean Borda score of the chosen arms is at most epsilon below
   that of the best set. A duel informs only the arm that was pulled: for its opponent, the other
   side is an arm that the search chose, and not a random one.
2. A fixed baseline on a test set. A cell is a duel of an arm with the baseline on a question. No
   cell is judged twice, and the promise is about the mean result against this baseline, on these
   questions.

The verdicts here are simulated; replace `verdict` by a call of your judge. Ask it in both orders
and take the mean, so that it cannot prefer the first answer."""

import math
import random

import shortlist

STRENGTHS = {"ada": 1.6, "bob": 1.3, "cleo": 0.6, "dan": 0.2, "eve": 0.0, "fay": -0.5}
QUESTIONS = 200


def verdict(first: str, second: str, rng: random.Random) -> float:
    """1 if the first answer is better, 0 if the second is."""
    chance = 1 / (1 + math.exp(STRENGTHS[second] - STRENGTHS[first]))
    return float(rng.random() < chance)


def both_orders(one: str, other: str, rng: random.Random) -> float:
    """The mean of two verdicts, one in each order: 0, 0.5 or 1."""
    return (verdict(one, other, rng) + 1 - verdict(other, one, rng)) / 2


def duel(arm: str, seed: int) -> float:
    """A duel with a random opponent."""
    rng = random.Random(seed)
    opponent = rng.choice([each for each in STRENGTHS if each != arm])
    return both_orders(arm, opponent, rng)


def against_baseline(arm: str, question: int) -> float:
    """A duel with the baseline on a question: the same verdict whenever it is asked for."""
    return both_orders(arm, "eve", random.Random(f"{arm} {question}"))


def main() -> None:
    """Choose two of six assistants in both ways."""
    borda = shortlist.select(
        duel, arms=list(STRENGTHS), k=2, epsilon=0.1, rewards=(0, 1), progress=False
    )
    print(f"Borda: {', '.join(sorted(borda.top))} after {borda.pulls:,} duels")
    print(borda.verdict)
    contenders = [arm for arm in STRENGTHS if arm != "eve"]
    fixed = shortlist.select(
        against_baseline, arms=contenders, k=2, epsilon=0.1, items=QUESTIONS, progress=False
    )
    every = len(contenders) * QUESTIONS
    print(f"Baseline: {', '.join(sorted(fixed.top))} after {fixed.pulls:,} of {every:,} duels")
    print(fixed.verdict)


if __name__ == "__main__":
    main()
