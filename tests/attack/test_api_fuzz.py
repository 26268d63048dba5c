"""Random calls of everything public: an answer or an error in words, soon, and in little memory."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_calls import TARGETS, trial
from attack_scale import AGAIN, SCALE, SEED
from call_targets import Trial, UsersOwn
from client_calls import end
from hostile_values import bounded

import shortlist
from shortlist.errors import ShortlistError

CALLS = 2500 * SCALE
# how Python refuses a wrong number of arguments, or an argument of a wrong name
MISCALLED = re.compile("missing .* argument|unexpected keyword argument|takes .* argument")
UNCALLED = {  # records, made and not called by users, and names that are no functions
    *("ALGORITHMS", "__version__", "errors", "instances", "regret", "Search", "Algorithm"),
    *(
        "Answer",
        "Assessment",
        "ComparedAlgorithms",
        "ComparedRuns",
        "Forecast",
        "Hardness",
        "Prospect",
        "Pulls",
        "Result",
        "Rewards",
        "Runs",
    ),
    *("Binary", "Normal", "Status", "Ticket"),
}


def test_the_fuzzer_calls_every_public_name() -> None:
    called = {target.name.partition(".")[0] for target in TARGETS}
    assert set(shortlist.__all__) - UNCALLED <= called
    for module in (shortlist.instances, shortlist.regret):
        own = {name for name, each in vars(module).items() if callable(each)}
        public = {
            name for name in own if getattr(vars(module)[name], "__module__", "") == module.__name__
        }
        assert public - {"rte", "rte_workers", "chosen_arms", "WithFeatures"} - called <= {
            name for name in public if name.startswith("_")
        }


def fault(call: Trial) -> str:
    """What is wrong with how a call ends; nothing if it is as it should be."""
    try:
        with bounded():
            call()
    except (ShortlistError, UsersOwn):
        return ""
    except TypeError as error:
        return "" if MISCALLED.search(str(error)) else f"TypeError: {error}"
    except BaseException as error:  # TooLong and MemoryError among them
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for files of any name; and no service is left when it is over."""
    monkeypatch.chdir(tmp_path)
    yield
    end()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("part", range(8))
def test_hostile_calls_end_in_an_answer_or_an_error_of_the_package(
    part: int, capfd: pytest.CaptureFixture[str]
) -> None:
    faults = []
    for number in range(part, CALLS, 8):
        call = trial(random.Random(f"{SEED}/{number}"))
        wrong = fault(call)
        if wrong:
            faults.append(f"call {number}: {call}\n    {wrong}")
    capfd.readouterr()
    assert not faults, "\n".join([f"{len(faults)} faults, {AGAIN}", *faults[:20]])
