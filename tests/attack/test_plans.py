"""Plans under attack: beliefs that are wrong, boundaries in the wrong place, means chosen to hurt.

delta = .3, and all of it for one stage, two tracks and three boundaries, so that failures are seen.
A try lets all arms of a declared stage stop by the exact law of their plans, and settles them in
two blocks. It fails if what can be lost, whatever set is taken, reaches the bound: more often than
a claim is wrong, since that needs a bound within reach as well. Failures are held against the
binomial bound of independent tries, though those after the same first block are not: first blocks
are few, so the test sees less of what they do to later ones than of everything else."""

from collections.abc import Iterator

import numpy as np
import pytest
from attack_scale import SCALE
from scipy.special import logsumexp
from scipy.stats import binom

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.plans import stage as stage_module
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief
from shortlist.certificates.plans.bound import Stakes
from shortlist.certificates.plans.planning import Plan, predict_cost
from shortlist.certificates.plans.search import PlanLook
from shortlist.certificates.plans.stage import ArmBlock, PlanStage, stopped_arms

DELTA = 0.3
EPSILON = 0.25
ARMS = 12
TRIES = 240 * SCALE  # of each kind of means in each case
CASES = [(k, place) for k in (1, 4, 11) for place in ("true", "low", "high")] + [(6, "edge")]
CASES = CASES if SCALE > 1 else CASES[1:]  # the first takes as long as all others
FIRST = (2, 7)  # the arms of the first block,
HISTORIES = 2 * SCALE  # and how often they are drawn: all others as often after each of them
APART = 1  # boundaries between one that is put together with others and the next
AIMS = (0.0, 1.0)  # of the tracks, in standard deviations of how many arms the last block takes
KINDS = ("least favourable", "between grid points", "just too far apart", "anywhere")


