"""Programs as Gluon source: one function an agent, and a host side that launches them.

expressions  operations
atomics      atomic operations
spelling     expressions, slots and barriers
statements   instructions
tracing      functions that read clocks
source       the file
"""

from stretto.emission.gluon.source import Emitted, emit_gluon
from stretto.program.errors import EmitError

__all__ = ["EmitError", "Emitted", "emit_gluon"]
