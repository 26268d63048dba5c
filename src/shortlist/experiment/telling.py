"""What may be told: of which ticket, with which reward, and how often."""

from collections.abc import Iterable, Sequence

import numpy as np

from shortlist.arms import Label
from shortlist.errors import ConflictingReward, InvalidInput, InvalidReward, UnknownTicket
from shortlist.evaluation.numbering import Deal
from shortlist.experiment.ledger import FREE, Ledger
from shortlist.experiment.settings import Settings
from shortlist.experiment.ticket import Ticket
from shortlist.reward_models import RewardModel
from shortlist.validation import real, shown, whole

Row = tuple[int, int, float]


def checked(
    results: Sequence[tuple[Ticket | int, float]], settings: Settings, deal: Deal, ledger: Ledger
) -> Iterable[Row]:
    """Ticket, arm and reward of every result that is new; or an error, if one of them may not be
    told."""
    for each in results:
        if not (isinstance(each, tuple | list) and len(each) == 2):
            raise InvalidInput(f"{each!r} is told, but must be a pair of a ticket and its reward")
    numbers = [known_number(ticket, ledger) for ticket, _ in results]
    new: dict[int, Row] = {}
    for (ticket, value), number, arm in zip(
        results, numbers, arms_of(numbers, deal, ledger), strict=True
    ):
        label = settings.labels[arm]
        if isinstance(ticket, Ticket) and ticket.arm != label:
            raise UnknownTicket(
                f"ticket {number} is for arm {ticket.arm!r}, but here it is for {label!r}: not from"
                " here"
            )
        reward = admitted(value, number, label, settings.problem.rewards)
        known = ledger.reward(number)
        if known is None:
            _, _, first = new.setdefault(number, (number, arm, reward))
            if first != reward:
                raise ConflictingReward(
                    f"ticket {number} is told {first!r} and {reward!r} in the same call, but has"
                    " one; none was told"
                )
        elif known != reward:
            raise ConflictingReward(
                f"ticket {number} is told {reward!r}, but was told {known!r} before, which stays"
            )
    return new.values()


def known_number(ticket: Ticket | int, ledger: Ledger) -> int:
    """The number of a ticket that was handed out some time."""
    number = ticket.id if isinstance(ticket, Ticket) else whole("ticket", ticket, at_least=0)
    if number >= ledger.issued:
        last = f"the last one is {ledger.issued - 1}" if ledger.issued else "none was yet"
        raise UnknownTicket(f"ticket {number} was never handed out; {last}")
    return number


def lease_of(number: int, ledger: Ledger) -> float:
    """When the lease of a ticket ends; FREE if nobody holds it."""
    lease = ledger.leases.get(number)
    return FREE if lease is None else lease.expires


def arms_of(numbers: Sequence[int], deal: Deal, ledger: Ledger) -> list[int]:
    """The arm of every ticket: as it was told, or as it is in the present request."""
    tickets = np.asarray(numbers, dtype=np.int64)
    arms = ledger.arms[tickets]
    present = tickets >= deal.first
    arms[present] = deal.arms(tickets[present])
    return [int(arm) for arm in arms]


def admitted(reward: object, number: int, label: Label, model: RewardModel) -> float:
    """The reward as a float, if it is a number that keeps to the declaration."""
    value = real(reward)
    if not model.admits(value):
        raise InvalidReward(
            f"the reward of ticket {number} (arm {label!r}) is {shown(reward)}, but must be"
            f" {model.rule}"
        )
    return value
