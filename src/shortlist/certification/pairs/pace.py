"""How the pulls of a race are cut into requests. Nothing here bears on the guarantee."""

from dataclasses import dataclass

ENOUGH = 4.0  # times what proves a tie: races whose samples are larger are over before the net
MOSTLY = 1.5  # times what proves a tie: by then most of those races are
LEAST_GROWTH = 1.5  # of all pulls in a request of those


@dataclass(frozen=True, slots=True)
class Pace:
    """How the pulls are cut into requests."""

    batch: int = 4  # pulls in the first requests
    growth: float = 0.02  # of later ones, as a share of what was spent
    rounds: int | None = None  # requests at most; overrides the other two
    least: int = 0  # pulls in every request; 0 if that is not asked for

    @property
    def together(self) -> bool:
        """Whether requests are few and large: each takes all arms in doubt equally far."""
        return self.rounds is not None or self.least > 0


def planned_end(rounds: int, request: int, before: float, sample: int, tie: float) -> float:
    """Pulls of an arm after request number `request` of at most `rounds`, of which it has `before`.

    They grow with the square of the rounds up to the net's sample. If variances turn out to be so
    small that the net is far beyond what proves a `tie`, they grow geometrically instead, up to
    what is mostly enough: the last request is the net's, and too dear."""
    if before == 0 or ENOUGH * tie >= sample:
        return float((request / rounds) ** 2 * min(sample, ENOUGH * tie))
    enough = max(MOSTLY * tie, LEAST_GROWTH * before)
    left = max(1, rounds - request)  # requests before the net's, this one included
    return float(before * (enough / before) ** (1 / left))
