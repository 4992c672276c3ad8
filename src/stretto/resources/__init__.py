"""What operations hold: classifier, footprints, block summary, builder, reservation table."""

from stretto.resources.footprint import BlockSummary, encode_rows, summarize
from stretto.resources.prepare import classify, resolve
from stretto.resources.table import Conflict, ConflictError, ReservationTable

__all__ = [
    "BlockSummary",
    "Conflict",
    "ConflictError",
    "ReservationTable",
    "classify",
    "encode_rows",
    "resolve",
    "summarize",
]
