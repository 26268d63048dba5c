"""A block in which errors of a database become errors of this package."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from shortlist.errors import InvalidInput, ShortlistError


class InWords(ABC):
    """What every database shares; a class and not a generator, since every tell goes through it."""

    quotable = True  # whether what the database says may be shown as it is

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # half of a character, as in names of files that are not UTF-8
        if isinstance(error, UnicodeEncodeError):
            raise InvalidInput(f"{error.object!r} is to be stored, but is no valid text") from error
        told = None if error is None else self.told(error)
        if told is not None:
            raise told from error if self.quotable else None

    @abstractmethod
    def told(self, error: BaseException) -> ShortlistError | None:
        """The error of this package that says the same; None if the database did not raise it."""
