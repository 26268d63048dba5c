"""What the shell completes: the names of algorithms, and of the experiments in a store.

A completion must never fail: where nothing is known, nothing is proposed.

Options that several commands share: algorithms, experiments, and where they are kept. The
experiments behind --store may be in a file, in PostgreSQL, or at a service (http://…).

The options that name the arms: an instance of the paper, or a file of means."""

import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

import shortlist
from shortlist.cli.files import FILE, whole_number
from shortlist.errors import InvalidInput, ShortlistError, UnknownName
from shortlist.formatting import given_text
from shortlist.reading.files import FileLine, number_hint, read_columns
from shortlist.spec import FIELDS, FIELDS_OF, OnLate, Percent

if TYPE_CHECKING:
    from shortlist import Arm, Client, Experiment
    from shortlist.arrays import FloatArray
    from shortlist.instances import WithFeatures
    from shortlist.reward_models import RewardsDeclared

    Means = tuple[FloatArray, FloatArray | None]

TOKEN = "SHORTLIST_TOKEN"  # in the environment: other users can read a command line


def algorithm_names(_context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Every registered name that begins so, and "auto" where that is the default."""
    automatic = [parameter.default] if isinstance(parameter.default, str) else []
    return _beginning([*automatic, *shortlist.ALGORITHMS], begun)


def experiment_names(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Every experiment that begins so, in the store named before on the line or by the shell."""
    from shortlist.engine.locate import open_store

    path = context.params.get("store")
    if path is None:
        return []
    try:
        store = open_store(path, "ro")
    except (ShortlistError, OSError):
        return []
    try:
        return _beginning(store.names(), begun)
    except (ShortlistError, OSError):
        return []
    finally:
        store.close()


def _beginning(names: list[str], begun: str) -> list[str]:
    """Those that begin so, and that a shell may show."""
    return [name for name in names if name.startswith(begun) and name.isprintable()]


Command = Callable[..., Any]


def _pairs(
    context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, Any]:
    """("scale=2", "pooled=true") as {"scale": 2, "pooled": True}; what is not JSON is a word."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{pair!r} must be of the form name=value", context, parameter)
        try:
            options[name] = json.loads(value)
        except (ValueError, RecursionError):  # also a number of too many digits
            options[name] = value
    return options


def _rewards(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> "RewardsDeclared | None":
    """What --rewards declares: "binary", "normal", "0,1" or "sub-gaussian:2.5"."""
    from shortlist import SubGaussian

    if text is None:
        return None
    if text == "binary":
        return "binary"
    if text == "normal":
        return "normal"
    try:
        kind, colon, sigma = text.partition(":")
        if kind == "sub-gaussian" and colon:
            spread = float(sigma)
            return SubGaussian(spread)
        low, high = map(float, text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} must be LOW,HIGH or binary or normal or sub-gaussian:SIGMA",
            context,
            parameter,
        ) from None
    return (low, high)


def metric_values(
    context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, Any] | None:
    """("bounce=1%",) as {"bounce": "1%"}; None if there are none."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.rpartition("=")
        if not (name and equals):
            rule = f"must be of the form {parameter.metavar}"
            raise click.BadParameter(f"{pair!r} {rule}", context, parameter)
        try:
            values[name] = value if value.strip().endswith("%") else float(value)
        except ValueError:
            rule = "must end in a number, such as 0.01 or 1%"
            raise click.BadParameter(f"{pair!r} {rule}", context, parameter) from None
    return values or None


def _late(context: click.Context, parameter: click.Parameter, text: str) -> OnLate:
    """What --on-late says: "wait", "again" or a reward."""
    if text == "wait":
        return "wait"
    if text == "again":
        return "again"
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} must be wait, again or a reward", context, parameter
        ) from None


def _linear(context: click.Context, parameter: click.Parameter, text: str | None) -> bool | float:
    """What --linear declares: True alone, or a number."""
    if text is None or text == "yes":
        return text is not None
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} must be a number, or absent", context, parameter
        ) from None


class Points(click.types.FloatParamType):
    """A number that may be given in percent: 0.2% is 0.002."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number."""
        text = str(value).strip()
        plain: Any = text.removesuffix("%")
        number: Any = super().convert(plain, param, ctx)
        return Percent(number / 100) if text.endswith("%") else number


