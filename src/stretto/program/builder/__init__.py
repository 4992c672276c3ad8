"""Whole kernels as programs: made of a lowered kernel and the schedules of its loops.

ordering     whether global memory is read and written in order
plan         rings, tiles, sums and descriptors that the kernel needs
rings        who fills shared memory, who reads it
sums         who adds to tensor memory, who reads it
turns        who waits for another agent's turn
layouts      which thread holds which element
scratch      registers that conversions take
exchange     shared memory that conversions take
operands     values as one agent has them
bodies       instructions of one agent, one after the other
values       numbers and tiles of one agent, where they are asked for first
sum_agent    one agent's part in sums
operations   one agent's copies, stores and products where no schedule says when
agent        one agent's part of the kernel
steps        where one agent's steps begin
trips        how often a loop goes round
loop_view    what one agent has of a loop that runs by a schedule
loop_operations   what its operations do in a step
loop_steps   a step: operations between waits and releases
loops        prologue, kernel and epilogue of a loop
tracer       where an agent reads clocks
host         what the host hands over
program      the whole
"""

from stretto.program.builder.plan import Looped, Worker
from stretto.program.builder.program import SharedMemoryError, build_program

__all__ = ["Looped", "SharedMemoryError", "Worker", "build_program"]
