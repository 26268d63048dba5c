"""Random command lines: one line of words and a known exit status, soon, and in little memory."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from attack_scale import AGAIN, SCALE, SEED
from command_line import invoke
from command_lines import FILES, USUAL, Words, command_line, furnish, standard_input
from hostile_values import bounded

from shortlist.cli import main

LINES = 1200 * SCALE
STATUSES = range(5)  # 0 done, 1 trouble, 2 bad input, 3 not yet, 4 over
BYTES = 500 * 2**20


@pytest.fixture
def furnished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHORTLIST_STORE", raising=False)
    furnish(tmp_path)
    return tmp_path


def fault(words: Words, stdin: str | bytes) -> str:
    """What is wrong with how a command ends; nothing if it is as it should be."""
    try:
        with bounded():
            ended = invoke(words, stdin)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        return f"{type(ended.exception).__name__}: {ended.exception}"
    if "Traceback" in ended.stderr:
        return ended.stderr
    return "" if ended.exit_code in STATUSES else f"exit status {ended.exit_code}"


def test_the_fuzzer_calls_every_command() -> None:
    assert {words[0] for words in USUAL} == set(main.commands)


@pytest.mark.parametrize("part", range(8))
def test_hostile_command_lines_end_with_a_known_exit_status_and_no_traceback(
    part: int, furnished: Path
) -> None:
    faults = []
    for number in range(part, LINES, 8):
        rng = random.Random(f"{SEED}/{number}")
        words, stdin = command_line(rng), standard_input(rng)
        wrong = fault(words, stdin)
        if wrong:
            shown = [word if len(word) < 99 else f"{word[:99]}..." for word in words]
            faults.append(f"line {number}: {shown!r}\n    {wrong}")
    assert not faults, "\n".join([f"{len(faults)} faults, {AGAIN}", *faults[:20]])


def test_hostile_command_lines_in_real_processes_leave_no_traceback(furnished: Path) -> None:
    """A few: with bytes that are no text, on real pipes."""
    for number in range(5 * min(SCALE, 20)):
        rng = random.Random(f"{SEED}/process/{number}")
        words = [
            word.replace("\0", "").encode(errors="surrogatepass") for word in command_line(rng)
        ]
        words = [word[:100_000] for word in words]
        ended = subprocess.run(
            [sys.executable, "-m", "shortlist", *words],
            input=FILES["arms.csv"].encode(),
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode in STATUSES, (words, AGAIN)
        assert b"Traceback" not in ended.stderr, (words, AGAIN)
    assert os.getcwd() == str(furnished)
