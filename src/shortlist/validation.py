"""Checks of what users give: every message names the value, then the rule."""

import math
import pickle
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt

from shortlist.errors import InvalidInput

# of what has a unit: the square of a ratio of two of them must not overflow
LARGEST, SMALLEST = 1e60, 1e-60


def whole(name: str, value: object, *, at_least: int) -> int:
    """Return `value` as an int if it is a whole number of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise InvalidInput(
            f"`{name}` is {shown(value)}, but must be a whole number of at least {at_least}"
        )
    return int(value)


def real(value: object) -> float:
    """A number as a float: NaN if it is none, infinite if it is too large for a float."""
    if not isinstance(value, Real | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def shown(value: object) -> str:
    """A value for a message, however long it is; 1.5 reads better than np.float64(1.5)."""
    if math.isinf(real(value)):  # a whole number may have too many digits to be shown
        return str(real(value))
    return repr(value.item() if isinstance(value, np.generic) else value)


def encodable(text: str) -> bool:
    """Whether a text can be written: a lone surrogate is no character of any encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain(record: object, **values: object) -> None:
    """Put plain Python numbers into a frozen record, whatever kinds of numbers it was given."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def number(name: str, value: object, *, above: float = -math.inf, below: float = math.inf) -> float:
    """Return `value` as a float if it lies strictly between `above` and `below`."""
    result = math.nan if isinstance(value, bool) else real(value)
    if not above < result < below:
        limits = [f"greater than {above:g}"] * math.isfinite(above) + [
            f"less than {below:g}"
        ] * math.isfinite(below)
        rule = " ".join(
            ["a number" if len(limits) == 2 else "a finite number", " and ".join(limits)]
        ).strip()
        raise InvalidInput(f"`{name}` is {shown(value)}, but must be {rule}")
    return result


def arm_means(
    means: npt.ArrayLike, low: float = -math.inf, high: float = math.inf
) -> npt.NDArray[np.float64]:
    """Return `means` as an array, if each is a finite number between `low` and `high`."""
    try:
        theta = np.asarray(means, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"`means` is {means!r}, but must be a list of numbers") from error
    if theta.ndim != 1:
        raise InvalidInput(f"`means` has shape {theta.shape}, but must be a list of numbers")
    wrong = np.flatnonzero(~(np.isfinite(theta) & (theta >= low) & (theta <= high)))
    if wrong.size:
        rule = "a finite number" if math.isinf(high) else f"a number between {low:g} and {high:g}"
        raise InvalidInput(f"the mean of arm {wrong[0]} is {theta[wrong[0]]}, but must be {rule}")
    return theta


def check_choice(n_arms: object, k: object) -> None:
    """Refuse to choose `k` of `n_arms` arms unless something is left to choose: 1 <= k < n_arms."""
    n = whole("n_arms", n_arms, at_least=2)
    if whole("k", k, at_least=1) >= n:
        raise InvalidInput(f"`k` is {shown(k)}, but must be between 1 and n_arms - 1 = {n - 1}")


def check_sendable(what: str, function: object) -> None:
    """Refuse what no other process could take: pickle sends a function as the name of its place."""
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidInput(
            f"{what} cannot be sent to another process ({error}), but must be defined at the top of"
            " a module"
        ) from error
