"""Optuna's halving pruners, in their own environment: trials are arms, a step is a pull, and the
best are kept."""

from typing import Any

import numpy as np
import optuna
from protocol import Chosen, serve


def pruner(asked: dict[str, Any]) -> optuna.pruners.BasePruner:
    first, last = asked["first"], asked["last"]
    if asked["method"] == "SuccessiveHalvingPruner":
        return optuna.pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=2)
    return optuna.pruners.HyperbandPruner(min_resource=first, max_resource=last, reduction_factor=2)


def choose(asked: dict[str, Any], run: int) -> Chosen:
    """Report the mean at every rung; keep the k arms that got furthest, among those the best
    means."""
    rng = np.random.default_rng(run)
    means, rungs = asked["means"][run], [asked["first"]]
    while rungs[-1] < asked["last"]:
        rungs.append(2 * rungs[-1])
    study = optuna.create_study(direction="maximize", pruner=pruner(asked), study_name=str(run))
    standing = []
    for arm, mean in enumerate(means):
        trial, pulls, total = study.ask(), 0, 0
        for rung in rungs:
            total += rng.binomial(rung - pulls, mean)
            pulls = rung
            trial.report(total / pulls, pulls)
            if pulls < rungs[-1] and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, total / pulls)
        standing.append((pulls, total / pulls, rng.random(), arm))
    best = sorted(standing, reverse=True)[: asked["k"]]
    return [arm for *_, arm in best], sum(pulls for pulls, *_ in standing), True


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(choose)
