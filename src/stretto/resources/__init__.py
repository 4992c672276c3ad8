"""What operations hold: classifier, footprints, block summary, builder, reservation table."""

from stretto.resources.blocks import BlockRecord, BlockSummary, Staged, apply, build, summarize
from stretto.resources.footprint import decode_rows, encode_rows
from stretto.resources.prepare import Classified, Resolved, classify, resolve
from stretto.resources.table import Conflict, ConflictError, ReservationTable

__all__ = [
    "BlockRecord",
    "BlockSummary",
    "Classified",
    "Conflict",
    "ConflictError",
    "ReservationTable",
    "Resolved",
    "Staged",
    "apply",
    "build",
    "classify",
    "decode_rows",
    "encode_rows",
    "resolve",
    "summarize",
]
