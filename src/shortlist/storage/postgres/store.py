"""A store in PostgreSQL: programs on any number of machines may share it."""

from shortlist.storage.connection import Mode
from shortlist.storage.postgres.connections import Connections
from shortlist.storage.sql import SQLStore


class PostgresStore(SQLStore):
    """Experiments in the database at `url`, in the schema `shortlist`.

    Threads may share it; every process must open its own. Writers of different experiments do not
    meet; those of one wait for one another, up to `timeout` seconds. A server that is away is
    asked again for as long. With mode "ro" nothing is ever written."""

    def __init__(self, url: str, mode: Mode = "rw", *, timeout: float = 30.0) -> None:
        self._connections = Connections(url, mode, timeout)
        super().__init__(self._connections)

    def __repr__(self) -> str:
        return f"<PostgresStore {self._connections.place}>"
