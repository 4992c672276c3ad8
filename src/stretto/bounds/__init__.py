"""Lower bounds on the II with their witnesses, what would lower them, and longest paths."""

from stretto.bounds.closure import Closure, closure
from stretto.bounds.distances import earliest_starts, longest_from
from stretto.bounds.mii import bounds_of, compute_bounds
from stretto.bounds.recurrence import describe_cycle
from stretto.bounds.remedies import Remedy, remedies

__all__ = [
    "Closure",
    "Remedy",
    "bounds_of",
    "closure",
    "compute_bounds",
    "describe_cycle",
    "earliest_starts",
    "longest_from",
    "remedies",
]
