"""The column of a file that names the arms."""

from collections.abc import Sequence

from shortlist.errors import InvalidInput

COLUMN = "arm"  # what the column of labels is called in every file
# what it is called elsewhere: as a first line hardly ever the label of an arm
ELSEWHERE = frozenset(
    [
        "alternative",
        "alternatives",
        "arms",
        "candidate",
        "candidates",
        "choice",
        "choices",
        "id",
        "ids",
        "item",
        "items",
        "key",
        "keys",
        "label",
        "labels",
        "name",
        "names",
        "option",
        "options",
        "title",
        "titles",
        "treatment",
        "treatments",
        "variant",
        "variants",
    ]
)


def check_called_arm(path: str, first: int, cells: Sequence[str]) -> None:
    """Refuse a first line that calls the column of labels something else."""
    word = next((cell.strip() for cell in cells if cell.strip().lower() in ELSEWHERE), None)
    if word is not None:
        raise InvalidInput(
            f"{path}, line {first} says {word!r}, as if that were the name of a column, but the"
            f" column of labels must be called `{COLUMN}` (if an arm is called so, write a first"
            f" line `{COLUMN}` above it)"
        )
