"""The result of one arm."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    LabelT = TypeVar("LabelT", default=Any)
else:  # typing knows defaults from Python 3.13 on
    from typing import TypeVar

    LabelT = TypeVar("LabelT")


@dataclass(frozen=True, slots=True)
class ArmResult(Generic[LabelT]):
    """The result of one arm; generic in the type of its label.

    With probability at least 1 - delta, the true means of all arms are between `low` and `high`."""

    label: LabelT  #: label, as it was given
    pulls: int  #: number of rewards that count: in the order of its pulls, up to the first missing
    #: mean of these rewards, on a test set the estimated mean over all items; None if unknown
    mean: float | None
    low: float  #: lower end of the confidence interval of its mean
    high: float  #: upper end of that interval
    chosen: bool  #: whether it is in `top`
    limit: int | None = None  #: maximum number of pulls; None without a limit
    cost: float = 1.0  #: declared cost of a pull
    spent: float = 0.0  #: total cost of its pulls
    retired: bool = False  #: whether it was retired before the end
    #: number of rewards that do not count, because an earlier pull of the arm is missing
    waiting: int = 0
    #: number of scores on a test set known before the first pull; the mean includes them
    known: int = 0
