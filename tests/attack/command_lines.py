"""Random command lines: what is usual for every command, and then some words replaced."""

import random
from collections.abc import Sequence
from pathlib import Path

from click import Option

import shortlist
from shortlist.cli import main

Words = list[str]

NUMBERS = (
    *("0", "1", "-1", "3", "7", "1e14", "1e20", "1e400", "-1e400", "nan", "inf", "-inf", "1_0"),
    *(str(10**14), str(2**62), str(2**63), str(2**64), str(-(2**63)), str(10**400)),
    *(
        "9" * 5000,
        "0x10",
        "1.5",
        "0.5",
        "5e-324",
        "1e-20",
        "1e-61",
        "1e59",
        "\u0663",
        "true",
        "0,1",
    ),
    *("1,0", "nan,1", "0,1e400", "0,1e-300", "1e59,1e60", "sub-gaussian:0", "sub-gaussian:inf"),
    *("sub-gaussian:1e59", "[", "[" * 100_000, "{}", "null", '"\\ud800"', "1e20,2", "0.1,1e308"),
)
NAMES = (
    *("", " ", "\0", "a\0b", "\ud800", "\udcff\udcfe", "\x1b[31m", "\x9b2J", "\u202e", "é"),
    *(
        "x" * 5000,
        "a\nb",
        "a\rb",
        "\u2028",
        "%s",
        "{arm}",
        "{",
        "{{arm}}",
        "'",
        '"',
        "\\",
        "=",
        ":",
    ),
    *("binary", "table", "json", "csv", "auto", "uniform", "lucb", "sar", "certified", "opt-mai"),
    *("kl-lucb", "track-and-stop", "expected-loss", "nowhere:f", "os.path:join", "json:loads"),
    *("a.b.c:d.e", "gaussian", "lower-bound", "rte", "growth=1e20", "holdout=2", "max_rounds=0"),
    *(
        "certificate=pairs",
        "batch=1e99",
        "threshold=x",
        "scale=NaN",
        "delta=0",
        "tight=1",
        "{arm} x",
    ),
)
PLACES = (
    *(
        "arms.csv",
        "means.csv",
        "pilot.csv",
        "fresh.csv",
        "rewards.csv",
        "tests.db",
        "bytes",
        "empty",
        "folder",
    ),
    *("long", "nul.csv", "odd.csv", "huge.csv", "cut.jsonl", "export.jsonl", "/dev/null", ".", "-"),
    *(
        "nowhere",
        "nowhere/x",
        "/dev/zero",
        "\udcff.db",
        "a\0b",
        "\x1b[31m",
        "x" * 300,
        "",
        "/",
        "?",
    ),
)
HOSTILE = (
    *("-", "--", "---", "-x", "--nothing", "--help", "-h", "--version", ",", "/", "--store", "-k"),
    *NUMBERS,
    *NAMES,
    *PLACES,
)
FILES = {
    "arms.csv": "a\nb\nc\n",
    "means.csv": "mean\n0.9\n0.5\n0.1\n",
    "fresh.csv": "arm,chosen,pulls,sum\na,yes,40,30\nb,no,40,10\nc,no,60,6\n",
    "pilot.csv": "pulls,sum\n10,5\n12,3\n9,8\n",
    "rewards.csv": "ticket,reward\n0,1\n1,0\n",
    "empty": "",
    "long": "x" * 200_000 + "\n" + "y\n" * 3,
    "nul.csv": "a\0b,\0\n\0,1\n",
    "odd.csv": 'pulls,sum,mean,arm,ticket,reward\n"1\n2,\x1b[31m,nan,",1e400,9999999999,"\n',
    "huge.csv": "pulls,sum,mean,arm,ticket,reward\n1" + "0" * 400 + ",1e20,1e400,\u202e,1,1\n",
    "cut.jsonl": '{"shortlist": 1, "arms": 1e10}\n[[[[\n' + "[" * 100_000 + "\n",
}


