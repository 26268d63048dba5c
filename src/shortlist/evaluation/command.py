"""A program that prints one number, as a function that evaluates an arm."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from threading import Lock

from shortlist.arms import Label
from shortlist.errors import EvaluationFailed, InvalidInput
from shortlist.validation import number

PLACEHOLDERS = ("arm", "seed", "draw", "ticket")
# a name in two pairs of braces, or in one
BRACED = re.compile(r"\{(\{[A-Za-z_]\w*\})\}|\{([A-Za-z_]\w*)\}")
# float() also takes 1_0 and other digits
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
SHOWN = 4000  # characters of what a program that failed has to say
LINE = 200  # characters of it that a message has room for
GRACE = 1.0  # seconds for the pipes of a program that was ended to close


class Command:
    """Runs a program once a pull, {arm}, {seed}, {draw} and {ticket} in its arguments filled in.

    No shell is involved: the template is split into arguments first and filled in afterwards, so
    whatever a label holds is part of one argument. {{word}} stands for {word} itself. A failure is
    an exit status other than 0, an output that is not one number, or more than `timeout` seconds;
    its message ends with the last line that the program wrote to stderr, and a note holds all of
    them."""

    def __init__(self, template: str, timeout: float | None = None) -> None:
        self.template = template
        self.parts = _split(template)
        self.timeout = None if timeout is None else number("timeout", timeout, above=0)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        self._lock = Lock()

    def arguments(self, arm: Label, *, seed: int, draw: int, ticket: int) -> list[str]:
        """The program and its arguments for one pull; what is filled in is not looked at again."""
        values = {"arm": arm, "seed": seed, "draw": draw, "ticket": ticket}
        return [
            BRACED.sub(lambda found: found[1] or str(values[found[2]]), part) for part in self.parts
        ]

    def __call__(self, arm: Label, *, seed: int, draw: int, ticket: int) -> float:
        """Run the program and return the number it prints."""
        process = self._start(self.arguments(arm, seed=seed, draw=draw, ticket=ticket))
        try:
            output, errors = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            raise EvaluationFailed(f"it took longer than {self.timeout:g} s") from None
        finally:
            with self._lock:
                self._running.discard(process)
        return _reward(process.returncode, _text(output), _text(errors))

    def stop(self) -> None:
        """End every program that is running; none is started any more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill(process)

    def _start(self, arguments: list[str]) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._stopped:
                raise EvaluationFailed("it was stopped before it began")
            try:
                process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    # an interrupt is for us, and ending it ends what it started too
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise EvaluationFailed(f"it cannot be started: {error}") from error
            self._running.add(process)
            return process


def _split(template: str) -> list[str]:
    try:
        parts = shlex.split(template)
    except ValueError as error:
        raise InvalidInput(
            f"the command {template!r} cannot be split into arguments: {error}"
        ) from error
    names = {found[2] for part in parts for found in BRACED.finditer(part)}
    unknown = names.difference(PLACEHOLDERS, [None])
    if unknown:
        name, there = min(unknown), ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
        rule = f"there is only {there}; for the word itself write {{{{{name}}}}}"
        raise InvalidInput(
            f"the command is {template!r}, but {{{name}}} stands for nothing: {rule}"
        )
    if "arm" not in names:
        raise InvalidInput(
            f"the command is {template!r}, but must contain {{arm}}, which stands for the arm to"
            " pull"
        )
    if not BRACED.search(parts[0]) and shutil.which(parts[0]) is None:
        # a bare name is looked for elsewhere
        file = os.path.dirname(parts[0]) and os.path.isfile(parts[0])
        wrong = f"{parts[0]!r} is not executable" if file else f"there is no program {parts[0]!r}"
        raise InvalidInput(f"the command is {template!r}, but {wrong}")
    return parts


def decimal(text: str) -> float:
    """A number in ordinary decimal notation; a ValueError if it is anything else."""
    if not DECIMAL.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is no number")
    return float(text)


def _reward(status: int, output: str, errors: str) -> float:
    if status < 0:
        names = {int(each): each.name for each in signal.Signals}
        raise _failure(f"it was ended by {names.get(-status, f'signal {-status}')}", errors)
    if status > 0:
        raise _failure(f"its exit status was {status}", errors)
    try:
        return decimal(output)
    except ValueError:
        raise _failure(f"it printed {output[:LINE]!r}, but must print one number", errors) from None


def _failure(what: str, errors: str) -> EvaluationFailed:
    """What went wrong and the last that the program said, in a line; all that it said is in a
    note."""
    last = errors.splitlines()[-1][-LINE:] if errors else ""
    failure = EvaluationFailed(f"{what}; it said: {last}" if last else what)
    if last != errors:
        failure.add_note(errors[-SHOWN:])
    return failure


def _end(process: "subprocess.Popen[bytes]") -> None:
    _kill(process)
    with suppress(subprocess.TimeoutExpired):  # somebody who left the session may hold the pipes
        process.communicate(timeout=GRACE)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a program and what it started."""
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _text(output: bytes) -> str:
    return output.decode("utf-8", errors="replace").strip()
