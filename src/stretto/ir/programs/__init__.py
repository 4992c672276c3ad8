"""Pipelined loops as nv_tileas text, and back.

    Program ──► writing ──► program { ... } ──► reading ──► the same Program

names        what the text says in attributes
original     the loop that a program replaces
declaring    rings, pipes, mutexes, iterators        head         the way back
scope        where something is being written
operands     operands in their new place             tracing      the way back
bundles      one operation and what is around it     issues       the way back
sections     prologue, kernel, epilogue              streams      the way back
outlets      what a loop leaves behind
persistent   the loop over work tiles around it
"""

from stretto.ir.programs.original import UnwritableError
from stretto.ir.programs.reading import read_program, read_programs
from stretto.ir.programs.writing import replace_loop, write_program

__all__ = [
    "UnwritableError",
    "read_program",
    "read_programs",
    "replace_loop",
    "write_program",
]
