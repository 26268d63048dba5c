"""The command line, run inside a test; stdout and stderr apart with every click since 8.1."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

from click.testing import CliRunner, Result

from shortlist.cli import main

# Before 8.2 click had to be told to keep them apart, since then it cannot be told any more.
TOLD = "mix_stderr" in signature(CliRunner).parameters
APART: dict[str, Any] = {"mix_stderr": False} if TOLD else {}


def invoke(arguments: Sequence[str], stdin: str | bytes | None = None) -> Result:
    """What `shortlist` does with these arguments."""
    return CliRunner(**APART).invoke(main, list(arguments), input=stdin)
