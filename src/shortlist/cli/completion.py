"""What the shell completes: the names of algorithms, and of the experiments in a store.

A completion must never fail: where nothing is known, nothing is proposed."""

import click

import shortlist
from shortlist.errors import ShortlistError


def algorithm_names(_context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Every registered name that begins so, and "auto" where that is the default."""
    automatic = [parameter.default] if isinstance(parameter.default, str) else []
    return _beginning([*automatic, *shortlist.ALGORITHMS], begun)


def experiment_names(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Every experiment that begins so, in the store named before on the line or by the shell."""
    from shortlist.experiment.place import open_store

    path = context.params.get("store")
    if path is None:
        return []
    try:
        store = open_store(path, "ro")
    except (ShortlistError, OSError):
        return []
    try:
        return _beginning(store.names(), begun)
    except (ShortlistError, OSError):
        return []
    finally:
        store.close()


def _beginning(names: list[str], begun: str) -> list[str]:
    """Those that begin so, and that a shell may show."""
    return [name for name in names if name.startswith(begun) and name.isprintable()]
