"""Programs of whole kernels that stand in a file: as they were written, or as a hand left them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stretto.compile.emitted import EmitMode, EmittedKernel
from stretto.emission import Emitted
from stretto.emission.gluon.source import source
from stretto.errors import DocumentError, StrettoError
from stretto.files import STANDARD
from stretto.frontends import holds_program, read_input
from stretto.kernel import Kernel
from stretto.limits import INSTRUCTIONS
from stretto.machine.choice import NAMED

if TYPE_CHECKING:
    from stretto.program import KernelProgram


def program_in(kernel: str | Kernel) -> KernelProgram | None:
    """The program that an MLIR file holds, found to be sound by clocks; None where it holds none.

    MlirError at its place where it cannot be read, FaultError where it may go wrong.
    """
    if isinstance(kernel, Kernel) or kernel == STANDARD:  # which can be read once
        return None
    file, text = read_input(kernel)
    if not holds_program(text):
        return None
    from stretto.ir.kernel_programs import read_kernel_program  # noqa: PLC0415 - where there is one
    from stretto.program.clocks import check_program  # noqa: PLC0415 - likewise

    program = read_kernel_program(file, text)
    check_program(program, INSTRUCTIONS)
    return program


def require_kernel(file: str, text: str) -> None:
    """That a module holds a kernel, not the program of one; DocumentError where it does."""
    if holds_program(text):
        hint = "stretto emit FILE prints it, stretto simulate FILE runs it"
        raise DocumentError(file, "", "holds the program of a kernel, which stands", hint)


def as_it_stands(program: KernelProgram) -> EmittedKernel:
    """A program that was written as MLIR, printed: nothing is left to decide."""
    mode: EmitMode = "unspecialized" if len(program.agents) == 1 else "specialized"
    computing = program.agents[0].name
    consumers = sum(one.name.partition(".")[0] == computing for one in program.agents)
    return EmittedKernel(
        Emitted(program, source(program)), (), consumers, mode, kernel=program.kernel,
        machine=program.machine, machine_why=NAMED,
    )  # fmt: skip


def require_no_options(program: KernelProgram, options: Iterable[object]) -> None:
    """That nothing is asked for which was decided already; StrettoError where something is."""
    if any(one is not None for one in options):
        told = f"`{program.kernel.name}` is a program already"
        raise StrettoError(f"{told}; it is printed as it stands, without options")
