"""What is given to be emitted: a kernel of tiles, or one that is lowered already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING

from stretto.compile.emitted import EmitMode
from stretto.compile.kernel_programs import require_kernel
from stretto.compile.sources import is_kernel, kernels_of, machine_of
from stretto.errors import DocumentError, listed
from stretto.extraction.kernels import RunnableKernel, runnable_kernels
from stretto.frontends import is_mlir, read_input
from stretto.ir import read_schedules, runnable_text
from stretto.kernel import Kernel
from stretto.kernel.configuration import DEFAULT, Blocks, Configuration
from stretto.kernel.tree import kind_of
from stretto.machine import Machine, load_machine
from stretto.machine.choice import ASKED, NAMED, chosen_for_kernel
from stretto.ops.opcodes import opcode
from stretto.solution import counted

if TYPE_CHECKING:
    from stretto.ir.passes.published import PublishedLoop


def multiplies(kernel: Kernel) -> bool:
    """Whether a kernel of tiles has products, which warpgroups of their own compute."""
    return any(op.name == "tile.dot" for op in kernel.walk())


@dataclass(frozen=True)
class TileKernel:
    """A kernel of tiles, which is split and lowered as often as it is tried."""

    kernel: Kernel
    machine: Machine
    machine_why: str
    blocks: Blocks = DEFAULT.blocks
    copies: bool = True
    schedules: Mapping[str, PublishedLoop] = field(default_factory=dict[str, "PublishedLoop"])

    @property
    def name(self) -> str:
        """Of the kernel."""
        return self.kernel.name

    @property
    def has_products(self) -> bool:
        """Whether there are products, which warpgroups of their own compute."""
        return multiplies(self.kernel)

    def counts(self, mode: EmitMode, consumers: int | None) -> tuple[int, ...]:
        """Numbers of consumers that may be tried; DocumentError where what is asked for is not."""
        if mode == "unspecialized":
            return (1,)
        most = self.machine.agents_of_products().replicas
        return (consumers,) if consumers else tuple(range(1, most + 1))

    def ready(self, consumers: int) -> RunnableKernel:
        """The kernel lowered for so many consumers."""
        file, wanted = self.kernel.location.file, self._configuration(consumers)
        (ready,) = runnable_kernels(file, (self.kernel,), self.machine, wanted)
        return replace(ready, kernel=replace(ready.kernel, warps=self.kernel.warps))

    def _configuration(self, consumers: int) -> Configuration:
        return Configuration(consumers, self.blocks, self.copies)


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel that is lowered and split already, and the schedules that stand on its loops."""

    file: str
    kernel: RunnableKernel
    machine: Machine
    machine_why: str
    schedules: Mapping[str, PublishedLoop]

    @property
    def name(self) -> str:
        """Of the kernel."""
        return self.kernel.kernel.name

    @property
    def has_products(self) -> bool:
        """Whether there are products, which warpgroups of their own compute."""
        return any(opcode(kind_of(op)).accumulator for op in self.kernel.kernel.walk())

    def counts(self, mode: EmitMode, consumers: int | None) -> tuple[int, ...]:
        """Numbers of consumers that may be tried; DocumentError where what is asked for is not."""
        compute = self.machine.agents_of_products()
        named = {op.text("agent") for op in self.kernel.kernel.walk()}
        split = max(n + 1 for n in range(compute.replicas) if not n or compute.replica(n) in named)
        if consumers not in (None, split):
            hint = f"stretto import --consumers {consumers} splits it between {consumers}"
            told = f"has its rows in {counted(split, 'part')}, not in {consumers}"
            raise DocumentError(self.file, "", told, hint)
        return (1,) if mode == "unspecialized" else (split,)

    def ready(self, _: int) -> RunnableKernel:
        """The kernel, as it is."""
        return self.kernel


GivenKernel = TileKernel | LoweredKernel


def read_given(
    kernel: str | PathLike[str] | Kernel,
    machine: Machine | str | None,
    blocks: Blocks,
    *,
    copies: bool = True,
) -> GivenKernel:
    """The kernel at hand, or the one of a file, with the machine that it is for."""
    if isinstance(kernel, Kernel):
        target, why = machine_of(kernel.location.file, kernel, machine)
        return TileKernel(kernel, target, why, blocks, copies)
    file, text = read_input(fspath(kernel))
    if is_kernel(file, text):
        found = kernels_of(file, text)
        if len(found) != 1:
            raise _several(file, len(found))
        return TileKernel(found[0], *machine_of(file, found[0], machine), blocks, copies)
    if not is_mlir(text):
        hint = "expected a .ttir or a .tileirbc file, or a kernel that stretto import wrote"
        raise DocumentError(file, "", "is no kernel that can be emitted", hint)
    require_kernel(file, text)
    target = None if machine is None else load_machine(machine)
    return _read_lowered(file, text, target)


def _several(file: str, count: int) -> DocumentError:
    told = f"has {counted(count, 'kernel')}" if count else "has no kernel"
    return DocumentError(file, "", told, "give one at a time" if count else "")


def _read_lowered(file: str, text: str, machine: Machine | None) -> LoweredKernel:
    found = runnable_text(file, text, machine)
    if len(found) != 1:
        raise _several(file, len(found))
    (kernel,) = found
    own = {
        loop.machine.name: loop.machine
        for loop in kernel.loops
        if loop.wiring.loop.machine is not None
    }
    if machine is None and len(own) > 1:
        told = f"has loops for {listed(own)}"
        raise DocumentError(file, "", told, "say for which it is emitted with --machine")
    why = ASKED if machine is not None else NAMED
    target = machine or next(iter(own.values()), None)
    if target is None:
        name, why = chosen_for_kernel("")
        target = load_machine(name)
    schedules = {
        item.loop.name: item
        for item in read_schedules(file, text, target)
        if item.analysis is not None
    }
    return LoweredKernel(file, kernel, target, why, schedules)
