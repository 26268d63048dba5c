"""PyPRS, in its own environment: the best alternative, or a good one, with a probability; its
defaults otherwise."""

import random
from typing import Any

import ray
from protocol import Chosen, serve
from PyPRS.Procedures.GSP import GSP
from PyPRS.Procedures.KT import KT
from PyPRS.SampleGen.SampleGenerate import SampleGenerate

PROCEDURES = {"KT": KT, "GSP": GSP}
# those of its window
DEFAULTS = {"KT": {"n0": 20, "g": 20}, "GSP": {"n0": 0, "n1": 50, "r_bar": 10, "beta": 100}}


def reward(alternative: list[float], seed: list[int]) -> float:
    """0 or 1. PyPRS advances the last number of the seed with every pull."""
    return float(random.Random((seed[0] << 64) + seed[2]).random() < alternative[1])


def choose(asked: dict[str, Any], run: int) -> Chosen:
    alternatives = []
    for arm, mean in enumerate(asked["means"][run]):
        alternatives.append(SampleGenerate(reward))
        alternatives[-1].set_args([arm, mean])
    alpha, method = asked["delta"], asked["method"]
    settings = {"alpha": alpha, "alpha1": alpha / 2, "alpha2": alpha / 2, "delta": asked["epsilon"]}
    settings |= {"Number of Processors": 1, "Reference Seed": [run << 20, 0, 0], "CRNs": False}
    result = PROCEDURES[method](alternatives, settings | DEFAULTS[method], 1)[-1]
    return [result["Best Alternative"][0]], result["Total Sample Size"], True


if __name__ == "__main__":
    ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
    serve(choose)