class Word(click.Choice[str]):
    """One of the words that a setting may be, refused in the words of the package."""

    def __init__(self, name: str, words: Sequence[str]) -> None:
        super().__init__(words)
        self.setting = name

    def convert(self, value: Any, *_: object) -> str:
        """The word itself."""
        if value in self.choices:
            return str(value)
        known = ", ".join(self.choices)
        raise UnknownName(f"`{self.setting}` is {value!r}, but must be one of {known}")


# What a command line adds to a setting; numbers, flags and words need nothing.
WRITTEN: dict[str, dict[str, Any]] = {
    "epsilon": {"type": Points()},
    "rewards": {"callback": _rewards, "metavar": "LOW,HIGH|binary|normal|sub-gaussian:SIGMA"},
    "items": {
        "type": FILE,
        "metavar": "FILE",
        "help": "Test set: one item per line, or a CSV with a column `item`.",
    },
    "scores": {
        "type": FILE,
        "metavar": "FILE",
        "help": "Scores that are known, a CSV or Parquet file. They are not evaluated again.",
    },
    "clusters": {
        "type": FILE,
        "metavar": "FILE",
        "help": "Cluster of every item, drawn whole: a CSV with columns item and cluster.",
    },
    "algorithm": {"metavar": "NAME", "shell_complete": algorithm_names},
    "options": {
        "multiple": True,
        "callback": _pairs,
        "metavar": "NAME=VALUE",
        "help": "Option of the algorithm; repeat for several. A wrong name lists them all.",
    },
    "quotas": {
        "type": FILE,
        "metavar": "FILE",
        "help": "Least and most chosen arms per group: a CSV with columns group, least and most.",
    },
    "features": {
        "metavar": "FILE|COLUMN,…",
        "help": "Features of the arms: a CSV with a column for each, or columns of ARMS.",
    },
    "linear": {
        "metavar": "[DISTANCE]",
        "is_flag": False,
        "flag_value": "yes",
        "type": str,
        "default": None,
        "callback": _linear,
        "show_default": False,
    },
    "control": {"metavar": "ARM"},
    "guardrails": {
        "multiple": True,
        "callback": metric_values,
        "metavar": "METRIC=MARGIN",
        "help": "How much higher than the control a metric may be, or if negative, how much lower;"
        " repeat for several.",
    },
    "lease": {"metavar": "SECONDS"},
    "on_late": {"callback": _late, "metavar": "wait|again|REWARD"},
}
NAMES = {  # not --name
    "k": ("-k",),
    "options": ("--option", "options"),
    "guardrails": ("--guardrail", "guardrails"),
    "drift": ("--drift/--no-drift",),
}


def setting_option(name: str, **more: Any) -> Callable[[Command], Command]:
    """The option of a setting, from its field in the spec."""
    field = FIELDS[name]
    about: dict[str, Any] = {"help": field.text}
    if field.kind is bool:
        about |= {"is_flag": True, "default": field.default}
    elif field.plain:
        about["type"] = Word(name, field.words) if field.words else field.kind
        if not field.required:
            about["default"] = field.default
    elif name not in ("options", "items", "scores", "clusters", "quotas", "guardrails"):
        about["default"] = field.default
    about |= {**WRITTEN.get(name, {}), **more}
    about.setdefault("show_default", about.get("default") is not None)
    return click.option(*NAMES.get(name, (f"--{name.replace('_', '-')}",)), **about)


def setting_options(*names: str) -> Callable[[Command], Command]:
    """The options of these settings; of all that make an experiment if none are named."""

    def added(command: Command) -> Command:
        every = [name for name in FIELDS_OF["create"] if name not in ("arms", "constraint")]
        for name in reversed(names or every):
            command = setting_option(name)(command)
        return command

    return added


store_option = click.option(
    "--store",
    required=True,
    envvar="SHORTLIST_STORE",
    type=click.Path(dir_okay=False),
    metavar="FILE|URL",
    help="Where it is kept: a file, postgresql://… or a service; or set SHORTLIST_STORE.",
)
made_store_option = click.option(
    "--store",
    required=True,
    envvar="SHORTLIST_STORE",
    type=click.Path(dir_okay=False),
    metavar="FILE|URL",
    help="A file, made if there is none, or postgresql://…; or set SHORTLIST_STORE.",
)


def store_options(command: Command) -> Command:
    """Add where an experiment is kept, and its name."""
    return store_option(name_option(command))


name_option = click.option(
    "--name", shell_complete=experiment_names, help="Its name, where the file holds several."
)

