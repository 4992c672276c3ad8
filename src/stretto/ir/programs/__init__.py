"""Pipelined loops as nv_tileas text, and back: each construct is written and read in one module.

    Program ──► program { ... } ──► the same Program

program        the whole, what it says of itself, agents     persistent  the loop over work tiles
declarations   rings, pipes, mutexes, iterators                          around it
streams        prologue, kernel, epilogue
bundles        one operation and what is around it           outlets     what a loop leaves behind
issues         the operation itself                          scope       where something is written
operands       its operands in their new place               original    the loop that is replaced
"""

from stretto.ir.programs.original import Original, UnwritableError
from stretto.ir.programs.program import (
    read_program,
    read_programs,
    replace_loop,
    write_program,
)

__all__ = [
    "Original",
    "UnwritableError",
    "read_program",
    "read_programs",
    "replace_loop",
    "write_program",
]
