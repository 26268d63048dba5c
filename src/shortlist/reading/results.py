"""Result files of evaluation harnesses as scores: an arm per model, an item per sample.

| harness | files |
|---|---|
| inspect_ai | logs: .eval, or .json |
| lm-evaluation-harness | samples_TASK_*.jsonl, in a folder per model |
| Every Eval Ever | *_samples.jsonl |
| promptfoo | results as .json or .jsonl |
| deepeval | test runs as .json |

A name may end in # and a metric, for files with several. Formats are told apart by content."""

import json
import math
import os
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shortlist.errors import InvalidInput
from shortlist.reading.files import open_text
from shortlist.validation import encodable, shown

ENDINGS = (".eval", ".jsonl", ".json")
LARGEST = 2**31  # bytes of a JSON document that are read
# values of inspect_ai: correct, partly, incorrect, no answer; and words
LETTERS = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
KNOWN = "a log of inspect_ai, samples of lm-eval or Every Eval Ever, or of promptfoo or deepeval"
ERROR = 2  # the `failureReason` of promptfoo for a call that failed

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SampleScore:
    """The scores of an arm on one sample of a task, by metric; there are none if it failed."""

    where: str
    arm: str
    task: str
    item: str
    scores: Mapping[str, Any]
    repetition: int | None = None  # from 0; None: by the order of lines


def is_results(path: str) -> bool:
    """Whether a name is that of results of a harness, or of a folder of them."""
    name = path.partition("#")[0]
    return name.lower().endswith(ENDINGS) or os.path.isdir(name)


def result_rows(paths: Sequence[str]) -> list[tuple[str, str, str, float | None, int]]:
    """The cells in files of one or more arms: place, arm, item, score and repetition."""
    files = [each for path in paths for each in _files(path)]
    samples = _apart([list(_chosen(path, metric)) for path, metric in files])
    several = len({each.task for each in samples}) > 1
    lines: Counter[tuple[str, str]] = Counter()  # so far, of an arm and an item
    rows = []
    for each in samples:
        item = f"{each.task}: {each.item}" if several else each.item
        turn = lines[each.arm, item] if each.repetition is None else each.repetition
        lines[each.arm, item] += 1
        score = next(iter(each.scores.values()), None)
        rows.append((each.where, each.arm, item, _value(score, each.where), turn))
    return rows


def _files(path: str) -> list[tuple[str, str]]:
    """A file, or those of a folder, each with the metric to read."""
    name, _, metric = path.partition("#")
    if not encodable(name) or "\0" in name or not os.path.exists(name):
        raise InvalidInput(f"`scores` is {shown(path)}, but there is no such file")
    if not os.path.isdir(name):
        return [(name, metric)]
    inside = [each for each in sorted(Path(name).rglob("*")) if each.suffix.lower() in ENDINGS]
    # summaries are next to samples, as .json: they have no samples
    best = [each for each in inside if each.suffix.lower() != ".json"] or inside
    if not best:
        raise InvalidInput(
            f"`scores` is {shown(path)}, but there is no such file: the folder has none that ends"
            f" in {', '.join(ENDINGS)}"
        )
    return [(str(each), metric) for each in best]


def _chosen(path: str, metric: str) -> Iterator[SampleScore]:
    """The samples of a file, each with the score of the metric only."""
    samples = list(_samples(path))
    names = list(dict.fromkeys(name for each in samples for name in each.scores))
    if not metric and len(names) > 1:
        raise InvalidInput(
            f"{path} has the metrics {', '.join(names)}, but one must be chosen:"
            f" {shown(f'{path}#{names[0]}')}"
        )
    if metric and metric not in names:
        raise InvalidInput(f"{path} has no metric {metric!r}, but has {', '.join(names) or 'none'}")
    wanted = metric or next(iter(names), "")
    for each in samples:
        yield replace(each, scores={wanted: each.scores[wanted]} if wanted in each.scores else {})


