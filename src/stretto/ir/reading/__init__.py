"""From the loops of a module to `Loop` values.

values      where a value comes from: views, bodies, buffers
flow        what is read, and from which iteration
accesses    what is read and written, and the storages that makes
fences      barriers as dependences
bodies      what is inside pipeline operations, and their tokens
body        one scf.for
inner       what an inner loop costs
module      all of them
"""

from stretto.ir.reading.module import (
    LeftAlone,
    LoopInModule,
    LoopsOfModule,
    positioned,
    read_loops,
)

__all__ = ["LeftAlone", "LoopInModule", "LoopsOfModule", "positioned", "read_loops"]