WORKS = "sh -c 'echo 1 # $SHORTLIST_ARM'"  # the only program here that prints a number


def furnish(folder: Path) -> None:
    """Put the files into a folder that the command lines name."""
    for name, content in FILES.items():
        (folder / name).write_text(content)
    (folder / "bytes").write_bytes(bytes(range(256)))
    (folder / "folder").mkdir()
    with shortlist.Experiment.create(3, 1, budget=9, store=folder / "tests.db") as experiment:
        experiment.ask(2, "ann")
        experiment.tell(0, 1)
    lines = shortlist.engine.export_lines(str(folder / "tests.db"), None)
    (folder / "export.jsonl").write_text("\n".join(lines) + "\n")


def command_line(rng: random.Random) -> Words:
    """A command with none to many of its words replaced, dropped, doubled or added."""
    if rng.random() < 0.02:
        return rng.choices(HOSTILE, k=rng.randint(0, 5))
    words = list(rng.choice(USUAL))
    values = [place for place, word in enumerate(words) if place and word[:1] != "-"]
    if WORKS in words:  # pulls as many as a large budget has are work, and no hang
        values.remove(words.index("--budget") + 1)
    for place in rng.sample(values, min(len(values), rng.choice((0, 1, 1, 2, 3)))):
        words[place] = hostile_word(rng, words[place])
    if rng.random() < 0.2:
        words += unusual_option(rng, words)
    if rng.random() < 0.1:
        words.insert(rng.randint(1, len(words)), rng.choice(HOSTILE))
    if rng.random() < 0.05:
        del words[rng.randrange(len(words))]
    return [*words, *NEVER_LONG.get(words[0] if words else "", ())]


def unusual_option(rng: random.Random, words: Words) -> Words:
    """An option that the command takes, and a value that it may not."""
    command = main.commands.get(words[0])
    there = [each for each in command.params if isinstance(each, Option)] if command else []
    there = [each for each in there if each.opts[0] not in (*words, *LASTING)]
    if not there:
        return []
    option = rng.choice(there)
    return option.opts if option.is_flag else [*option.opts, rng.choice(HOSTILE)]


def hostile_word(rng: random.Random, usual: str) -> str:
    """Anything, or what is of the kind of the usual word, but odd."""
    if rng.random() < 0.4:
        return rng.choice(HOSTILE)
    if usual.partition(".")[2] in ("csv", "db", "jsonl"):
        return rng.choice(PLACES)
    name, equals, _ = usual.partition("=")
    if equals:
        return f"{name}={rng.choice(NUMBERS)}"
    return rng.choice(NUMBERS) if usual[:1].isdigit() else rng.choice(NAMES)


def standard_input(rng: random.Random) -> str | bytes:
    """What a command may find there."""
    choices: list[str | bytes] = [b"", bytes(range(256)), *FILES.values()]
    return rng.choice(choices)


