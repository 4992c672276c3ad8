"""Products that threads make in registers, there when the next instruction runs: one row each.

    mma_sync   mma_v2({0}, {1}, {2}{precision})    tensor cores, a warp at a time
    dot_fma    gl.dot_fma({0}, {1}, {2})           multiplications and additions of 32 bits

Products of warpgroups go on in their own time: they are instructions of a program. These are
computed like any other operation of tiles, but for the layouts of their factors.
"""

from __future__ import annotations

MMA_SYNC, DOT_FMA = "mma_sync", "dot_fma"

GLUON: dict[str, str] = {
    MMA_SYNC: "mma_v2({0}, {1}, {2}{precision})",
    DOT_FMA: "gl.dot_fma({0}, {1}, {2})",
}
"""Expressions, as in the rows of operations; {precision} says how factors of 32 bits are taken."""
