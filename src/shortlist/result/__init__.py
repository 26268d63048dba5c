"""What `select` returns: the choice, what it may cost, what it rests on, and how it is shown."""

from shortlist.result.arm_result import ArmResult
from shortlist.result.lift import ArmLift, Lift
from shortlist.result.result import Result

__all__ = ["ArmLift", "ArmResult", "Lift", "Result"]
