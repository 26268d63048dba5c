"""Known features of the arms: a number per arm and feature, and what is declared about them.

Features alone guide a search. Where means are declared linear in them, a bound may rest on that
(docs/linear.md)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.validation import LARGEST, number, shown, table

# a row per arm and a column per feature; or names of columns of a data frame of arms
FeaturesGiven = npt.ArrayLike | Sequence[str]
RULE = "a row of numbers per arm, with a column per feature"
MOST_FEATURES = 200  # a look costs their square per arm
EXACT = 1e-10  # singular values below this share of the largest are 0: columns are collinear
CLEAR = 1e-6  # and from this share on they are not: between the two, digits decide
UNIT_ROUNDOFF = 2.0**-53
FLAT = 1e-9  # the least spread of a column, as a share of its largest number


@dataclass(frozen=True, eq=False, slots=True)
class Features:
    """Features of every arm, and how far means may be from a linear function of them.

    Args:
        values: A row per arm and a column per feature.
        misfit: Largest distance of a mean from a linear function of the features, in the unit of
            the rewards; 0 if means are linear. Default None: nothing is declared.

    Raises:
        InvalidInput: If a value breaks its rule, or columns are nearly collinear.

    Example:
        >>> from shortlist.features import Features
        >>> Features([[1.0, 0.0], [2.0, 0.0], [4.0, 0.0]]).basis.shape  # a constant adds nothing
        (3, 1)
    """

    values: FloatArray
    misfit: float | None = None
    # (arms, rank): orthonormal columns times the root of the number of arms, each with mean 0
    basis: FloatArray = field(init=False)
    condition: float = field(init=False)  # of the standardised columns

    def __post_init__(self) -> None:
        values = _checked_values(self.values)
        object.__setattr__(self, "values", values)
        basis, condition = _basis(_standardised(values), strict=True)
        object.__setattr__(self, "basis", basis)
        object.__setattr__(self, "condition", condition)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.values)

    @property
    def rank(self) -> int:
        """Dimension of the span of all differences of two arms."""
        return int(self.basis.shape[1])

    @property
    def declared(self) -> bool:
        """Whether means are declared linear, or nearly so."""
        return self.misfit is not None

    @property
    def rounding(self) -> float:
        """Largest distance of a linear mean from the span of the basis, by rounding, where means
        have a spread of 1."""
        columns = int(self.values.shape[1])
        return 10 * UNIT_ROUNDOFF * math.sqrt(self.values.size) * columns * self.condition

    def guiding(self) -> "Features":
        """The same features without a declaration."""
        return self._with(misfit=None)

    def within(self, misfit: float) -> "Features":
        """The same features, with means declared at most this far from linear ones."""
        return self._with(misfit=misfit)

    def unit(self, scale: float) -> "Features":
        """The same on the unit scale of rewards."""
        return self if self.misfit is None else self._with(misfit=self.misfit / scale)

    def among(self, arms: IntArray) -> "Features":
        """The features of these arms only, in this order."""
        basis, condition = self.basis[arms], self.condition
        if arms.size < self.n_arms:
            basis, worse = _basis(basis - basis.mean(0), strict=False, usual=1.0)
            condition *= worse
        return self._with(values=self.values[arms], basis=basis, condition=condition)

    def check(self, n_arms: int) -> None:
        """Refuse features that are not of this many arms."""
        if self.n_arms != n_arms:
            raise InvalidInput(
                f"`features` has {self.n_arms} rows, but must have one for each of the {n_arms}"
                " arms"
            )

    def _with(self, **changes: Any) -> "Features":
        """The same object with changed fields, without checking it again."""
        other = object.__new__(Features)
        for name in ("values", "misfit", "basis", "condition"):
            object.__setattr__(other, name, changes.get(name, getattr(self, name)))
        return other


def _checked_values(given: npt.ArrayLike) -> FloatArray:
    values = table("features", given, RULE)
    if values.ndim != 2 or values.shape[1] == 0:
        raise InvalidInput(f"`features` has shape {values.shape}, but must be {RULE}")
    if values.shape[1] > MOST_FEATURES:
        raise InvalidInput(
            f"`features` has {values.shape[1]} columns, but must have at most {MOST_FEATURES}"
        )
    usable = np.isfinite(values) & (np.abs(values) <= LARGEST)
    if not usable.all():
        arm, column = np.argwhere(~usable)[0].tolist()
        value = values[arm, column]
        found = "missing" if np.isnan(value) else str(value)
        raise InvalidInput(
            f"feature {column} of arm {arm} is {found}, but every arm needs a number there, at most"
            f" {LARGEST:g} from 0"
        )
    return values


def _standardised(values: FloatArray) -> FloatArray:
    """Columns with mean 0 and standard deviation 1; constant ones are left out."""
    spread = np.ptp(values, axis=0)
    largest = np.abs(values).max(0)
    for column in np.flatnonzero((spread > 0) & (spread < FLAT * largest)):
        raise InvalidInput(
            f"feature {column} only varies by {spread[column]:.2g} around {largest[column]:.2g},"
            " but such small differences are lost in rounding: subtract a constant"
        )
    varying = values[:, spread > 0]
    if varying.shape[1] == 0:
        raise InvalidInput("`features` are the same for all arms, but must differ to tell anything")
    varying = (varying - varying.mean(0)) / spread[spread > 0]
    centred: FloatArray = varying - varying.mean(0)
    scaled: FloatArray = centred / centred.std(0)
    return scaled


def _basis(centred: FloatArray, *, strict: bool, usual: float = 0.0) -> tuple[FloatArray, float]:
    """Orthonormal columns with the same span, times the root of the number of arms, and the
    condition number of the given ones.

    With `strict`, columns that are nearly collinear are refused. `usual` is the size of a column
    that is not rounding error."""
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    share = singular / max(float(singular[0]), usual * math.sqrt(len(centred)))
    unclear = share[(share > EXACT) & (share < CLEAR)]
    if strict and unclear.size:
        raise InvalidInput(
            f"columns of `features` are nearly collinear (condition number"
            f" {1 / unclear.min():.1e}), but must be collinear exactly or have a condition number"
            f" of at most {1 / CLEAR:g}: leave one of them out"
        )
    kept = share > EXACT
    basis: FloatArray = left[:, kept] * np.sqrt(len(centred))
    return basis, float(1 / share[kept].min(initial=1.0))


def checked_linear(linear: object) -> bool | float:
    """What is declared about means: True, False, or their largest distance from linear ones."""
    if isinstance(linear, bool | np.bool_):
        return bool(linear)
    try:
        return number("linear", linear, above=0)
    except InvalidInput:
        raise InvalidInput(
            f"`linear` is {shown(linear)}, but must be True, False, or the largest distance of a"
            " mean from a linear one, a number above 0"
        ) from None


def features_of(
    given: object,
    linear: bool | float,
    arms: object,
    of_arms: Sequence[Sequence[float] | None],
) -> Features | None:
    """The features that arguments name, if they name some.

    `given` is a matrix, or names of columns of the data frame `arms`; `of_arms` are those that
    arms were given with."""
    values = _values(given, arms, of_arms)
    if values is None:
        if linear is not False:
            raise InvalidInput(
                f"`linear` is {shown(linear)}, but means can only be linear in `features`,"
                " and none are given"
            )
        return None
    misfit = None if linear is False else 0.0 if linear is True else float(linear)
    return Features(values, misfit)


def _values(given: Any, arms: Any, of_arms: Sequence[Sequence[float] | None]) -> Any:
    """A matrix of features, unchecked; None if there is none."""
    listed = [each is not None for each in of_arms]
    if any(listed):
        if given is not None:
            raise InvalidInput("`features` are given, but arms have features, too")
        if not all(listed):
            raise InvalidInput(
                f"arm {listed.index(False)} has no features, but others have, and all need them"
            )
        return list(of_arms)
    if isinstance(given, str | bytes | Mapping | PathLike):
        raise InvalidInput(f"`features` is {shown(given)}, but must be {RULE}")
    if isinstance(given, list | tuple) and given and all(isinstance(each, str) for each in given):
        return _columns(given, arms)
    return given


def _columns(names: Sequence[str], arms: Any) -> Any:
    """Columns of a data frame of arms: (arms, features)."""
    known = [str(name) for name in getattr(arms, "columns", ())]
    for name in names:
        if name not in known:
            have = f"has the columns {', '.join(known)}" if known else "is no data frame"
            raise InvalidInput(f"`features` names the column {name!r}, but `arms` {have}")
    return np.column_stack([table("features", list(arms[name]), RULE) for name in names])


def shuffled(features: Features | None, order: IntArray) -> Features | None:
    """The same features with arms in this order."""
    return None if features is None else features.among(order)
