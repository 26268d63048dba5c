"""OCBA-m of sim-tools, in its own environment: designs are arms, and the m best are kept."""

from typing import Any

import numpy as np
from protocol import Chosen, serve
from sim_tools.ovs.fixed_budget import OCBAM


class Arms:
    """A model as sim-tools wants it: it tells its observer what a replication of a design gave."""

    def __init__(self, means: list[float], seed: int) -> None:
        self.means, self.rng, self.pulls = means, np.random.default_rng(seed), 0

    def register_observer(self, observer: OCBAM) -> None:
        """Remember whom to tell."""
        self.observer = observer

    def simulate(self, design: int) -> None:
        """Pull an arm once."""
        self.pulls += 1
        self.observer.feedback(self, design, float(self.rng.random() < self.means[design]))


def choose(asked: dict[str, Any], run: int) -> Chosen:
    means = asked["means"][run]
    arms = Arms(means, run)
    settings = {"delta": asked["step"], "n_0": asked["first"], "m": asked["k"], "obj": "max"}
    with np.errstate(divide="ignore", invalid="ignore"):  # arms that gave one value alone
        best = OCBAM(arms, len(means), asked["budget"], **settings).solve()
    return list(best), arms.pulls, True


if __name__ == "__main__":
    serve(choose)
