"""An error that ends a selection carries what was found by then: nothing paid is lost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from shortlist.display import plural
from shortlist.errors import ShortlistError
from shortlist.result.result import Result


@contextmanager
def carrying(partial: Callable[[], Result]) -> Iterator[None]:
    """Give every error, an interrupt too, an attribute `partial`, if anything was pulled."""
    try:
        yield
    except BaseException as error:
        with suppress(ShortlistError):  # a store that cannot be read has nothing to add
            _carry(error, partial())
        raise


def _carry(error: BaseException, result: Result) -> None:
    if result.pulls:
        vars(error)["partial"] = result  # some errors refuse to have an attribute set
        error.add_note(
            f"`partial` of this error is the result after {plural(result.pulls, 'pull')}"
        )
