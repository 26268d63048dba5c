"""A service in a thread of this process, on a port of its own."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shortlist.service.app import application
from shortlist.service.limits import Limits
from shortlist.service.server import Server, server
from shortlist.storage import Store

GENEROUS = Limits(rate=1e6)


@contextmanager
def serving(
    store: Store,
    clock: Callable[[], float] = time.time,
    limits: Limits = GENEROUS,
    origins: tuple[str, ...] = (),
) -> Iterator[str]:
    """The address of a service in front of that store."""
    app = application(store, limits=limits, clock=clock, origins=origins)
    listening = server(app, "127.0.0.1", 0, limits)
    thread = threading.Thread(target=listening.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port_of(listening)}"
    finally:
        listening.end()
        thread.join(20)
        assert not thread.is_alive(), "the service did not end"


def port_of(listening: Server) -> int:
    """The port that it was given, once it listens."""
    deadline = time.monotonic() + 20
    while not listening.started:
        assert time.monotonic() < deadline, "the service did not start"
        time.sleep(0.005)
    return listening.port