STORE = ("--store", "tests.db")
# options that ask for more work, or for a table that is kept up to date for ever
LASTING = ("--budget", "--epsilon", "--watch")
# options that are given again at the end, where the last one counts: nothing runs for long
NEVER_LONG: dict[str, Sequence[str]] = {
    "simulate": ("--workers", "1"),
    "compare": ("--workers", "1"),
    "forecast": ("--workers", "1"),
    "reproduce": ("--panel", "nowhere"),
    "serve": ("--port", "nowhere"),
    "mcp": ("--help",),
}
USUAL: Sequence[Sequence[str]] = (
    ("simulate", "--means", "means.csv", "-k", "1", "--algorithm", "uniform", "--budget", "30"),
    ("simulate", "--means", "means.csv", "-k", "1", "--algorithm", "lucb", "--epsilon", "0.5"),
    (
        *("simulate", "--means", "means.csv", "-k", "1", "--algorithm", "clucb-pac"),
        *("--budget", "60", "--option", "growth=0.1", "--delta", "0.1", "--seed", "3"),
    ),
    (
        *("simulate", "--instance", "synthetic", "-p", "2", "-n", "6", "-k", "2", "--algorithm"),
        *(
            "adaptive-top-k",
            "--budget",
            "90",
            "--option",
            "scale=1",
            "--runs",
            "1",
            "--rewards",
            "beta",
        ),
    ),
    (
        *("compare", "--means", "means.csv", "-k", "1", "--algorithm", "uniform"),
        *("--budget", "30", "--runs", "2", "--epsilon", "0.5"),
    ),
    ("hardness", "--instance", "uniform", "-n", "20", "-k", "3", "--epsilon", "0.1"),
    ("hardness", "--instance", "two-group", "-n", "8", "-k", "3", "--epsilon", "0.1"),
    ("hardness", "--means", "means.csv", "-k", "1", "--epsilon", "0.1", "--format", "json"),
    (
        *("forecast", "-n", "6", "-k", "2", "--prior", "2,18", "--budget", "60", "--runs", "1"),
        *("--algorithm", "uniform", "--seed", "1"),
    ),
    ("forecast", "-k", "1", "--pilot", "pilot.csv", "--budget", "60", "--runs", "1"),
    ("forecast", "-k", "1", "--means", "means.csv", "--epsilon", "0.4", "--runs", "1"),
    ("certify", "fresh.csv", "--fresh", "--boundary", "0.5", "--delta", "0.1"),
    (
        *("certify", "fresh.csv", "--fresh", "--boundary", "0.5", "--strength", "9"),
        *("--rewards", "0,1", "--format", "json"),
    ),
    ("assess", "pilot.csv", "-k", "1", "--fixed", "--delta", "0.1", "--minimize"),
    ("assess", "fresh.csv", "-k", "2", "--no-fixed", "--rewards", "0,1", "--format", "json"),
    ("algorithms", "--format", "json"),
    ("create", "arms.csv", "-k", "1", "--budget", "9", "--store", "new.db", "--name", "n"),
    (
        *("create", "arms.csv", "-k", "1", "--epsilon", "0.4", "--rewards", "0,1", "--lease", "9"),
        *("--algorithm", "lucb", "--option", "growth=0.1", "--store", "other.db"),
    ),
    ("ask", *STORE, "--limit", "2", "--worker", "ann", "--format", "csv"),
    ("tell", "0", "1", *STORE),
    ("tell", "1", "--failed", "no network", *STORE),
    ("tell", "--file", "rewards.csv", *STORE),
    ("resume", *STORE),
    ("release", "0", *STORE, "--worker", "ann", "--overdue", "3"),
    ("retire", "2", *STORE, "--reason", "sold out"),
    ("copy", "tests.db", "copied.db", "--name", "experiment"),
    ("tokens", "create", "ann", *STORE, "--scope", "work"),
    ("tokens", "list", *STORE),
    ("tokens", "revoke", "ann", *STORE),
    ("serve", *STORE, "--rate", "9", "--body", "9999"),
    ("mcp", *STORE),
    ("shares", *STORE, "--name", "experiment"),
    ("archive", *STORE, "--name", "experiment"),
    ("rename", "experiment", "other", *STORE),
    ("delete", "other", *STORE, "--yes"),
    ("status", *STORE, "--rows", "2", "--format", "table"),
    ("result", *STORE, "--name", "experiment"),
    ("list", "tests.db", "--format", "json"),
    ("export", *STORE),
    ("verify", "tests.db", "--format", "table"),
    ("import", "export.jsonl", "--store", "imported.db", "--name", "i"),
    ("run", "arms.csv", "--pull", "echo {arm}", "-k", "1", "--budget", "6", "--timeout", "2"),
    (
        *("run", "arms.csv", "--pull", WORKS, "-k", "1", "--budget"),
        *("4", "--retries", "0", "--store", "run.db"),
    ),
    ("reproduce", "--panel", "nowhere", "--runs", "1", "--seed", "1", "--out", "out"),
    ("demo", "--seed", "x"),
)
