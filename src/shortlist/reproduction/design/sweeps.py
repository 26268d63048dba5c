"""The sweeps for the theorems: Uniform with K = n/2, which is 1-spread, over n and over epsilon."""

from shortlist.reproduction.design.methods import METHODS
from shortlist.reproduction.design.panels import Panel

SWEPT = tuple(
    METHODS[name] for name in ("adaptive-top-k", "improved-top-k", "clucb-pac", "certified")
)
SIZES = (125, 250, 500, 1000, 2000, 4000)
EPSILONS = tuple(round(0.08 * 2 ** (-step / 2), 6) for step in range(13))  # down to 0.00125


def half_of_uniform(n: int, epsilon: float) -> Panel:
    """Uniform with K = n/2."""
    return Panel("uniform", n, n // 2, epsilon)


def sweep_over_n(every: int = 1) -> tuple[Panel, ...]:
    """From small to large, epsilon as in Section 5."""
    return tuple(half_of_uniform(n, 0.01) for n in SIZES[::every])


def sweep_over_epsilon(every: int = 1) -> tuple[Panel, ...]:
    """From coarse to fine, n as in Section 5."""
    return tuple(half_of_uniform(1000, epsilon) for epsilon in EPSILONS[::every])
