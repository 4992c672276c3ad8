"""What operations hold: classifier, footprints, block summary, builder, reservation table."""

from stretto.resources.builder import BlockRecord, Staged, apply, build
from stretto.resources.classify import Classified, Resolved, classify, resolve
from stretto.resources.conflict import Conflict, ConflictError
from stretto.resources.rows import decode_rows, encode_rows
from stretto.resources.summary import BlockSummary, summarize
from stretto.resources.table import ReservationTable

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
