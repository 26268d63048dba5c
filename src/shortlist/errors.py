"""Every error this package raises on purpose.

ShortlistError
├── InvalidInput (ValueError)         a value breaks a rule; the message names both
│   ├── UnknownName (LookupError)     no algorithm or instance of that name
│   ├── UnsupportedGoal               the algorithm does not serve this goal
│   ├── InvalidReward                 no number, outside its declared range, or one too many
│   ├── UnknownTicket (LookupError)   no ticket of that number was ever handed out
│   └── ConflictingReward             a ticket has another reward already, which stays
├── EvaluationFailed (RuntimeError)   a pull gave no reward, for the reason in the message
├── Unfinished (RuntimeError)         an answer is requested before there is one
├── CannotReplay (RuntimeError)       a stored experiment would continue differently
├── NotAllowed (PermissionError)      missing or invalid token, or one without this right
├── LimitExceeded (RuntimeError)      more at once, or more often, than a service takes
├── Doubtful (UserWarning)            only a warning: a value is allowed, but hardly intended
└── StoreError (OSError)              a store cannot be read or written
    ├── StoreMissing (FileNotFoundError)   no file there, or no experiment of that name in it
    ├── StoreExists (FileExistsError)      an experiment of that name exists already
    ├── StoreLocked (TimeoutError)         another program kept it locked for too long
    ├── StoreReadOnly (PermissionError)    it may be read, but not written
    ├── StoreFull                          the disk is full; nothing of the last step was written
    ├── StoreReplaced                      deleted or replaced while it was open
    ├── StoreInterrupted (ConnectionError)  the connection broke; nothing of a step was written
    ├── StoreDamaged                       not a store, or one that is damaged
    └── Unreachable (ConnectionError)      no service or database answers there"""

import sys
import warnings
from types import FrameType

from shortlist.formatting import printable


class ShortlistError(Exception):
    """Root of all errors of this package; a message may quote what others wrote."""

    def __str__(self) -> str:
        return printable(super().__str__(), keep="\n")


class InvalidInput(ShortlistError, ValueError):
    """A value breaks a rule; the message names the value, then the rule."""


class UnknownName(InvalidInput, LookupError):
    """A name is not in the list it was looked up in."""


class UnsupportedGoal(InvalidInput):
    """The algorithm does not serve the goal it was given."""


class InvalidReward(InvalidInput):
    """A reward is no finite number, outside its declared range, or one too many or too few."""


class UnknownTicket(InvalidInput, LookupError):
    """No ticket of that number was ever handed out."""


class ConflictingReward(InvalidInput):
    """A ticket has another reward already, which stays."""


class Doubtful(ShortlistError, UserWarning):
    """A warning: a value is allowed, but hardly intended."""


class EvaluationFailed(ShortlistError, RuntimeError):
    """A pull gave no reward, for the reason in the message."""


class Unfinished(ShortlistError, RuntimeError):
    """An answer is requested before there is one."""


class CannotReplay(ShortlistError, RuntimeError):
    """A stored experiment would continue differently than it began, so it does not continue."""


class NotAllowed(ShortlistError, PermissionError):
    """The token is missing, invalid, or does not grant this right."""


class LimitExceeded(ShortlistError, RuntimeError):
    """More is wanted at once, or more often, than a service takes."""


class StoreError(ShortlistError, OSError):
    """A store cannot be read or written."""


class StoreMissing(StoreError, FileNotFoundError):
    """There is no file, or no experiment of that name in it."""


class StoreExists(StoreError, FileExistsError):
    """An experiment of that name exists already."""


class StoreLocked(StoreError, TimeoutError):
    """Another program kept the store locked for too long."""


class StoreReadOnly(StoreError, PermissionError):
    """The store may be read, but not written."""


class StoreFull(StoreError):
    """The disk is full; nothing of the last step was written."""


class StoreReplaced(StoreError):
    """The file was deleted, moved or replaced while it was open; nothing of the last step was
    written."""


class StoreInterrupted(StoreError, ConnectionError):
    """The connection to a store broke in the middle of a step; nothing of it was written."""


class StoreDamaged(StoreError):
    """The file is not a store, or one that is damaged."""


class Unreachable(StoreError, ConnectionError):
    """No service answers at that address, or no database."""


def caution(message: str) -> None:
    """Warn the caller of the package, at the calling line.

    Args:
        message: The text."""
    warnings.warn(Doubtful(message), stacklevel=_callers())


def _callers() -> int:
    """How many calls above `caution` the first one outside of the package is, plus 1."""
    frame: FrameType | None = sys._getframe(1)
    level = 0
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("shortlist"):
        frame = frame.f_back
        level += 1
    return level + 1
