"""The tools of `shortlist mcp`, by the SDK of the Model Context Protocol.

They keep no state: every call opens the store, does one thing and closes it. With the address of a
service as the store, calls go through that service, with its tokens and its limits."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import wraps
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import WithJsonSchema

import shortlist
from shortlist.cli.options import create_experiment, list_rows, open_experiment
from shortlist.errors import InvalidInput, ShortlistError
from shortlist.settings import arms_of_json, rewards_of
from shortlist.spec import FIELDS, REQUIRED, Json, json_schema
from shortlist.validation import whole
from shortlist.wire import handout_to_json, shares_to_json, status_to_json

if TYPE_CHECKING:
    from shortlist import Client, Experiment

MOST_TICKETS = 1000  # of one call, so that a reply stays readable
MOST_RUNS = 100  # of one forecast, so that a call ends soon
INSTRUCTIONS = """\
shortlist finds the K best of n noisy arms with few pulls and proves how much the choice can lose.
1. forecast says how many pulls it will take. 2. create makes an experiment. 3. ask hands out
tickets: evaluate the arm of each ticket once, then tell its reward. Repeat until ask returns no
tickets and the state is not "pending". A live test (created with per_day) has shares and
tell_counts per day instead of ask and tell. 4. result has the chosen arms, the regret bound and its
confidence. Tell every reward as it came: leaving out or changing rewards voids the guarantee. For
results that exist already use assess."""

SettingsGiven = Annotated[dict[str, Any], WithJsonSchema(json_schema())]


def tool_server(store: str) -> MCPServer[Any]:
    """A server whose tools read and write the experiments in this store.

    Args:
        store: Name of a file, postgresql://…, or the address of a service.

    Returns:
        The server, which runs on any transport of the SDK."""
    server: MCPServer[Any] = MCPServer(
        "shortlist", instructions=INSTRUCTIONS, version=shortlist.__version__
    )
    live = Tools(store)
    pulled: tuple[Callable[..., Json], ...]
    pulled = (live.create, live.ask, live.tell, live.shares, live.tell_counts)
    read = (live.retire, live.status, live.result, live.experiments)
    for tool in (*pulled, *read, forecast, assess):
        server.add_tool(_readable(tool))
    return server


def _readable(tool: Callable[..., Json]) -> Callable[..., Json]:
    """The same tool; our errors reach the assistant, which can read the value and the rule."""

    @wraps(tool)
    def called(*args: Any, **given: Any) -> Json:
        try:
            return tool(*args, **given)
        except ShortlistError as error:
            raise ToolError(str(error)) from error

    called.__doc__ = getdoc(tool)
    return called


class Tools:
    """Tools on the experiments in one store."""

    def __init__(self, store: str) -> None:
        self._store = store

    def create(self, name: str, settings: SettingsGiven) -> Json:
        """Create an experiment. `settings` must have arms, k, and epsilon or budget."""
        with closing(create_experiment(store=self._store, name=name, **_checked(settings))) as made:
            return {"name": made.name, "wanted": made.status().wanted}

    def ask(self, name: str, limit: int = 1, worker: str | None = None) -> Json:
        """Get up to `limit` tickets (1000 at most). Evaluate the arm of each once, on its item if
        it has one, with its seed if the evaluation is random. Without tickets, `state` says why."""
        limit = whole("limit", limit, at_least=1, at_most=MOST_TICKETS)
        with self._opened(name) as experiment:
            return handout_to_json(experiment.ask(limit, worker))

    def tell(self, name: str, rewards: dict[int, float]) -> Json:
        """Record rewards by the number of their ticket: all, or after an error none. Telling the
        same again changes nothing."""
        with self._opened(name) as experiment:
            receipt = experiment.tell_many(list(rewards.items()))
            told = experiment.status().told
        return {"told": told, "late": list(receipt.late), "unused": list(receipt.unused)}

    def shares(self, name: str, block: str | None = None) -> Json:
        """Open a block of a live test (one created with `per_day` or `drift`), or repeat its
        shares: the percentage of visitors per arm. Default: the block of today's date."""
        with self._opened(name) as experiment:
            return shares_to_json(experiment.shares(block))

    def tell_counts(self, name: str, block: str, counts: dict[str, list[float]]) -> Json:
        """Tell a complete block of a live test. `counts`: per arm [visitors, conversions], or
        [visitors, sum, squares] of other rewards. Telling the same again changes nothing."""
        with self._opened(name) as experiment:
            labels = {str(arm): arm for arm in experiment.status().arms.labels}
            given = {labels.get(arm, arm): _counted(row) for arm, row in counts.items()}
            return asdict(experiment.tell_counts(block, given))

    def retire(self, name: str, arm: str | int, reason: str = "") -> Json:
        """Take an arm out of the experiment. The bound is about the remaining arms then."""
        with self._opened(name) as experiment:
            experiment.retire(arm, reason)
        return {"retired": arm}

    def status(self, name: str) -> Json:
        """Get the state of an experiment, and what is known of every arm."""
        with self._opened(name) as experiment:
            return status_to_json(experiment.status())

    def result(self, name: str, partial: bool = False) -> Json:
        """Get the chosen arms, the regret bound and its confidence; with `partial` also before the
        search has ended."""
        with self._opened(name) as experiment:
            return dict(experiment.result(partial=partial).to_dict())

    def experiments(self) -> Json:
        """List the experiments in the store."""
        return {"experiments": list_rows(self._store)}

    @contextmanager
    def _opened(self, name: str) -> "Iterator[Experiment | Client]":
        with closing(open_experiment(self._store, name)) as experiment:
            yield experiment


