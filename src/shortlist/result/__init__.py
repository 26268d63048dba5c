"""Results: the chosen arms, the regret bound, the evidence, tables and plots."""

from shortlist.quotas import GroupResult
from shortlist.result.arm_results import ArmLift, ArmResult, Lift, MetricLift
from shortlist.result.result import Result

__all__ = ["ArmLift", "ArmResult", "GroupResult", "Lift", "MetricLift", "Result"]
