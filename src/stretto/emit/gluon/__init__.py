"""Programs as Gluon source: one function an agent, and a host side that launches them.

ordering     whether global memory is read and written in order
plan         rings, tiles, sums and descriptors that the kernel needs
rings        who fills shared memory, who reads it
sums         who adds to tensor memory, who reads it
turns        who waits for another agent's turn
atomics      atomic operations
layouts      which thread holds which element
scratch      registers that conversions take
exchange     shared memory that conversions take
expressions  operations as Gluon writes them
adding       one agent's part in sums
agent        one agent's part of the kernel
trips        how often a loop goes round
loops        prologue, kernel and epilogue of a loop
source       the file
"""

from stretto.emit.gluon.expressions import EmitError
from stretto.emit.gluon.plan import Looped, Worker
from stretto.emit.gluon.source import Emitted, SharedMemoryError, emit_gluon

__all__ = ["EmitError", "Emitted", "Looped", "SharedMemoryError", "Worker", "emit_gluon"]
