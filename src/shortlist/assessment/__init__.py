"""What past results prove: `assess`."""

from shortlist.assessment.assessment import Assessment

__all__ = ["Assessment"]
