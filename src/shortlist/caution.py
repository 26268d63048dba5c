"""Warnings, each once: of what is allowed, but can hardly be meant."""

import sys
import warnings
from types import FrameType

from shortlist.errors import Doubtful


def caution(message: str) -> None:
    """Warn whoever called the package, at the line that did."""
    warnings.warn(Doubtful(message), stacklevel=_callers())


def _callers() -> int:
    """How many calls above `caution` the first one outside of the package is, plus 1."""
    frame: FrameType | None = sys._getframe(1)
    level = 0
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("shortlist"):
        frame = frame.f_back
        level += 1
    return level + 1