@pytest.fixture(autouse=True)
def one_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of delta for one stage, so that it fails as often as it may; two blocks, fitted fast."""
    monkeypatch.setattr(tuning, "STAGE_AIMS", ((1.0, 1.0),))
    monkeypatch.setattr(tuning, "BLOCKS", (0.2, 0.8))
    monkeypatch.setattr(tuning, "EM_STEPS", 10)
    monkeypatch.setattr(tuning, "BANDWIDTHS", (0.8, 0.2))
    monkeypatch.setattr(tuning, "TRACKS", tuple((aim, 1 / len(AIMS)) for aim in AIMS))
    monkeypatch.setattr(stage_module, "blocks", lambda *_: 1 - np.isin(np.arange(ARMS), FIRST))


def declared(k: int, place: str, rng: np.random.Generator) -> PlanStage:
    """A stage whose pilot saw other means than there are."""
    seen = {"true": 0.5, "low": 0.3, "high": 0.7, "edge": 0.06}[place]
    pulls = np.full(ARMS, 8)
    successes = rng.binomial(pulls, np.clip(seen + np.linspace(0.3, -0.3, ARMS), 0.01, 0.99))
    belief = Belief(pulls, successes.astype(np.float64), k, seen)
    stakes = predict_cost(belief, EPSILON * k, DELTA).stakes
    return PlanLook(belief, stakes, DELTA).stage(0)


class Attack:
    """A stage, three of its boundaries, and what arms are charged after every first block."""

    def __init__(self, stage: PlanStage, j: int) -> None:
        self.stage = stage
        values = stage.boundaries.values[[j - APART, j, j + APART]]
        self.stakes = [Stakes(float(each), stage.strength, stage.reach) for each in values]
        self.plan_of = {arm: plan for plan in stage.plans for arm in plan.policy.group.arms}
        self.known: dict[tuple[int, ...], list[list[tuple[ArmBlock, list[FloatArray]]]]] = {}

    def stopped_arms(self, ended: IntArray) -> list[list[tuple[ArmBlock, list[FloatArray]]]]:
        """On every track every part, with its charges at every boundary; arms ended like this."""
        key = tuple(ended[list(FIRST)].tolist())
        if key not in self.known:
            states = [self.plan_of[arm].states for arm in range(ARMS)]
            pulls = np.array([each.pulls[s] for each, s in zip(states, ended, strict=True)])
            successes = np.array([each.successes[s] for each, s in zip(states, ended, strict=True)])
            declared = self.stage.plans, self.stage.belief
            found = stopped_arms(*declared, pulls.astype(np.int64), successes.astype(np.int64))
            tracks = [[(part, self.charges(part)) for part in each.parts] for each in found]
            assert len(tracks) == len(AIMS)
            self.known[key] = tracks
        return self.known[key]

    def charges(self, part: ArmBlock) -> list[FloatArray]:
        of = part.plan.charges
        return [
            of(self.leads(part, each), each, 1e-3, part._likely(each.boundary))
            for each in self.stakes
        ]

    def leads(self, part: ArmBlock, stakes: Stakes) -> FloatArray:
        return stakes.capped(part.places - stakes.boundary)

    def worst(self) -> FloatArray:
        """The mean of every arm at which its moment at the middle boundary is largest: (arms,)."""
        means = np.linspace(0.001, 0.999, 999)
        worst = np.zeros(ARMS)
        likeliest = np.array([self.plan_of[arm].likely.argmax() for arm in range(ARMS)])
        for part, charges in self.stopped_arms(likeliest)[0]:
            law = np.exp(part.plan.states.log_probability(means))
            lost = self.stakes[1].losses(means, self.leads(part, self.stakes[1]))
            moments = np.einsum("ms,ms->m", law, np.exp(self.stage.strength * (lost - charges[1])))
            worst[part.arms] = means[np.argmax(moments)]
        return worst

    def excess(self, means: FloatArray, tries: IntArray, cheaper: float = 1.0) -> FloatArray:
        """What can be lost less the bound, in units of 1 / strength, of every try: (tries,)."""
        lost = {}
        found = np.zeros((tries.shape[1], len(AIMS), len(self.stakes)))
        for number, ended in enumerate(tries.T):
            for t, at, (part, charges) in self.parts(ended):
                for j, stakes in enumerate(self.stakes):
                    key = (*ended[list(FIRST)].tolist(), t, at, j)
                    if key not in lost:
                        of_states = stakes.losses(means[part.arms], self.leads(part, stakes))
                        lost[key] = stakes.strength * (of_states - cheaper * charges[j])
                    each = np.arange(part.arms.size), ended[part.arms]
                    found[number, t, j] += lost[key][each].sum()
        weight = np.log(DELTA / found[0].size)
        result: FloatArray = logsumexp(found + weight, axis=(1, 2))  # Lemma 4
        return result

    def parts(
        self, ended: IntArray
    ) -> Iterator[tuple[int, int, tuple[ArmBlock, list[FloatArray]]]]:
        """Track, number, and every part of it with its charges."""
        for t, track in enumerate(self.stopped_arms(ended)):
            yield from ((t, at, each) for at, each in enumerate(track))


def hurtful(kind: str, k: int, worst: FloatArray, b: float, rng: np.random.Generator) -> FloatArray:
    """Means of all arms; `worst` has the least favourable ones, which come on a grid."""
    if kind == "least favourable":
        return worst
    if kind == "between grid points":
        return np.clip(worst + rng.uniform(-0.0005, 0.0005, ARMS), 0.0, 1.0)
    if kind == "just too far apart":
        side = np.where(np.arange(ARMS) < k, 1, -1)
        far = 1.05 * EPSILON * k / min(k, ARMS - k) / 2
        return np.asarray(rng.permutation(np.clip(b + far * side, 0.0, 1.0)), dtype=np.float64)
    return np.asarray(rng.uniform(0, 1, ARMS), dtype=np.float64)


def stopped(plan: Plan, mean: float, rng: np.random.Generator) -> IntArray:
    """Number of the state in which the arm stops: (tries,)."""
    inner = np.clip(np.array([mean]), 1e-12, 1 - 1e-12)
    cumulated = np.cumsum(np.exp(plan.states.log_probability(inner))[0])
    assert abs(cumulated[-1] - 1) < 1e-6
    drawn = np.searchsorted(cumulated, rng.random(TRIES) * cumulated[-1])
    ended: IntArray = np.minimum(drawn, cumulated.size - 1)
    return ended


def tried(attack: Attack, kind: str, k: int) -> tuple[FloatArray, IntArray]:
    """Means that hurt, and where arms of these means stopped: (arms, tries)."""
    rng = np.random.default_rng([k, KINDS.index(kind)])
    means = hurtful(kind, k, attack.worst(), attack.stakes[1].boundary, rng)
    tries = np.stack([stopped(attack.plan_of[arm], means[arm], rng) for arm in range(ARMS)])
    first = list(FIRST)
    tries[first] = np.repeat(tries[first, :HISTORIES], TRIES // HISTORIES, axis=1)
    return means, tries


@pytest.mark.rates
@pytest.mark.parametrize(("k", "place"), CASES)
def test_no_attack_makes_plans_fail_more_often_than_delta(k: int, place: str) -> None:
    stage = declared(k, place, np.random.default_rng([k, len(place)]))
    middle = stage.boundaries.values.size // 2
    for number, kind in enumerate(KINDS):
        attack = Attack(stage, middle + (-3, 0, 3, 2)[number])
        failed = (attack.excess(*tried(attack, kind, k)) >= 0).sum()

        assert failed <= binom.ppf(1 - 1e-6, TRIES, DELTA)


@pytest.mark.rates
def test_the_attack_detects_charges_that_are_too_small() -> None:
    stage = declared(11, "true", np.random.default_rng(1))
    middle = stage.boundaries.values.size // 2
    seen, cheap = [], []
    for kind in KINDS:
        attack = Attack(stage, middle)
        means, tries = tried(attack, kind, 11)
        seen.append((attack.excess(means, tries) >= 0).mean())
        cheap.append((attack.excess(means, tries, 1e-9) >= 0).mean())

    assert max(seen) > 0
    assert max(cheap) > DELTA
