"""Programs as source for other compilers: a view of what was decided, which decides nothing itself.

kernel, its loops' programs  ──►  Gluon source, with the host side that launches it
"""

from stretto.emission.gluon import EmitError, Emitted, emit_gluon

__all__ = ["EmitError", "Emitted", "emit_gluon"]
