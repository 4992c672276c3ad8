"""Lower bounds on the II with their witnesses, what would lower them, and longest paths."""

from stretto.bounds.closure import Closure, closure
from stretto.bounds.distances import earliest_starts, longest_from
from stretto.bounds.mii import compute_bounds
from stretto.bounds.recurrence import describe_cycle
from stretto.bounds.remedies import Remedy, remedies
from stretto.bounds.resource import FusionClass, fusion_class

__all__ = [
    "Closure",
    "FusionClass",
    "Remedy",
    "closure",
    "compute_bounds",
    "describe_cycle",
    "earliest_starts",
    "fusion_class",
    "longest_from",
    "remedies",
]
