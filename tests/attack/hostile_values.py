"""Values that nobody means to give, and the bounds within which a call with them must end."""

import itertools
import math
import random
import resource
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np

SECONDS = 5  # of CPU time that a call may take
WAITING = 60  # seconds that it may take altogether, on a machine that is busy with other work
BYTES = 500 * 2**20  # that it may allocate


class TooLong(BaseException):
    """A call did not end in time."""


class Shade(Enum):
    LIGHT = 1
    DARK = "dark"


class Awkward:
    """Answers every question about itself with nonsense."""

    def __len__(self) -> int:
        return 10**9

    def __index__(self) -> int:
        return -5

    def __float__(self) -> float:
        return math.nan

    def __iter__(self) -> Iterator[int]:
        return iter([1, 2])


class Unhashable(str):
    __hash__ = None  # type: ignore[assignment]


NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 30, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**14, 10**20),
    *(10**400, -(10**400), 10**5000, -(2**63), -(2**63) - 1),
    *(0.0, -0.0, 0.5, 1.0, 1.5, -1.0, 1e14, 1e20, 1e-20, 1e59, 1e-59, 1e60, 1e300, 1e308, 5e-324),
    *(math.nan, math.inf, -math.inf, True, False),
    *(Fraction(1, 3), Fraction(10**400, 3), Decimal("0.1"), Decimal("NaN"), 1j, complex("nan")),
    *(np.float64(0.5), np.float64("nan"), np.float32("inf"), np.float16(2), np.longdouble(1e300)),
    *(np.int64(3), np.int8(-1), np.uint64(2**64 - 1), np.bool_(True), np.datetime64("2026-01-01")),
)
TEXTS: tuple[Any, ...] = (
    *("", " ", "a", "0", "1", "nan", "0.5", "auto", "binary", "certified", "uniform", "lucb"),
    *("\0", "a\0b", "\ud800", "\udcff", "\x1b[31m", "\u202e", "\x9b", "é", "\U0001f600", "a\nb"),
    *("x" * 10_000, "{arm}", "{", "a:b", ":", "..:x", "no.module:f", "1e400", "-", "--", "%s"),
    *(b"", b"a", b"\xff", bytearray(b"x"), Path("nowhere"), np.str_("a"), Unhashable("u")),
)
LISTS: tuple[Any, ...] = (
    *([], [[]], [0, 1], [0.0, 1.0], [1, 0], [0.1, 0.2, 0.9], [None], [math.nan, 1], ["a", "b"]),
    *(
        [[1], [1, 2]],
        [[0, 1], [1, 0]],
        [1, "a"],
        [2**63, 1],
        [10**400, 1],
        [10**5000, 1],
        ["\ud800"],
    ),
    *((), (0, 1), (1, 0), (0, 1, 2), (0, "a"), ((0, 1), (0, 1)), ("a", ("b",)), (math.nan, 1)),
    *({}, {"a": 1}, {1: 2}, {"growth": 1e20}, {"\ud800": 1}, {None: None}, {"seed": 1, "batch": 2}),
    *(set(), {1, 2}, frozenset("ab"), deque([1, 2]), range(3), range(10**9), range(10**18)),
    *(np.array([0, 1]), np.array([0.0, 1.0]), np.array([]), np.array(0.5), np.zeros((2, 2))),
    *(
        np.array(["a", "b"]),
        np.array([None, 1], dtype=object),
        np.array([1 + 1j]),
        np.zeros((3, 0)),
    ),
    *(np.array([2**63], dtype=np.uint64), np.array([True, False]), np.array([math.nan, math.inf])),
    *(
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        np.ma.array([1, 2], mask=[False, True]),
    ),
    *(np.broadcast_to(np.float64(0.5), 10**12), np.broadcast_to(np.int64(1), 10**12)),
)
OBJECTS: tuple[Any, ...] = (
    *(None, ..., NotImplemented, object(), object, Shade.DARK),
    *(
        Awkward(),
        lambda: None,
        lambda *_: 0.5,
        lambda arm: math.nan,
        SimpleNamespace(id=0),
    ),
    *(
        memoryview(b"ab"),
        slice(3),
        ValueError("mine"),
        np,
        random.Random(0),
        np.random.default_rng(0),
    ),
)
MAKERS: tuple[Callable[[], Any], ...] = (  # of what can be used only once
    lambda: iter([0, 1]),
    lambda: (label for label in "abc"),
    itertools.count,
    lambda: itertools.repeat("a"),
)
POOLS: Sequence[tuple[Any, ...]] = (NUMBERS, NUMBERS, TEXTS, LISTS, LISTS, OBJECTS)


def hostile(rng: random.Random) -> Any:
    """One of them."""
    if rng.random() < 0.03:
        return rng.choice(MAKERS)()
    return rng.choice(rng.choice(POOLS))


@contextmanager
def bounded() -> Iterator[None]:
    """No call in here may take more than `SECONDS`, nor allocate more than `BYTES`."""

    def too_long(number: int, frame: FrameType | None) -> None:
        raise TooLong

    limits = resource.getrlimit(resource.RLIMIT_AS)
    handlers = {each: signal.signal(each, too_long) for each in (signal.SIGPROF, signal.SIGALRM)}
    resource.setrlimit(resource.RLIMIT_AS, (_in_use() + BYTES, limits[1]))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        for each, handler in handlers.items():
            signal.signal(each, handler)


def _in_use() -> int:
    """Address space of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
