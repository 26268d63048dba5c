"""What a client says to a service of tickets and test sets."""

from collections.abc import Sequence

from shortlist.arms import Arm, Label
from shortlist.experiment import Ticket
from shortlist.question import CellsGiven
from shortlist.reward_models import RewardModel
from shortlist.validation import whole
from shortlist.wire import Json


def test_set(given: CellsGiven | None, labels: Sequence[Label], rewards: RewardModel) -> Json:
    """What a service is told of a test set, if there is one."""
    if given is None:
        return {}
    cells = given.of(labels, rewards)
    record = cells.to_record()
    return {"items": record["labels"], "scores": record["scores"], "order": cells.order}


def held(ticket: Ticket | int) -> Json:
    """The same with when it is due: then it is that lease which is meant, and no later one."""
    more = {"expires": ticket.expires} if isinstance(ticket, Ticket) else {}
    return {**said(ticket), **more}


def said(ticket: Ticket | int) -> Json:
    """What a ticket says of itself; who names the arm learns if the ticket is of another one."""
    if isinstance(ticket, Ticket):
        item = {} if ticket.item is None else {"item": ticket.item}
        return {"ticket": ticket.id, "arm": ticket.arm, "experiment": ticket.experiment, **item}
    return {"ticket": whole("ticket", ticket, at_least=0)}


def described_arms(arms: Sequence[Arm], labels: Sequence[Label]) -> list[Json]:
    """Arms with what belongs to each."""
    kept = zip(labels, arms, strict=True)
    return [{"arm": label, "cost": arm.cost, "limit": arm.limit} for label, arm in kept]