def _apart(files: Sequence[list[SampleScore]]) -> list[SampleScore]:
    """All samples; files that score an arm on the same cells are arms of their own."""
    cells: dict[tuple[str, str, str, int | None], int] = {}
    twice = set()
    for number, file in enumerate(files):
        for each in file:
            cell = each.arm, each.task, each.item, each.repetition
            if cells.setdefault(cell, number) != number:
                twice.add(each.arm)
    return [
        replace(each, arm=f"{each.arm} ({Path(each.where.split(',')[0]).stem})")
        if each.arm in twice
        else each
        for file in files
        for each in file
    ]


def _value(value: object, where: str) -> float | None:
    """A score as a number; None if there is none."""
    if isinstance(value, str):
        value = (LETTERS | WORDS).get(value.strip().lower(), value)
    if value is None:
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidInput(f"{where} says {shown(value)}, but a score must be a number") from None
    return None if math.isnan(number) else number  # NaN is how inspect_ai says: not scored


def _samples(path: str) -> Iterator[SampleScore]:
    """The samples of a file, by its content."""
    ending = Path(path).suffix.lower()
    if ending == ".eval":
        return _inspect(path, *_of_zip(path))
    if ending == ".jsonl":
        return _of_lines(path)
    return _of_document(path, _json(path, _text(path)))


def _of_document(path: str, document: Any) -> Iterator[SampleScore]:
    if isinstance(document, Mapping):
        if isinstance(document.get("eval"), Mapping):
            return _inspect(path, document["eval"], document.get("samples") or [])
        if isinstance(cases := document.get("testCases"), list):
            return _deepeval(path, document, cases)
        results = document.get("results")
        results = results.get("results") if isinstance(results, Mapping) else results
        if isinstance(results, list):
            return _promptfoo(_numbered(path, results, "result"))
    raise InvalidInput(f"{path} has other content than expected, but must have {KNOWN}")


def _of_lines(path: str) -> Iterator[SampleScore]:
    with open_text(path) as lines:
        records = [
            (f"{path}, line {number}", _json(f"{path}, line {number}", line))
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]
    first = records[0][1] if records else None
    for key, reader in READERS.items():
        if isinstance(first, Mapping) and key in first:
            return reader(records)
    raise InvalidInput(f"{path} has other content than expected, but must have {KNOWN}")


def _json(where: str, text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} cannot be read as JSON: {error}") from error


def _text(path: str) -> bytes:
    size = os.path.getsize(path)
    if size > LARGEST:
        raise InvalidInput(f"{path} has {size:,} bytes, but must have at most {LARGEST:,}")
    return Path(path).read_bytes()


def _numbered(path: str, records: Iterable[Any], kind: str) -> list[tuple[str, Any]]:
    return [(f"{path}, {kind} {number}", each) for number, each in enumerate(records, 1)]


def _field(where: str, record: Any, *keys: str) -> Any:
    """A value within nested mappings; one that is missing is refused."""
    value = record
    for key in keys:
        if not isinstance(value, Mapping) or value.get(key) is None:
            raise InvalidInput(f"{where} has no {shown('.'.join(keys))}, but must have it")
        value = value[key]
    return value


# inspect_ai


def _of_zip(path: str) -> tuple[Any, Any]:
    """The header and the samples of a log in a zip; newer ones are compressed by zstandard."""
    if find_spec("zipfile_zstd"):  # installed with inspect_ai; teaches `zipfile` to read them
        __import__("zipfile_zstd")
    try:
        with zipfile.ZipFile(path) as file:
            if sum(each.file_size for each in file.infolist()) > LARGEST:
                raise InvalidInput(f"{path} has more than {LARGEST:,} bytes, but that is the limit")
            names = set(file.namelist())
            header = "header.json" if "header.json" in names else "_journal/start.json"
            samples = [
                _json(f"{path}, {name}", file.read(name))
                for name in sorted(names)
                if name.startswith("samples/")
            ]
            return _field(path, _json(f"{path}, {header}", file.read(header)), "eval"), samples
    except NotImplementedError:
        raise InvalidInput(
            f"{path} is compressed by zstandard, which needs: pip install 'shortlist[inspect]'"
        ) from None
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{path} cannot be read as a log of inspect_ai: {error}") from error


