"""Checks of user input: every message names the value, then the rule."""

import math
import pickle
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence, Sized
from functools import wraps
from inspect import iscoroutinefunction
from itertools import islice
from numbers import Integral, Real
from threading import TIMEOUT_MAX
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from shortlist.errors import InvalidInput, UnknownName
from shortlist.formatting import given_text

# of values with a unit: the square of a ratio of two of them must not overflow
LARGEST, SMALLEST = 1e60, 1e-60
COUNTABLE = 2**62  # the largest count: sums of a few of them still are 64-bit numbers
MOST_ARMS = 10**6  # docs/errors.md says how much memory they take
MOST_RUNS = 10**6  # their outcomes are held together
MOST_WORKERS = 10**4  # processes or threads
MOST_RETRIES = 10**3  # of a call that fails: more would be as good as for ever
SEEDS = 2**128  # as many as a generator has states to begin in
DRAWN_SEEDS = 2**53  # seeds drawn from an `rng`: every program that reads JSON has them exactly
MOST_TOLD = 10**6  # rewards at once
MOST_CELLS = 10**7  # of arms and items: a search holds a few arrays of them
LONGEST_WAIT = TIMEOUT_MAX  # seconds, of what Python can wait for
LEGIBLE = 1000  # characters of a value in a message

Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])
# as SPEC 7 of Scientific Python has it: what `numpy.random.default_rng` takes
RngGiven = (
    int | Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator
)


def whole(name: str, value: object, *, at_least: int, at_most: float = COUNTABLE) -> int:
    """Return `value` as an int if it is a whole number between these two."""
    result = at_least - 1
    if isinstance(value, Integral) and not isinstance(value, bool):
        result = int(value)
    if result < at_least:
        raise InvalidInput(
            f"`{name}` is {shown(value)}, but must be a whole number of at least {at_least}"
        )
    if result > at_most:
        raise InvalidInput(f"`{name}` is {shown(value)}, but must be at most {at_most:,}")
    return result


def seeded(seed: object) -> int:
    """Return a seed as an int."""
    return whole("seed", seed, at_least=0, at_most=SEEDS - 1)


def takes_rng(function: Function) -> Function:
    """Let a keyword argument `rng` stand for `seed`: the function gets the seed that it makes."""

    @wraps(function)
    def door(*args: Any, **given: Any) -> Any:
        return function(*args, **_with_seed(given))

    @wraps(function)
    async def async_door(*args: Any, **given: Any) -> Any:
        return await cast(Awaitable[Any], door(*args, **given))

    return cast(Function, async_door if iscoroutinefunction(function) else door)


