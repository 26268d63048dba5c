"""A program that evaluates an arm by printing a number, or two: `Command`.

A program may print without end, or leave a child behind that keeps its pipes open. So output is
read to a bound, as long as the program itself runs and no longer: then its whole process group is
ended, and nothing it started outlives it."""

import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import IO

from shortlist.arms import Label
from shortlist.errors import EvaluationFailed, InvalidInput
from shortlist.reading.files import truth
from shortlist.validation import number, shown

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
        """Read until the program ends; its exit status. TimeoutError after `timeout` seconds."""
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
        """Read to the end, without waiting for processes that left the group."""
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
        except ChildProcessError:  # another part of this process reaps all its children
            return True
        return state is not None


def _read(open_pipes: selectors.BaseSelector, seconds: float) -> bool:
    """Read the output of the next `seconds`; whether there was any."""
    ready = open_pipes.select(seconds)
    for key, _ in ready:
        pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]
        chunk = pipe.read(KEPT)
        if chunk:
            key.data.add(chunk)
        elif chunk is not None:
            open_pipes.unregister(pipe)
    return bool(ready)


PLACEHOLDERS = ("arm", "item", "seed", "draw", "ticket")
PREFIX = "SHORTLIST_"  # of the same in the environment, as a shell wants them
# a name in two pairs of braces, or in one
BRACED = re.compile(r"\{(\{[A-Za-z_]\w*\})\}|\{([A-Za-z_]\w*)\}")
# float() also takes 1_0 and other digits
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
SHOWN = 4000  # characters of what a program that failed has to say
LINE = 200  # characters of it that a message has room for


class Command:
    """Runs a program once a pull; {arm}, {item}, {seed}, {draw}, {ticket} in it are filled in.

    No shell is involved: the template is split into arguments first and filled in afterwards, so
    whatever a label holds is part of one argument. {{word}} stands for {word} itself. A program
    that is a shell (`sh -c '...'`) takes its argument for a script, and a label in that for a part
    of the script: it can run commands. There, write "$SHORTLIST_ARM" for {arm}: they are in the
    environment, too, and what a variable holds is never run.

    It prints the reward, and after it the actual cost, if that differs from the declared one. A
    failure is an exit status other than 0, an output that is not one number or two, or more than
    `timeout` seconds; its message ends with the last line that the program wrote to stderr, and a
    note holds more of them. Of what it prints, 64 KiB are kept. When it ends, or its time does, all
    that it started is ended with it.

    Example:
        >>> import shortlist
        >>> echo = shortlist.Command("echo {arm} {draw}")
        >>> echo.arguments("red", seed=1, draw=0, ticket=7)[1:]
        ['red', '0']"""

    def __init__(self, template: str, timeout: float | None = None) -> None:
        self.template = template
        self.parts = _split(template)
        self.timeout = None if timeout is None else number("timeout", timeout, above=0)
        self._running: set[Program] = set()
        self._stopped = False
        self._lock = Lock()

    @property
    def on_items(self) -> bool:
        """Whether it wants to know the item of a test set."""
        return any(found[2] == "item" for part in self.parts for found in BRACED.finditer(part))

    def arguments(
        self, arm: Label, item: Label | None = None, *, seed: int, draw: int, ticket: int
    ) -> list[str]:
        """The program and its arguments for one pull; what is filled in is not looked at again.

        Args:
            arm: Label of the arm.
            item: Label of the item, on a test set.
            seed: Seed of the pull.
            draw: Number of the pull of this arm, from 0.
            ticket: Number of the ticket.

        Returns:
            The words of the command line."""
        values = _filled(arm, item, seed, draw, ticket)
        return [BRACED.sub(lambda found: found[1] or values[found[2]], part) for part in self.parts]

    def __call__(
        self, arm: Label, item: Label | None = None, *, seed: int, draw: int, ticket: int
    ) -> float | tuple[float, float]:
        """Run the program and return the number it prints, or the two."""
        values = _filled(arm, item, seed, draw, ticket)
        arguments = self.arguments(arm, item, seed=seed, draw=draw, ticket=ticket)
        program = self._start(arguments, values)
        try:
            status = program.wait(self.timeout)
        except TimeoutError:
            raise EvaluationFailed(f"it took longer than {self.timeout:g} s") from None
        finally:
            with self._lock:
                self._running.discard(program)
        return _reward(status, program.output, program.errors.text)

    def stop(self) -> None:
        """End every program that is running; none is started any more."""
        with self._lock:
            self._stopped = True
            for program in self._running:
                program.kill()

    def _start(self, arguments: list[str], values: Mapping[str, str]) -> Program:
        """Start the program; what is known of the pull is in its environment, too."""
        named = {f"{PREFIX}{name.upper()}": value for name, value in values.items()}
        with self._lock:
            if self._stopped:
                raise EvaluationFailed("it was stopped before it began")
            try:
                program = Program(arguments, {**os.environ, **named})
            except (OSError, ValueError) as error:
                raise EvaluationFailed(f"it cannot be started: {error}") from error
            self._running.add(program)
            return program


