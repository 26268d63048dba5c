"""The experiments behind --store: in a file, in PostgreSQL, or at a service (http://…)."""

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import shortlist

if TYPE_CHECKING:
    from shortlist import Arm, Client, Experiment

TOKEN = "SHORTLIST_TOKEN"  # in the environment: other users can read a command line


def is_service(store: str | None) -> bool:
    """Whether this is the address of a service."""
    from shortlist.engine.locate import SERVICES

    return store is not None and store.startswith(SERVICES)


def client(url: str, name: str | None = None) -> "Client":
    """A client of the service at this address, with the token of the environment."""
    return shortlist.Client(url, os.environ.get(TOKEN) or None, name)


def shown(store: str) -> str:
    """The address of a store, without its password."""
    from shortlist.stores.address import shown_place

    return shown_place(store)


def open_experiment(
    store: str, name: str | None, *, readonly: bool = False
) -> "Experiment | Client":
    """Open the experiment of this name."""
    if is_service(store):
        return client(store).open(name)
    return shortlist.Experiment.open(store, name, readonly=readonly)


def create_experiment(
    arms: "list[str] | list[Arm]", *, store: str | None, **settings: Any
) -> "Experiment | Client":
    """Create an experiment."""
    if store is not None and is_service(store):
        return client(store).create(arms, **settings)
    return shortlist.Experiment.create(arms, store=store, **settings)


def export_from(store: str, name: str | None) -> Any:
    """The lines of JSON of an experiment."""
    from shortlist.engine import export_lines

    if is_service(store):
        return client(store).open(name).export_lines()
    return export_lines(store, name)


def write_cells(store: str, name: str | None, path: str) -> int:
    """Write the evaluated cells of an experiment to a file; return their number."""
    with open_experiment(store, name, readonly=True) as experiment:
        cells = experiment.cells()
        cells.write(path)
        return len(cells)


def list_rows(store: str) -> list[dict[str, object]]:
    """One row per experiment."""
    if is_service(store):
        return list(client(store).experiments())
    from shortlist.engine.locate import open_store

    with closing(open_store(store, "ro")) as file:
        return [
            {
                "name": each.name,
                "state": each.state or "ready",
                "arms": each.arms,
                "k": each.k,
                "algorithm": each.algorithm,
                "pulls": each.told,
            }
            for each in file.listed()
            if not each.archived
        ]
