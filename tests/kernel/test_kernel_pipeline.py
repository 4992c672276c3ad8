"""One lowering: every command has the same loops of one kernel, machine and configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from stretto.api.kernels import kernel_source
from stretto.compile.sources import kernels_of
from stretto.extraction.kernels import runnable_kernels
from stretto.frontends import read_input
from stretto.ir import runnable_text
from stretto.kernel import Kernel, KernelError
from stretto.kernel.configuration import Configuration
from stretto.kernel.pipeline import passes
from stretto.loop import Loop
from stretto.machine import load_machine

EXAMPLES = Path(__file__).parents[2] / "examples"
SHIPPED = sorted([*EXAMPLES.glob("triton/*.ttir"), *EXAMPLES.glob("cutile/*.tileirbc")])
MACHINES = ("h200", "b200", "b200-pipes", "blackwell")


def _kernel(file: Path) -> Kernel:
    (kernel,) = kernels_of(*read_input(str(file)))
    return kernel


def _ops(loops: tuple[Loop, ...]) -> dict[str, list[str]]:
    return {loop.name: [f"{op.name} {op.kind} {op.agent}" for op in loop.ops] for loop in loops}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_schedules_emission_and_mlir_have_the_same_loops(file: Path, machine: str) -> None:
    kernel, target = _kernel(file), load_machine(machine)
    most = target.agents_of_products().replicas if target.agents else 1
    for consumers in range(1, most + 1):
        wanted = Configuration(consumers)
        try:
            (ready,) = runnable_kernels(str(file), (kernel,), target, wanted)
        except KernelError:
            assert consumers > 1, "one consumer does for every kernel"
            continue
        emitted = _ops(tuple(loop.wiring.loop for loop in ready.loops))
        scheduled = _ops(kernel_source(str(file), (kernel,), target, wanted).loops)
        text, _ = stretto.import_kernel(file, machine, consumers=consumers)
        (again,) = runnable_text("again.mlir", text, target)
        assert emitted.items() <= scheduled.items()
        assert _ops(tuple(loop.wiring.loop for loop in again.loops)) == emitted


def test_the_list_of_passes_is_that_of_the_machine_and_the_configuration() -> None:
    bare, staffed = load_machine("blackwell"), load_machine("h200")
    shortest = len(list(passes(bare, Configuration())))
    assert len(list(passes(staffed, Configuration()))) == shortest + 8
    assert len(list(passes(staffed, Configuration(2)))) == shortest + 10
