"""How much is too much: every limit that keeps time and memory bounded, and nothing else.

    a file of 3 GB, a hold of 10^9 cycles   ──►   an error that names the limit, at once

Each is far above what a kernel has and far below what a computer can bear. They are listed in
`docs/formats.md`, in the section "Limits".
"""

from __future__ import annotations

FILE_BYTES = 16 * 1024 * 1024
"""A loop, a module, a schedule, a reproducer."""
MODULE_CHARACTERS = 4 * 1024 * 1024
"""A module or a chunk of one: each operation takes many times the room of its text."""
MACHINE_BYTES = 1024 * 1024
"""A machine file; those that ship take some 30,000."""
STORE_BYTES = 2 * 1024 * 1024 * 1024
"""The store of answers: more than a million small loops."""
ANSWER_BYTES = 4 * 1024 * 1024
"""One answer in the store, packed; unpacked it is a document as others are."""

NUMBER_DIGITS = 1000
"""Digits of a number; up to here, whatever is computed from it can be printed."""
TEXT_CHARACTERS = 10_000
"""A name, a type or a remark in a document."""
FORMULA_CHARACTERS = 200
"""Formulas are one-liners; a longer one is a mistake."""
FORMULA_DIGITS = 4000
"""Digits of what a formula comes to on the way; Python prints numbers of up to 4,300."""

WHOLE = 1 << 53
"""Any whole number that a function is given, on either side of 0."""
CYCLES = 10_000_000
"""A latency, a duration, an offset: some 5 ms of a GPU."""
ITERATION_CYCLES = 1 << 25
"""One iteration, its operations one after the other: no II that is worth a look is above it."""
UNITS = 1_000_000_000
"""An occupancy of a slot, units drawn from a pool."""
DISTANCE = 10_000
"""Iterations that a dependence, an operand or a read reaches back."""
STAGES = 1_000
"""Stages that one member of a group stands behind another."""

USES_SEARCHED = 256
"""Uses of one operation; a loop with more in one goes to the serial generator."""
INSTRUCTIONS = 200_000
"""Operations × stages of a program, operations × iterations of a run: all of them are kept."""
DENSE_ELEMENTS = 1 << 22
"""Elements of all dense constants of a module together: a splat is expanded."""

BLOCKS_NESTED = 64
"""Loops and branches of bytecode in each other."""
ATTRIBUTES_NESTED = 16
"""Arrays and dictionaries of bytecode in each other."""
DEBUG_NESTED = 256
"""Debug records of bytecode that lead from one to the next."""
FRAMES_KEPT = 64
"""Calls that a place in the user's source goes through; of more, the innermost are kept."""
KERNEL_OPERATIONS = 50_000
"""What a kernel of bytecode may become: what follows a branch may have to be written twice."""

BLOCKS_WALKED = 1 << 17
"""Blocks of a prediction whose loops go round differently often: each of them is looked at."""
SLOWEST, FASTEST = 1, 100_000
"""MHz that a prediction is made for."""

FAULTS_TOLD = 20
"""Faults of one loop that are told; the others are counted."""
NAMES_TOLD = 12
"""Names that one message lists; the others are counted."""

PATTERN_TEXT = 4_096
"""Characters of a text that a pattern is held against."""
