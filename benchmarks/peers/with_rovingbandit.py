"""rovingbandit, in its own environment: the best arm, stopping at a confidence."""

from typing import Any

import numpy as np
from protocol import Chosen, serve
from rovingbandit import (
    LUCB,
    BanditEnvironment,
    BestArmIdentification,
    OnlineRunner,
    TopTwoThompson,
)

POLICIES = {"TopTwoThompson": TopTwoThompson, "LUCB": LUCB}


def choose(asked: dict[str, Any], run: int) -> Chosen:
    means = np.array(asked["means"][run])
    policy = POLICIES[asked["method"]](n_arms=means.size, seed=run)
    objective = BestArmIdentification(confidence_threshold=1 - asked["delta"], seed=run)
    arms = BanditEnvironment(n_arms=means.size, arm_means=means, seed=run)
    result = OnlineRunner().run(policy, arms, asked["most"], objective, early_stopping=True)
    pulls = len(result.history.arms)
    return [result.metadata["best_arm"]], pulls, pulls < asked["most"]


if __name__ == "__main__":
    serve(choose)
