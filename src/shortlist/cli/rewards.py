"""The file of tickets and rewards that `shortlist tell` takes."""

from shortlist.cli.numbers import whole_number
from shortlist.errors import InvalidInput
from shortlist.reading.columns import Line, read_columns


def read_rewards(path: str) -> list[tuple[int, float, float | None]]:
    """Tickets and rewards from a CSV with columns of these names, and perhaps a column `cost`."""
    table = read_columns(path)
    missing = [f"`{name}`" for name in ("ticket", "reward") if name not in table.names]
    if table.header and missing:
        raise InvalidInput(
            f"{path}, line {table.first} has no column {' and no '.join(missing)}, but must be"
            " ticket,reward"
        )
    results = [_result(line) for line in table.lines(pad=True)]
    if not results:
        raise InvalidInput(f"{path} holds no rewards, but must hold a ticket and its reward a line")
    return results


def _result(line: Line) -> tuple[int, float, float | None]:
    from shortlist.evaluation.command import decimal

    reward, ticket = line["reward"], whole_number(line["ticket"])
    if ticket is None:
        raise InvalidInput(f"{line.where}: ticket {line['ticket']!r} must be a whole number")
    cost = line.cells.get("cost", "").strip()
    for name, cell in (("reward", reward), ("cost", cost or "0")):
        try:
            decimal(cell)
        except ValueError:
            raise InvalidInput(f"{line.where}: {name} {cell!r} must be a number") from None
    return ticket, decimal(reward), decimal(cost) if cost else None
