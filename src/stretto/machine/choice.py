"""Which machine is meant where nobody names one, and why.

    the user names one                      as asked
    the loop names one                      named by the loop
    kernel.json beside it says cuda:90      the machine of that target
    a kernel, and nothing says              KERNELS
    a loop, and nothing says                LOOPS

Every command, every function and every report has both from here.
"""

from __future__ import annotations

from typing import NamedTuple

LOOPS = "blackwell"
"""The machine of a loop that names none."""
KERNELS = "h200"
"""The machine of a kernel whose target nobody tells, or nobody has a machine for."""
TARGETS = {"cuda:90": "h200", "cuda:100": "b200"}
"""Which machine a target of Triton's is."""
ASKED = "as asked"
NAMED = "named by the loop"
SCHEDULED = "named by its schedule"


class Choice(NamedTuple):
    """A machine, and why it is that one."""

    name: str
    """As `load_machine` takes it."""
    why: str


def chosen_for_loop(named: str | None) -> Choice:
    """The machine of a loop that may name one."""
    if named is not None:
        return Choice(named, NAMED)
    return Choice(LOOPS, "the default for loops that name none")


def chosen_for_kernel(target: str, file: str = "") -> Choice:
    """The machine of a kernel; `file` is the one that says what the kernel was compiled for."""
    says = f"{file} says" if file else "it is compiled for"
    if target in TARGETS:
        return Choice(TARGETS[target], f"{says} {target}")
    if target:
        return Choice(KERNELS, f"the default for kernels; {says} {target}, which no machine is for")
    return Choice(KERNELS, "the default for kernels; nothing beside it says a target")


def assumed(why: str) -> bool:
    """Whether a machine was chosen by us."""
    return why not in ("", ASKED, NAMED, SCHEDULED)
