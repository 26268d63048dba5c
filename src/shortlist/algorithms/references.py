"""References: "package.module:function", imported, or refused in words."""

from importlib import import_module
from operator import attrgetter

from shortlist.errors import InvalidInput, UnknownName

FORM = "must be of the form 'package.module:function'"


def imported(reference: str) -> object:
    """What a reference names. Its module is imported as Python does it, and so runs."""
    module, _, path = reference.partition(":")
    parts = [*module.split("."), *path.split(".")]
    if not all(part.isidentifier() for part in parts):
        raise InvalidInput(f"algorithm {reference!r} cannot be imported: it {FORM}")
    if module == "__main__":
        raise InvalidInput(
            f"algorithm {reference!r} cannot be imported: it is in the script that runs, but must"
            " be in a module of its own"
        )
    home = _module(module, reference)
    try:
        return attrgetter(path)(home)
    except AttributeError as error:
        raise UnknownName(
            f"algorithm {reference!r} cannot be imported: there is no {path!r} in {module}"
        ) from error


def _module(name: str, reference: str) -> object:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        asked_for = name == missing or name.startswith(f"{missing}.")
        said = f"there is no module {missing!r}" if asked_for else f"its module says: {error}"
        raise UnknownName(f"algorithm {reference!r} cannot be imported: {said}") from error
    except Exception as error:
        raise InvalidInput(
            f"algorithm {reference!r} cannot be imported: its module fails with"
            f" {type(error).__name__}: {error}"
        ) from error
