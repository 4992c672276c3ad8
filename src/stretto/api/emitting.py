"""`stretto.emit`: a kernel as Gluon source, pipelined by its schedules.

stretto.emit("matmul.ttir", "h200")  ──►  .source, .analyses, .consumers, .notes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from stretto.api import deadline_of
from stretto.api.kernels import kernel_given
from stretto.api.solving import result_of
from stretto.compile.candidates import Emitter
from stretto.compile.choice import Assemble, chosen
from stretto.compile.emitted import EmitMode, EmittedKernel
from stretto.compile.kernel_programs import as_it_stands, program_in, require_no_options
from stretto.deadline import Deadline, cut_off
from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.kernel.configuration import Blocks
from stretto.kinds import checked
from stretto.machine import Machine
from stretto.program.traces import Tracing

if TYPE_CHECKING:
    from stretto.prediction.numbers import Number


@checked
def emit(
    kernel: str | PathLike[str] | Kernel,
    machine: Machine | str | None = None,
    *,
    mode: EmitMode | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    blocks: Blocks | None = None,
    agents: Mapping[str, str] | None = None,
    seed: int = 0,
    assemble: Assemble | None = None,
    tracing: Tracing | None = None,
    time_limit: float | Deadline | None = None,
    grid: Sequence[int] | None = None,
    arguments: Mapping[str, Number | tuple[int, ...]] | None = None,
) -> EmittedKernel:
    """A Triton or cuTile kernel as Gluon source, pipelined by its schedules.

    A kernel that `stretto import` has lowered to MLIR is taken as it is: its machine, its agents,
    and the schedules that stand on its loops, if they are legal. A program that was written as MLIR
    (`to_mlir`) is checked by clocks, and printed as it stands.

    `consumers` is how many warpgroups compute, each on its part of the rows; left out, as many
    as the machine has and the kernel can be split between, whichever gives the smaller II.
    A kernel without products runs in one warpgroup that does everything, as does one for
    which `mode` is ``unspecialized``. Rings have at most `depth` slots; left out, as many as shared
    memory has room for.
    `blocks` are those that a launch has (``given``, as it is left out), the same in an order in
    which those that have most to do come first (``longest``), or one for each SM, which goes over
    several tiles (``persistent``). More consumers than are tried are had by asking, as many as the
    machine has registers for: each then overlaps its products.
    `agents` says of operations of loops, by name, which agent issues them: ``{"k": "compute"}`` has
    the warpgroup that computes issue a copy; the others stand where the machine says.

    Schedules of several stage counts are tried. Taken is the smallest II whose registers do not
    spill by our count. Where threads load and nothing is multiplied, the II tells little: taken is
    what is predicted to be fastest, with loops that go round eight times where nobody tells.
    `assemble` compiles a kernel (`stretto.launching.compiling.compile_emitted`, which needs Triton
    and no GPU): then taken is the first that fits shared memory and runs as it was scheduled, by
    the compiler's own figures, else of those that fit the one that spills the fewest bytes.
    EmitError where none fits.
    With `grid`, and the `arguments` that trip counts follow from (as for `predict`), the kernel is
    the one for such a launch: several blocks may share an SM, each with fewer registers and shorter
    rings, or without agents, where that is predicted to be faster.
    With `tracing`, the kernel takes one argument more, `trace`, to which it writes clocks.
    After `time_limit` seconds no more is tried: the answer is the best so far, `stopped`; at
    least, loops one iteration after the other.
    """
    if arguments and grid is None:
        raise StrettoError("arguments are those of a launch: give its grid, too")
    given = kernel_given(kernel)
    program = program_in(given)
    if program is not None:
        require_no_options(program, (mode, consumers, depth, blocks, tracing, agents or None))
        return as_it_stands(program)
    deadline = deadline_of(time_limit)
    with cut_off(deadline):
        emitter = Emitter(
            given, machine, mode=mode, blocks=blocks, seed=seed, tracing=tracing,
            deadline=deadline,
        )  # fmt: skip
    made = emitter.candidates(consumers, depth, agents, every=False)
    best = chosen(made, emitter.machine, assemble, emitter.otherwise)
    asked = (mode, consumers, depth, agents, tracing, blocks)
    if grid is not None and emitter.kernel is not None and not any(asked):
        from stretto.compile.occupancy import (  # noqa: PLC0415 - few ask, and it predicts
            Launch,
            candidates,
            settled,
        )

        launch = Launch(tuple(grid), arguments or {})
        others = candidates(emitter.kernel, emitter.machine, launch, seed=seed, deadline=deadline)
        best = settled(best, others, emitter.machine, launch, assemble)
    elif grid is not None:
        told = "the grid decides nothing where options say how a kernel is divided"
        best = replace(best, notes=(*best.notes, told))
    told = emitter.told(best)
    return replace(told, analyses=tuple(map(result_of, told.analyses)))
