"""Few arms under quotas: pulls, regret and failures of `certified`, next to other methods.

    python benchmarks/quotas.py --runs 100 --seed 0

Means are uniform on [.1, .9], one draw per run; rewards are 0/1; arms are shuffled. "By group"
solves every group on its own at delta / groups, which fixed quotas allow. "Design" is the fixed
design of the family in all, "largest" the largest run over it."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.certificates.frame import fixed_design, log_swaps_of
from shortlist.constraints import Quotas
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import BernoulliBandit

DELTA = 0.05
HEADER = "| sets | eps | method | pulls | s.e. | regret | failures | design | largest |"


@dataclass(frozen=True)
class Instance:
    """Groups of one size with one quota."""

    words: str
    groups: int
    size: int
    quota: tuple[int, int]
    k: int
    epsilon: float
    ties: bool = False

    def draw(self, rng: np.random.Generator) -> tuple[FloatArray, Quotas]:
        """Means and quotas, shuffled."""
        n = self.groups * self.size
        order = rng.permutation(n)
        means = np.full(n, 0.5) if self.ties else rng.uniform(0.1, 0.9, n)
        names = np.repeat(np.arange(self.groups), self.size)[order].tolist()
        return means[order], Quotas(names, dict.fromkeys(names, self.quota), k=self.k)

    @property
    def fixed(self) -> bool:
        """Whether groups do not interact."""
        return self.quota[0] == self.quota[1]


INSTANCES = (
    Instance("1 to 3 of 6, four groups", 4, 6, (1, 3), 8, 0.05),
    Instance("2 of 6, four groups", 4, 6, (2, 2), 8, 0.05),
    Instance("1 of 8, three groups", 3, 8, (1, 1), 3, 0.05),
    Instance("4 of 12, two groups", 2, 12, (4, 4), 8, 0.03),
    Instance("1 to 3 of 6, four groups, ties", 4, 6, (1, 3), 8, 0.05, ties=True),
)
Run = tuple[float, float]  # pulls and regret


def problem_of(instance: Instance, family: Quotas) -> Problem:
    """The problem of choosing from the family."""
    goal = FixedConfidence(instance.epsilon, DELTA)
    return Problem(family.n_arms, instance.k, goal, Binary(), constraint=family)


def at_once(name: str, instance: Instance, rng: np.random.Generator) -> Run:
    """One run of an algorithm under the quotas."""
    means, family = instance.draw(rng)
    problem = problem_of(instance, family)
    outcome = drive(find(name), problem, BernoulliBandit(means), rng)
    return float(outcome.pulls.sum()), problem.regret(means, outcome.answer.top)


def by_group(instance: Instance, rng: np.random.Generator) -> Run:
    """One run of `certified` per group, each with its share of delta."""
    means, family = instance.draw(rng)
    pulls, top = 0.0, []
    for name, members in family.groups.items():
        arms = np.array(sorted(members))
        goal = FixedConfidence(instance.epsilon, DELTA / len(family.groups))
        problem = Problem(arms.size, family.limits[name][0], goal, Binary())
        outcome = drive(find("certified"), problem, BernoulliBandit(means[arms]), rng)
        pulls += float(outcome.pulls.sum())
        top.append(arms[outcome.answer.top])
    return pulls, problem_of(instance, family).regret(means, np.concatenate(top))


def rows(instance: Instance, runs: int, seed: int) -> Iterator[str]:
    """A row for every method."""
    rng = np.random.default_rng(seed)
    _, family = instance.draw(rng)
    problem = problem_of(instance, family)
    n, k = problem.n_arms, problem.k
    design = n * fixed_design(n, k, instance.epsilon, DELTA, Binary(), log_swaps_of(problem))
    methods = ["certified", *(["by group"] if instance.fixed else []), "clucb-pac"]
    for method in methods:
        several = max(2, runs // 10) if method == "clucb-pac" else runs
        found = []
        for run in range(several):
            own = np.random.default_rng([seed, run])
            found.append(
                by_group(instance, own) if method == "by group" else at_once(method, instance, own)
            )
        pulls, regret = np.array(found).T
        error = pulls.std(ddof=1) / several**0.5
        failed = int((regret > instance.epsilon).sum())
        yield (
            f"| {instance.words} | {instance.epsilon} | {method} | {pulls.mean():,.0f} |"
            f" {error:,.0f} | {regret.mean():.4f} | {failed} of {several} | {design:,} |"
            f" {pulls.max() / design:.2f} |"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="number of one instance")
    given = parser.parse_args()
    print(HEADER)
    print("|" + "---|" * HEADER.count("| "))
    chosen = INSTANCES if given.only is None else INSTANCES[given.only : given.only + 1]
    for instance in chosen:
        for row in rows(instance, given.runs, given.seed):
            print(row, flush=True)


if __name__ == "__main__":
    main()