def _filled(arm: Label, item: Label | None, seed: int, draw: int, ticket: int) -> dict[str, str]:
    values = _texts(arm=arm, seed=seed, draw=draw, ticket=ticket)
    return values if item is None else {**values, **_texts(item=item)}


def _texts(**values: object) -> dict[str, str]:
    """What is filled in; a number may have more digits than Python is ready to write."""
    try:
        return {name: str(value) for name, value in values.items()}
    except ValueError as error:
        raise EvaluationFailed(f"it cannot be started: {error}") from error


def _split(template: object) -> list[str]:
    if not isinstance(template, str):
        raise InvalidInput(f"the command is {shown(template)}, but must be a text")
    try:
        parts = shlex.split(template)
    except ValueError as error:
        raise InvalidInput(
            f"the command {shown(template)} cannot be split into arguments: {error}"
        ) from error
    names = {found[2] for part in parts for found in BRACED.finditer(part)}
    unknown = names.difference(PLACEHOLDERS, [None])
    if unknown:
        name, there = min(unknown), ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
        rule = f"there is only {there}; for the word itself write {{{{{name}}}}}"
        raise InvalidInput(
            f"the command is {shown(template)}, but {{{name}}} stands for nothing: {rule}"
        )
    if "arm" not in names and f"{PREFIX}ARM" not in template:
        raise InvalidInput(
            f"the command is {shown(template)}, but must contain {{arm}}, which stands for the arm"
            f" to pull, or ${PREFIX}ARM, where a shell looks it up"
        )
    if not BRACED.search(parts[0]) and shutil.which(parts[0]) is None:
        # a bare name is looked for elsewhere
        file = os.path.dirname(parts[0]) and os.path.isfile(parts[0])
        wrong = f"{parts[0]!r} is not executable" if file else f"there is no program {parts[0]!r}"
        raise InvalidInput(f"the command is {shown(template)}, but {wrong}")
    return parts


def decimal(text: str) -> float:
    """A number in ordinary decimal notation; a ValueError if it is anything else."""
    if not DECIMAL.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is no number")
    return float(text)


def reward_in(text: str) -> float:
    """A reward as text: a number, or true or false."""
    right = truth(text)
    return decimal(text) if right is None else right


def _reward(status: int, output: Output, errors: str) -> float | tuple[float, float]:
    if status < 0:
        names = {int(each): each.name for each in signal.Signals}
        raise _failure(f"it was ended by {names.get(-status, f'signal {-status}')}", errors)
    if status > 0:
        raise _failure(f"its exit status was {status}", errors)
    try:
        (line,) = output.all_of_it.splitlines()
        first, *cost = line.split(maxsplit=1)
        reward = reward_in(first)
        return (reward, decimal(cost[0])) if cost else reward
    except ValueError:
        raise _failure(f"it printed {_shown(output)}, but must print one number", errors) from None


def _shown(output: Output) -> str:
    more = f" and {output.dropped:,} bytes more" if output.dropped else ""
    return f"{output.text[:LINE]!r}{more}"


def _failure(what: str, errors: str) -> EvaluationFailed:
    """What went wrong and the last that the program said, in a line; all that it said is in a
    note."""
    last = errors.splitlines()[-1][-LINE:] if errors else ""
    failure = EvaluationFailed(f"{what}; it said: {last}" if last else what)
    if last != errors:
        failure.add_note(errors[-SHOWN:])
    return failure
