"""Kernels of files, and the machine that each is for.

kernel.ttir (kernel.json beside it) ──┬► Kernel, Machine and why
kernel.tileirbc ──────────────────────┘
"""

from __future__ import annotations

import os

from stretto.files import read_text
from stretto.frontends import is_ttir
from stretto.kernel import Kernel
from stretto.machine import Machine, load_machine
from stretto.machine.choice import ASKED, Choice, chosen_for_kernel


def is_kernel(file: str, text: str | bytes) -> bool:
    """Whether it is TTIR or bytecode; DocumentError where it is something near that is not read."""
    return isinstance(text, bytes) or is_ttir(file, text)


def kernels_of(file: str, text: str | bytes) -> tuple[Kernel, ...]:
    """The kernels of TTIR or of bytecode."""
    if isinstance(text, bytes):
        from stretto.frontends.cutile import read_cutile  # noqa: PLC0415 - likewise

        return read_cutile(file, text)
    from stretto.frontends.triton import read_ttir  # noqa: PLC0415 - only where there are kernels

    beside = _beside(file)
    options = read_text(beside) if os.path.isfile(beside) else None
    return read_ttir(file, text, options)


def _beside(file: str) -> str:
    """Where Triton writes what a kernel was compiled with; "": nowhere."""
    return file.removesuffix(".ttir") + ".json" if file.endswith(".ttir") else ""


def machine_of(
    file: str, kernel: Kernel, machine: Machine | str | None = None
) -> tuple[Machine, str]:
    """The machine that a kernel of a file is for, and why: as asked, or by its target."""
    if isinstance(machine, Machine):
        return machine, ASKED
    if machine is not None:
        return load_machine(machine), ASKED
    name, why = choice_of(file, kernel)
    return load_machine(name), why


def choice_of(file: str, kernel: Kernel) -> Choice:
    """The machine that a kernel of a file is for where nobody names one, and why."""
    return chosen_for_kernel(kernel.target, os.path.basename(_beside(file)))