def _inspect(path: str, header: Any, samples: Iterable[Any]) -> Iterator[SampleScore]:
    noted = header.get("metadata") or {}
    arm = noted.get("shortlist_arm") or _field(path, header, "model")
    task = _field(path, header, "task")
    for where, each in _numbered(path, samples, "sample"):
        scores: dict[str, Any] = {}
        for name, score in (each.get("scores") or {}).items():
            value = _field(where, score, "value")
            if isinstance(value, Mapping):
                scores |= {f"{name}/{part}": own for part, own in value.items()}
            else:
                scores[name] = value
        item = str(_field(where, each, "id"))
        yield SampleScore(where, str(arm), str(task), item, scores, int(each.get("epoch", 1)) - 1)


# lm-evaluation-harness


def _lm_eval(lines: Sequence[tuple[str, Any]]) -> Iterator[SampleScore]:
    """Samples of a task; the folder has the name of the model.

    A document has a line for every filter of its answers."""
    path = Path(lines[0][0].rpartition(", line")[0])
    arm = path.absolute().parent.name.replace("__", "/")
    task = path.stem.removeprefix("samples_").partition("_20")[0]  # a date follows
    filters = {each.get("filter") for _, each in lines}
    scores: dict[str, dict[str, Any]] = defaultdict(dict)
    places: dict[str, str] = {}
    for where, each in lines:
        item = str(_field(where, each, "doc_id"))
        places.setdefault(item, where)
        for name in _field(where, each, "metrics"):
            own = f"{name},{each['filter']}" if len(filters) > 1 else name
            scores[item][own] = each.get(name)
    for item, own in scores.items():
        yield SampleScore(places[item], arm, task, item, own)


# Every Eval Ever


def _every_eval(lines: Sequence[tuple[str, Any]]) -> Iterator[SampleScore]:
    """Records of samples: one per metric of a sample, by the id of the result it belongs to."""
    for where, each in lines:
        names = ("model_id", "evaluation_name", "sample_id")
        arm, task, item = (str(_field(where, each, name)) for name in names)
        metric = str(each.get("evaluation_result_id") or "score")
        scores = {} if each.get("error") else {metric: _field(where, each, "evaluation", "score")}
        yield SampleScore(where, arm, task, item, scores)


# promptfoo


def _promptfoo(rows: Sequence[tuple[str, Any]]) -> Iterator[SampleScore]:
    """Results of tests: an arm is a provider, and its prompt if there are several.

    A call that failed has no score; an answer that failed its test has one."""
    prompts = {each.get("promptIdx", 0) for _, each in rows if isinstance(each, Mapping)}
    for where, each in rows:
        provider = _field(where, each, "provider")
        named = provider if isinstance(provider, Mapping) else {"id": provider}
        arm = str(named.get("label") or _field(where, named, "id"))
        if len(prompts) > 1:
            arm += f" | {_prompt(each)}"
        failed = each.get("failureReason") == ERROR
        scores = {} if failed else {"score": _field(where, each, "score")}
        yield SampleScore(where, arm, "", str(_field(where, each, "testIdx")), scores)


def _prompt(row: Record) -> str:
    prompt = row.get("prompt")
    label = prompt.get("label") if isinstance(prompt, Mapping) else None
    return str(label or f"prompt {row.get('promptIdx', 0)}")


# deepeval


def _deepeval(path: str, run: Record, cases: Sequence[Any]) -> Iterator[SampleScore]:
    """A test run: the arm is its identifier, else the model of its hyperparameters or its file."""
    model = (run.get("hyperparameters") or {}).get("model")
    arm = str(run.get("identifier") or model or Path(path).stem)
    for where, each in _numbered(path, cases, "test case"):
        metrics = each.get("metricsData") or []
        scores = {str(_field(where, own, "name")): own.get("score") for own in metrics}
        yield SampleScore(where, arm, "", str(_field(where, each, "name")), scores)


READERS: dict[str, Callable[[Sequence[tuple[str, Any]]], Iterator[SampleScore]]] = {
    "doc_id": _lm_eval,
    "evaluation_name": _every_eval,
    "testIdx": _promptfoo,
}
