"""One run of a program: what it prints is read to a bound, and nothing it started outlives it.

A program may print without end, or leave a child behind that keeps its pipes open. So reading goes
on for as long as the program itself lives, and no longer: then its whole process group is ended."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

KEPT = 64 * 1024  # bytes of an output; the rest is counted and discarded
PAUSE = 0.05  # seconds between two looks at whether a program that keeps quiet has ended
SOON = 0.0005  # seconds from closing its pipes to its end, as a rule
GRACE = 1.0  # seconds for what a program that has ended left in its pipes


class Output:
    """What was printed: the first bytes of it, or with `last` the last ones, and how many more."""

    def __init__(self, last: bool = False) -> None:
        self.last = last
        self.dropped = 0
        self._kept = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take in what was read."""
        self._kept += chunk
        excess = max(0, len(self._kept) - KEPT)
        self.dropped += excess
        if excess:
            del self._kept[slice(None, excess) if self.last else slice(KEPT, None)]

    @property
    def text(self) -> str:
        """What was kept; a byte that is no UTF-8 becomes a sign for it."""
        return self._kept.decode("utf-8", errors="replace").strip()

    @property
    def all_of_it(self) -> str:
        """The same where nothing was dropped; a ValueError elsewhere."""
        if self.dropped:
            raise ValueError(f"{self.dropped} bytes were dropped")
        return self.text


class Program:
    """A program that runs. Raises OSError or ValueError if it cannot be started."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.output = Output()
        self.errors = Output(last=True)  # what it said last says why it failed
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            bufsize=0,
            # an interrupt is for us, and ending it ends what it started too
            start_new_session=True,
        )

    def wait(self, timeout: float | None) -> int:
        """Read until the program ends; its exit status. TimeoutError after so many seconds."""
        if sys.platform == "win32":
            return self._wait_for_all(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        with self._process, selectors.DefaultSelector() as open_pipes:
            try:
                self._open(open_pipes)
                self._read_while_it_runs(open_pipes, end)
            finally:
                self.kill()
                self._process.wait()
            self._read_what_is_left(open_pipes)
        return self._process.returncode

    def _wait_for_all(self, timeout: float | None) -> int:
        """The same where pipes cannot be waited for: everything is read."""
        try:
            output, errors = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError from None
        self.output.add(output)
        self.errors.add(errors)
        return self._process.returncode

    def kill(self) -> None:
        """End the program and all of its group."""
        with suppress(ProcessLookupError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _open(self, open_pipes: selectors.BaseSelector) -> None:
        for pipe, output in (
            (self._process.stdout, self.output),
            (self._process.stderr, self.errors),
        ):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            open_pipes.register(pipe, selectors.EVENT_READ, output)

    def _read_while_it_runs(self, open_pipes: selectors.BaseSelector, end: float | None) -> None:
        quiet = SOON
        while not self._has_ended():
            left = PAUSE if end is None else min(PAUSE, end - time.monotonic())
            if left <= 0:
                raise TimeoutError
            if open_pipes.get_map():
                _read(open_pipes, left)
            else:
                time.sleep(min(left, quiet))
                quiet *= 2

    def _read_what_is_left(self, open_pipes: selectors.BaseSelector) -> None:
        """Up to the end; who left the group may go on printing, and is not waited for."""
        end = time.monotonic() + GRACE
        while open_pipes.get_map() and time.monotonic() < end:
            if not _read(open_pipes, 0):
                return

    def _has_ended(self) -> bool:
        """Whether it has; it is not reaped, so that the number of its group stays its own."""
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        try:
            state = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:  # somebody reaps all children of this process
            return True
        return state is not None


def _read(open_pipes: selectors.BaseSelector, seconds: float) -> bool:
    """Take in what comes within so many seconds; whether anything did."""
    ready = open_pipes.select(seconds)
    for key, _ in ready:
        pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]
        chunk = pipe.read(KEPT)
        if chunk:
            key.data.add(chunk)
        elif chunk is not None:
            open_pipes.unregister(pipe)
    return bool(ready)