workers_option = click.option(
    "--workers",
    type=int,
    default=1,
    show_default=True,
    help="Number of processes. It does not change the figures.",
)
groups_option = click.option(
    "--groups",
    type=FILE,
    metavar="FILE",
    help="Group of every arm, in the order of the means: one a line, or a column `group`.",
)
plot_option = click.option(
    "--plot",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Save a picture too: .png, .svg or .pdf.",
)


def runs_option(default: int, text: str) -> Callable[[Command], Command]:
    """The number of simulated runs."""
    return click.option("--runs", type=int, default=default, show_default=True, help=text)


def algorithms_option(text: str, *, required: bool = False) -> Callable[[Command], Command]:
    """Names of several algorithms."""
    return click.option(
        "--algorithm",
        "algorithms",
        multiple=True,
        required=required,
        metavar="NAME",
        shell_complete=algorithm_names,
        help=text,
    )


def distribution_options(command: Command) -> Command:
    """Add what simulated rewards are drawn from."""
    sd = click.option(
        "--sd",
        type=float,
        help="Their standard deviation, unless bernoulli. beta: where the mean allows it. Default:"
        " gaussian 0.5, normal 1.",
    )
    rewards = click.option(
        "--rewards",
        type=click.Choice(["bernoulli", "beta", "gaussian", "normal"]),
        default="bernoulli",
        show_default=True,
        help="Distribution of the rewards around their mean. normal: nothing is declared.",
    )
    return rewards(sd(command))


INSTANCES = ("two-group", "uniform", "synthetic", "rte", "lower-bound", "levels", "matching")
FEATURED = ("linear", "sigmoid")  # instances with features


def instance_options(command: Command) -> Command:
    """Add --instance, -n, -p, -k and --means to a command."""
    for option in reversed(
        (
            click.option(
                "--instance",
                type=click.Choice([*INSTANCES, *FEATURED]),
                help="An instance of the paper's experiments; levels: 20 groups; matching: pairs;"
                " linear, sigmoid: arms with features.",
            ),
            click.option("-n", type=int, help="Number of arms; rte and --means bring their own."),
            setting_option("k", required=True),
            click.option(
                "-p", type=float, help="Shape of synthetic: above 1 pushes means to the boundary."
            ),
            click.option(
                "--means",
                "path",
                type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
                metavar="FILE",
                help="Means: one a line, or a CSV with `mean` and perhaps `cost`; - is stdin.",
            ),
        )
    ):
        command = option(command)
    return command


def means_of(
    instance: str | None, n: int | None, k: int, p: float | None, path: str | None
) -> "Means":
    """The means that these options name, and what pulls cost if a file says so."""
    if (instance is None) == (path is None):
        given = "neither" if instance is None else "both"
        raise InvalidInput(
            f"{given} of --instance and --means given, but exactly one of them names the arms"
        )
    if p is not None and instance != "synthetic":
        raise InvalidInput(f"`p` is {given_text(p)}, but only --instance synthetic takes it")
    if path is not None:
        return _with_n(read_means(path), n, path)
    if instance == "rte":
        return _with_n((shortlist.instances.rte(), None), n, instance)
    return _made(str(instance), n, k, p), None


def _made(instance: str, n: int | None, k: int, p: float | None) -> "FloatArray":
    if n is None:
        raise InvalidInput(f"`n` is not given, but --instance {instance} needs it")
    if instance == "synthetic":
        if p is None:
            raise InvalidInput("`p` is not given, but --instance synthetic needs it")
        return shortlist.instances.synthetic(p, n, k)
    if instance == "uniform":
        return shortlist.instances.uniform(n)
    if instance == "levels":
        return shortlist.instances.levels(n)[0]
    if instance == "matching":
        return shortlist.instances.matching(_side(n))[0]
    if instance == "lower-bound":
        return shortlist.instances.lower_bound(n)
    if instance in FEATURED:
        return featured(instance, n, USUAL_COEFFICIENTS, 0.0, 0).means
    return shortlist.instances.two_group(n, k)


USUAL_COEFFICIENTS = 10


def featured(
    instance: str, n: int | None, coefficients: int, residual: float, seed: int
) -> "WithFeatures":
    """Arms with features, drawn with this seed."""
    import numpy as np

    if n is None:
        raise InvalidInput(f"`n` is not given, but --instance {instance} needs it")
    rng = np.random.default_rng(seed)
    sigmoid = instance == "sigmoid"
    return shortlist.instances.linear(n, coefficients, rng, residual=residual, sigmoid=sigmoid)


