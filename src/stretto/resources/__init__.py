"""What operations hold: classifier, footprints, block summary, builder, reservation table."""

from stretto.resources.footprint import BlockSummary, decode_rows, encode_rows, summarize
from stretto.resources.prepare import Classified, Resolved, classify, resolve
from stretto.resources.table import Conflict, ConflictError, ReservationTable

__all__ = [
    "BlockSummary",
    "Classified",
    "Conflict",
    "ConflictError",
    "ReservationTable",
    "Resolved",
    "classify",
    "decode_rows",
    "encode_rows",
    "resolve",
    "summarize",
]
