"""A way to a server on which things get lost: it passes bytes on, and is cut at a chosen word."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Proxy:
    """Passes on what is said to `port`. Once, when `word` is said, the way is cut: before that
    arrives, or after it was answered but before the answer arrives."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.word: bytes | None = None
        self.arrives = True  # whether what is said when the way is cut still arrives
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at(self, word: bytes, *, arrives: bool) -> None:
        self.word, self.arrives = word, arrives

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                lost = threading.Event()
                for way in ((client, server, lost, True), (server, client, lost, False)):
                    threading.Thread(target=self._pass_on, args=way, daemon=True).start()

    def _pass_on(
        self, near: socket.socket, far: socket.socket, lost: threading.Event, asks: bool
    ) -> None:
        with suppress(OSError):
            while said := near.recv(1 << 16):
                if asks and self.word is not None and self.word in said:
                    self.word = None
                    self.cuts += 1
                    lost.set()
                    if not self.arrives:
                        break
                elif lost.is_set() and not asks:
                    break  # the answer to it
                far.sendall(said)
        for each in (near, far):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def proxy(port: int) -> Iterator[Proxy]:
    """A proxy before that port."""
    way = Proxy(port)
    yield way
    way.close()