def _side(n: int) -> int:
    """Rows of n pairs, which must be a square."""
    side = math.isqrt(max(n, 0))
    if side**2 != n:
        raise InvalidInput(f"`n` is {n}, but pairs of as many rows as columns are a square number")
    return side


def sets_of(instance: str | None, n: int | None, k: int) -> dict[str, Any]:
    """The groups of an instance, or the sets that may be chosen, if it has any."""
    if instance == "levels" and n is not None:
        return {"groups": shortlist.instances.levels(n)[1]}
    if instance == "matching" and n is not None:
        _, rows, columns = shortlist.instances.matching(_side(n))
        return {"constraint": shortlist.Matching(rows, columns, k=k)}
    return {}


def _with_n(means: "Means", n: int | None, source: str) -> "Means":
    if n is not None and n != means[0].size:
        raise InvalidInput(f"`n` is {n}, but {source} has {means[0].size} arms")
    return means


def read_means(path: str) -> "Means":
    """One mean a line, or a CSV with a column `mean`, and what pulls cost if it has a column
    `cost`."""
    import numpy as np

    table = read_columns(path, only="mean")
    if not table.rows:
        raise InvalidInput(f"{path} is empty, but must hold one mean a line")
    hint = "; decimals have a point, and names of columns stand in the first line"
    lines = list(table.lines("" if table.headed else hint))
    means = np.array([_finite(line, "mean") for line in lines])
    if "cost" not in table.names:
        return means, None
    return means, np.array([_finite(line, "cost") for line in lines])


def read_limits(path: str) -> list[int | None] | None:
    """The most pulls of every arm, if the file of means has a column `limit`; an empty cell is no
    limit."""
    table = read_columns(path, only="mean")
    if "limit" not in table.names:
        return None
    return [_limit(line) for line in table.lines()]


def _limit(line: FileLine) -> int | None:
    cell = line["limit"].strip()
    most = whole_number(cell)
    if cell and (most is None or most < 1):
        raise InvalidInput(
            f"{line.where} says {cell!r}, but a limit must be a whole number of at least 1"
        )
    return most


def _finite(line: FileLine, column: str) -> float:
    cell = line[column].strip()
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        rule = f"a {column} must be a finite number{number_hint(cell)}"
        raise InvalidInput(f"{line.where} says {cell!r}, but {rule}")
    return value


def is_service(store: str | None) -> bool:
    """Whether this is the address of a service."""
    from shortlist.engine.locate import SERVICES

    return store is not None and store.startswith(SERVICES)


def client(url: str, name: str | None = None) -> "Client":
    """A client of the service at this address, with the token of the environment."""
    return shortlist.Client(url, os.environ.get(TOKEN) or None, name)


def shown(store: str) -> str:
    """The address of a store, without its password."""
    from shortlist.stores.address import shown_place

    return shown_place(store)


def open_experiment(
    store: str, name: str | None, *, readonly: bool = False
) -> "Experiment | Client":
    """Open the experiment of this name."""
    if is_service(store):
        return client(store).open(name)
    return shortlist.Experiment.open(store, name, readonly=readonly)


def create_experiment(
    arms: "list[str] | list[Arm]", *, store: str | None, **settings: Any
) -> "Experiment | Client":
    """Create an experiment."""
    if store is not None and is_service(store):
        return client(store).create(arms, **settings)
    return shortlist.Experiment.create(arms, store=store, **settings)


def export_from(store: str, name: str | None) -> Any:
    """The lines of JSON of an experiment."""
    from shortlist.engine import export_lines

    if is_service(store):
        return client(store).open(name).export_lines()
    return export_lines(store, name)


def write_cells(store: str, name: str | None, path: str) -> int:
    """Write the evaluated cells of an experiment to a file; return their number."""
    with open_experiment(store, name, readonly=True) as experiment:
        cells = experiment.cells()
        cells.write(path)
        return len(cells)


def list_rows(store: str) -> list[dict[str, object]]:
    """One row per experiment."""
    if is_service(store):
        return list(client(store).experiments())
    from shortlist.engine.locate import open_store

    with closing(open_store(store, "ro")) as file:
        return [
            {
                "name": each.name,
                "state": each.state or "ready",
                "arms": each.arms,
                "k": each.k,
                "algorithm": each.algorithm,
                "pulls": each.told,
            }
            for each in file.listed()
            if not each.archived
        ]