def _with_seed(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with a seed in place of an `rng`."""
    rng = given.get("rng")
    if rng is None:
        return given
    if "seed" in given:
        raise InvalidInput(f"`rng` and `seed` ({shown(given['seed'])}) are given: give one of them")
    if given.get("store") is not None:
        raise InvalidInput(
            f"`rng` is {shown(rng)}, but with a `store` it must be `seed`: the call that continues"
            " needs the same one"
        )
    return given | {"rng": None, "seed": seed_from(rng)}


MOST_SEEDS = 1000  # in a sequence of them


def seed_from(rng: object) -> int:
    """A seed: `rng` itself if it is a whole number, else drawn from the generator that it makes."""
    if isinstance(rng, Integral) and not isinstance(rng, bool):
        return whole("rng", rng, at_least=0, at_most=SEEDS - 1)
    kinds = np.random.Generator | np.random.BitGenerator | np.random.SeedSequence
    if not isinstance(rng, kinds | Sequence | np.ndarray) or isinstance(rng, str | bytes):
        raise InvalidInput(_no_rng(rng))
    entries = rng.size if isinstance(rng, np.ndarray) else 0
    if isinstance(rng, Sequence):
        entries = len(rng)
    if entries > MOST_SEEDS:
        raise InvalidInput(f"`rng` has {entries:,} entries, but may have at most {MOST_SEEDS:,}")
    try:
        generator = np.random.default_rng(cast(Any, rng))
    except (TypeError, ValueError):
        raise InvalidInput(_no_rng(rng)) from None
    return int(generator.integers(DRAWN_SEEDS))


def _no_rng(rng: object) -> str:
    return (
        f"`rng` is {shown(rng)}, but must be a whole number of at least 0, a sequence of them, or a"
        " Generator, BitGenerator or SeedSequence of numpy"
    )


def manners(runs: object, workers: object, seed: object) -> tuple[int, int, int]:
    """Return the number of runs, of processes and the seed, if they are valid."""
    return (
        whole("runs", runs, at_least=1, at_most=MOST_RUNS),
        whole("workers", workers, at_least=1, at_most=MOST_WORKERS),
        seeded(seed),
    )


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
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except Exception:  # too many digits inside of it, or an object that cannot be shown
        return f"a {type(value).__name__}"
    return text if len(text) <= LEGIBLE else f"{text[:LEGIBLE]}..."


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
        limits = [f"greater than {given_text(above)}"] * math.isfinite(above) + [
            f"less than {given_text(below)}"
        ] * math.isfinite(below)
        rule = " ".join(
            ["a number" if len(limits) == 2 else "a finite number", " and ".join(limits)]
        ).strip()
        if isinstance(value, str) and value.strip().endswith("%"):
            percent = "; only `epsilon` and `guardrails` can be given in percent"
            rule += percent if name != "epsilon" else ""
        raise InvalidInput(f"`{name}` is {shown(value)}, but must be {rule}")
    return result


def listed(name: str, values: object, rule: str = "a list of numbers") -> npt.NDArray[Any]:
    """Return `values` as an array with an entry per arm, if it is one, whatever is in it.

    Its length is checked first: a list-like object may be longer than memory."""
    size = values.size if isinstance(values, np.ndarray) else _length(values)
    if size > MOST_ARMS:
        raise InvalidInput(f"`{name}` has {size:,} entries, but must have at most {MOST_ARMS:,}")
    try:
        array = np.asarray(values)
    except Exception as error:  # lists of different lengths, or an object of the user's
        raise InvalidInput(f"`{name}` is {shown(values)}, but must be {rule}") from error
    if array.ndim == 0:
        raise InvalidInput(f"`{name}` is {shown(values)}, but must be {rule}")
    if array.ndim != 1:
        raise InvalidInput(f"`{name}` has shape {array.shape}, but must be {rule}")
    return array


def _length(values: object) -> int:
    try:
        return len(values) if isinstance(values, Sized) else 0
    except OverflowError:  # more than any memory could hold
        return COUNTABLE


def reals(name: str, values: object) -> npt.NDArray[np.float64]:
    """Return `values` as an array of floats, if it is a list of numbers; they may be infinite."""
    array = listed(name, values)
    if array.dtype.kind == "O" and all(isinstance(each, Real) for each in array):
        return np.array([real(each) for each in array])
    if array.dtype.kind not in "buif":  # None and "1" must not pass for numbers
        raise InvalidInput(f"`{name}` is {shown(values)}, but must be a list of numbers")
    return array.astype(np.float64)


def table(name: str, values: object, rule: str) -> npt.NDArray[np.float64]:
    """Return a row of numbers per arm as an array, NaN where there is None.

    As for a list, its size is checked before it is copied."""
    size = values.size if isinstance(values, np.ndarray) else _cells(values)
    if size > MOST_CELLS:
        raise InvalidInput(f"`{name}` has {size:,} cells, but must have at most {MOST_CELLS:,}")
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "buifO":
            raise TypeError(f"{array.dtype} is no number")
        return np.array(array, dtype=np.float64)
    except Exception as error:  # lists of different lengths, or an object of the user's
        raise InvalidInput(f"`{name}` cannot be read ({error}), but must be {rule}") from error


def _cells(values: object) -> int:
    rows = _length(values)
    if rows > MOST_CELLS or not isinstance(values, Sequence):
        return rows
    return sum(max(1, _length(row)) for row in values)


def seconds(name: str, value: object) -> float:
    """Return a number of seconds above 0, cut to the longest wait that Python allows."""
    return min(number(name, value, above=0), LONGEST_WAIT)


def whole_numbers(name: str, values: object, *, at_least: int) -> npt.NDArray[np.int64]:
    """Return `values` as an array of whole numbers, if it is a list of them."""
    array = listed(name, values, rule := "a list of whole numbers")
    if array.size and array.dtype.kind not in "iu":
        raise InvalidInput(f"`{name}` is {shown(values)}, but must be {rule}")
    wrong = array[(array < at_least) | (array > COUNTABLE)]
    if wrong.size:
        least, most = f"at least {at_least}", f"at most {COUNTABLE:,}"
        rule = f"must be {least if wrong[0] < at_least else most}"
        raise InvalidInput(f"`{name}` holds {shown(wrong[0])}, but each {rule}")
    return array.astype(np.int64)


def named(name: str, values: object) -> dict[str, Any]:
    """Return `values` as a dict, if it is a mapping of names; None is an empty one."""
    if values is None:
        return {}
    if not (isinstance(values, Mapping) and all(isinstance(each, str) for each in values)):
        raise InvalidInput(f"`{name}` is {shown(values)}, but must be a mapping of names to values")
    return dict(values)


def text(name: str, value: object) -> str:
    """Return `value` as a plain text, if it is one that can be written."""
    if not (isinstance(value, str) and encodable(value)):
        raise InvalidInput(f"`{name}` is {shown(value)}, but must be a text in UTF-8")
    return str(value)


def word(name: str, value: object, known: Collection[str]) -> str:
    """Return `value` if it is one of these words."""
    if not (isinstance(value, str) and value in known):
        raise UnknownName(f"`{name}` is {shown(value)}, but must be one of {', '.join(known)}")
    return str(value)


def words(value: object) -> str:
    """Any value as a text that every store can hold."""
    text = value if isinstance(value, str) else shown(value)
    return text.encode(errors="backslashreplace").decode()


def flag(name: str, value: object) -> bool:
    """Return `value` as a bool, if it is one."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"`{name}` is {shown(value)}, but must be True or False")
    return bool(value)


def function_or_none(name: str, value: object) -> None:
    """Refuse a value that is neither None nor callable."""
    if value is not None and not callable(value):
        raise InvalidInput(f"`{name}` is {shown(value)}, but must be a function")


def collected(
    name: str, values: Iterable[Item], *, at_most: int, rule: str = "a list"
) -> list[Item]:
    """Return `values` as a list, if they are not too many, or never end."""
    try:
        items = list(islice(values, at_most + 1))
    except TypeError as error:
        raise InvalidInput(f"`{name}` is {shown(values)}, but must be {rule}") from error
    if len(items) > at_most:
        raise InvalidInput(f"`{name}` has more entries than {at_most:,}, but that is the limit")
    return items


def arm_means(
    means: npt.ArrayLike, low: float = -math.inf, high: float = math.inf
) -> npt.NDArray[np.float64]:
    """Return `means` as an array, if each is a finite number between `low` and `high`."""
    theta = reals("means", means)
    wrong = np.flatnonzero(~(np.isfinite(theta) & (theta >= low) & (theta <= high)))
    if wrong.size:
        between = f"a number between {given_text(low)} and {given_text(high)}"
        rule = "a finite number" if math.isinf(high) else between
        hint = "; 2.4 percent are 0.024" if (low, high) == (0, 1) else ""
        raise InvalidInput(
            f"the mean of arm {wrong[0]} is {theta[wrong[0]]}, but must be {rule}{hint}"
        )
    return theta


def check_choice(n_arms: object, k: object) -> None:
    """Refuse to choose `k` of `n_arms` arms unless something is left to choose: 1 <= k < n_arms."""
    n = whole("n_arms", n_arms, at_least=2, at_most=MOST_ARMS)
    if whole("k", k, at_least=1) >= n:
        raise InvalidInput(f"`k` is {shown(k)}, but must be between 1 and n_arms - 1 = {n - 1}")


def check_sendable(what: str, function: object) -> None:
    """Refuse a function that cannot be sent to another process: pickle sends its name only."""
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidInput(
            f"{what} cannot be sent to another process ({error}), but must be defined at the top of"
            " a module"
        ) from error


LIBRARIES = ("pandas", "polars")  # of data frames


def library_of(*values: object) -> str | None:
    """The library of the first data frame, or column of one, among these values."""
    names = (type(value).__module__.partition(".")[0] for value in values)
    return next((name for name in names if name in LIBRARIES), None)