def forecast(
    k: int,
    n: int | None = None,
    means: list[float] | None = None,
    prior: tuple[float, float] | None = None,
    epsilon: float | str | None = None,
    delta: float = 0.05,
    budget: float | None = None,
    runs: int = 20,
    per_day: float | None = None,
    delay: float = 0.0,
) -> Json:
    """Simulate how many pulls a search takes until epsilon, or what it loses at a budget, for 0/1
    rewards. Give guessed `means`, or `n` arms with a Beta `prior` (a, b). With `per_day` visitors
    and a `delay` in days, the prospect "live test" has the days of a live test."""
    runs = whole("runs", runs, at_least=1, at_most=MOST_RUNS)
    goal: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "budget": budget}
    goal |= {} if per_day is None else {"per_day": per_day, "delay": delay}
    found = shortlist.forecast(k=k, n=n, means=means, prior=prior, runs=runs, **goal)
    return dict(found.summary())


def assess(
    counts: dict[str, list[float]],
    k: int,
    fixed: bool,
    delta: float = 0.05,
    minimize: bool = False,
) -> Json:
    """Find the K best arms of past results, and bound what this choice can lose. `counts`: per arm
    [pulls, successes], or [pulls, sum, squares]. `fixed`: true only if the numbers of pulls were
    fixed before any reward was seen; if you are not sure, false."""
    given = {arm: tuple(numbers) for arm, numbers in counts.items()}
    return dict(shortlist.assess(given, k, fixed=fixed, delta=delta, minimize=minimize).to_dict())


def _counted(row: list[float]) -> list[float]:
    """The number of visitors as a whole number, if it is one, and the sums."""
    return [int(row[0]) if row and row[0] == int(row[0]) else row[0], *row[1:]] if row else row


def _checked(settings: Json) -> Json:
    """The settings of a new experiment, as `Experiment.create` takes them.

    As at a service, the caller chooses neither code to import nor files to read."""
    for name in settings:
        if name not in FIELDS:
            raise InvalidInput(f"`settings` has {name!r}, but may have {', '.join(FIELDS)}")
    for name in REQUIRED:
        if name not in settings:
            raise InvalidInput(f"`settings` has no {name!r}, but needs it")
    if ":" in str(settings.get("algorithm")):
        raise InvalidInput(
            f"`algorithm` is {settings['algorithm']!r}, but must be one of `shortlist algorithms`"
        )
    if not isinstance(settings.get("scores"), list | None):
        raise InvalidInput("`scores` is not a list, but must be a list of lists")
    given = {name: value for name, value in settings.items() if value is not None}
    made = {"arms": arms_of_json(settings["arms"])}
    return {**given, **made, "rewards": rewards_of(settings.get("rewards"))}
