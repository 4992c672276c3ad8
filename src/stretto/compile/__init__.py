"""Kernels compiled: every way to pipeline one that is tried, and the choice between them.

kernel.ttir ──► split between consumers ──► lowered ──┬► scheduled ──► programs ──► Gluon ──► chosen
kernel.mlir ──────────────────────────────────────────┘

sources, given     kernels of files, and what is given: to be lowered, or lowered already
workers, rooms     the agents that a kernel has, and what it leaves to each of its loops
scheduled          a loop's schedule; `bisection`, `iteration_order` and `product_overlap`
                   find those that a generator does not
candidates         a kernel for each number of consumers and of stages
emitted, overlap   one of them, and what of it runs beside something else
kernel_programs    programs that were written as MLIR: they stand as they are
choice             which is taken, by what is predicted and by what the assembler says
"""
