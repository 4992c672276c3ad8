"""The whole file: agents, the kernel that starts them, and the host side that launches it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from stretto.emission.gluon.expressions import DTYPES, modules_of
from stretto.emission.gluon.spelling import combining, spelled
from stretto.emission.gluon.statements import write
from stretto.emission.gluon.text import Lines
from stretto.emission.gluon.tracing import FUNCTIONS, read_back
from stretto.kernel import Kernel
from stretto.kernel.types import Pointer, Scalar
from stretto.machine import Machine
from stretto.program import KernelProgram
from stretto.program.builder import Looped, Worker, build_program
from stretto.program.descriptors import UNDESCRIBED
from stretto.program.expressions import Combined, Computed, Expression, Held, RowScaled
from stretto.program.instructions import Advance, Instruction, ThreadCopy
from stretto.program.kernel_program import (
    AgentProgram,
    Barriers,
    Descriptor,
    SharedMemory,
    TensorMemory,
    WorkTiles,
)
from stretto.program.traces import Mark, Tracing
from stretto.program.walk import expressions_in, walk

_HEAD = '''"""{title}"""

{before}from triton.experimental import gluon
from triton.experimental.gluon import language as gl
{beside}from triton.experimental.gluon.language.nvidia.{products}
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
{behind}
# Two names that newer versions of Triton spell differently.
tma_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
tma_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global
'''

_TRITON = "from triton import language as tl\n"
_AMPERE = "from triton.experimental.gluon.language.nvidia.ampere import {}\n"
_LIBDEVICE = "from triton.language.extra import libdevice\n"

_NEXT = '''
@gluon.jit
def next_slot(slot, phase, DEPTH: gl.constexpr):
    """One slot further in a ring; barriers change parity when it begins anew."""
    slot += 1
    phase = gl.where(slot == DEPTH, phase ^ 1, phase)
    slot = gl.where(slot == DEPTH, 0, slot)
    return slot, phase
'''

_HELD = '''
@gluon.jit
def held(x):
    """The same numbers, two in a register: they are narrowed here, not where they are read."""
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], x.dtype, is_pure=True, pack=2)
'''

_ROW_SCALED = '''
@gluon.jit
def row_scaled_{registers}(total, factor):
    """`total` times `factor`, left out where that is 1 in all rows of a warp: two a thread."""
    wide = factor.broadcast_to(total.shape)
    return gl.inline_asm_elementwise(
        ROW_SCALED_{registers}, "{constraints}",
        [total, wide], gl.float32, is_pure=True, pack={registers},
    )
'''

_NAMED = '''
@gluon.jit
def {what}_{name}():
    """Barrier {number} of the hardware: {told}."""
    gl.inline_asm_elementwise(
        "bar.{what} {number}, {threads}; mov.u32 $0, $1;", "=r,r", [gl.to_tensor(0)], gl.int32,
        is_pure=False, pack=1,
    )
'''
_TOLD = {"sync": "arrive, and wait for all its threads", "arrive": "arrive, and go on"}

_HOPPER = """hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)"""
_BLACKWELL = """blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)"""

TRITON = {
    "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv",
    "f8E5M2": "fp8e5", "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64",
}  # fmt: skip
"""Element types as Triton's signatures write them."""


@dataclass(frozen=True)
class Emitted:
    """A kernel as Gluon source."""

    program: KernelProgram
    """What it does, of which the source is one spelling."""
    source: str

    @property
    def name(self) -> str:
        """Of the kernel, as its author called it; the Gluon kernel is NAME_kernel, it is launched
        by `launch`."""
        return self.program.kernel.name

    @property
    def smem(self) -> int:
        """Bytes of shared memory."""
        return self.program.bytes

    @property
    def scratch(self) -> int:
        """Of the bytes of shared memory: those that Triton takes beside what the source
        allocates."""
        return self.program.scratch

    @property
    def warps(self) -> int:
        """Of the first agent; Gluon adds those of the others."""
        return self.program.warps

    @property
    def maxnreg(self) -> int | None:
        """Registers a thread begins with, where agents share them out anew."""
        return self.program.maxnreg

    @property
    def rings(self) -> dict[str, int]:
        """Depths."""
        return self.program.rings

    @property
    def turns(self) -> Mapping[str, int]:
        """Orders between agents, and how many iterations lie between the two."""
        return self.program.turns

    @property
    def descriptors(self) -> dict[str, tuple[str, tuple[int, ...], str]]:
        """By name: the tensor, the tile, the element."""
        return {d.name: (d.tensor, d.block, d.element) for d in self.program.descriptors}

    @property
    def parameters(self) -> dict[str, str]:
        """Of the Gluon kernel: what it takes, as Triton's signatures write it."""
        return signatures(self.program)

    @property
    def marks(self) -> dict[str, Mapping[str, Sequence[Mark]]]:
        """Where it reads clocks: of each agent and loop, the marks of a step."""
        if self.program.tracing is None:
            return {}
        return {agent.name: agent.marks for agent in self.program.agents}


def emit_gluon(
    kernel: Kernel,
    loops: Sequence[Looped],
    machine: Machine,
    workers: Sequence[Worker],
    *,
    depth: int | None = None,
    title: str = "",
    tracing: Tracing | None = None,
) -> Emitted:
    """A lowered kernel, whose loops run by programs, as source; EmitError where it cannot be."""
    program = build_program(
        kernel, loops, machine, workers, depth=depth, title=title, tracing=tracing
    )
    return Emitted(program, source(program))


def signatures(program: KernelProgram) -> dict[str, str]:
    """What the Gluon kernel takes, in order, as Triton's signatures write it."""
    found: dict[str, str] = {}
    for one in program.descriptors:
        found[one.name] = f"tensordesc<{TRITON[one.element]}{list(one.block)},{{layout}}>"
    for argument in program.arguments:
        type = argument.type
        element = f"*{TRITON[type.pointee.element]}" if isinstance(type, Pointer) else ""
        found[argument.name] = element or TRITON[_scalar(type).element]
    if program.tracing is not None:
        found["trace"] = "*i64"
    if program.tiles is not None:
        found |= dict.fromkeys(program.tiles.arguments, "i32")
    return found


def _scalar(type: Pointer | Scalar) -> Scalar:
    assert isinstance(type, Scalar)
    return type


def source(program: KernelProgram) -> str:
    """The file."""
    lines = Lines()
    sums = any(isinstance(one, TensorMemory) for one in program.memory)
    bodies = [agent.body for agent in program.agents]
    modules = _modules(bodies)
    copies = any(isinstance(one, ThreadCopy) for body in bodies for one in walk(body))
    ampere = ["async_copy"] * copies + [one for one in ("mma_v2",) if one in modules]
    head = _HEAD.format(
        title=program.title,
        products=_BLACKWELL if sums else _HOPPER,
        before=_TRITON if "tl" in modules else "",
        beside=_AMPERE.format(", ".join(ampere)) if ampere else "",
        behind=_LIBDEVICE if "libdevice" in modules else "",
    )
    _text(lines, head)
    for layout in program.layouts:
        lines.say(f"{layout.name} = gl.constexpr({layout.text})")
    if any(isinstance(one, Advance) for body in bodies for one in walk(body)):
        _text(lines, "\n" + _NEXT)
    if any(isinstance(one, Held) for body in bodies for one in expressions_in(body)):
        _text(lines, "\n" + _HELD)
    scaled = {
        one.registers
        for body in bodies
        for one in expressions_in(body)
        if isinstance(one, RowScaled)
    }
    for registers in sorted(scaled):
        _row_scaled(lines, registers)
    for barrier in program.named:
        for what, told in _TOLD.items():
            _text(lines, "\n" + _NAMED.format(what=what, told=told, **asdict(barrier)))
    _combiners(lines, bodies)
    if program.tracing is not None:
        _text(lines, FUNCTIONS)
    for agent in program.agents if len(program.agents) > 1 else ():
        _begin(lines)
        with lines.block(f"def {agent.function}({', '.join(agent.takes)}):"):
            write(lines, agent.body)
    _kernel(lines, program)
    _launch(lines, program)
    if program.tracing == "marks":
        _text(lines, read_back(str(lines), len(program.agents)))
    return str(lines) + "\n"


def _row_scaled(lines: Lines, registers: int) -> None:
    """Registers of a sum of a product: of four, two are of one row, and two of another."""
    one, other = 2 * registers, 2 * registers + 2
    text = [
        "{ .reg .pred p, q;",
        f"setp.neu.f32 p, ${one}, 0f3F800000;",
        f"setp.neu.f32 q, ${other}, 0f3F800000;",
        "or.pred p, p, q;",
        "vote.sync.any.pred p, p, 0xffffffff;",
        "@!p bra DONE;",
        *(f"mul.f32 ${n}, ${n}, ${2 * registers + n};" for n in range(registers)),
        "DONE: }",
    ]
    constraints = ["=f"] * registers + [str(n) for n in range(registers)] + ["f"] * registers
    lines.say("")
    lines.say(f"ROW_SCALED_{registers} = gl.constexpr(")
    for line in text:
        lines.say(f"    {json.dumps(line)}")
    lines.say(")")
    _text(lines, "\n" + _ROW_SCALED.format(registers=registers, constraints=",".join(constraints)))


def _combiners(lines: Lines, bodies: Sequence[Sequence[Instruction]]) -> None:
    """Functions that put two elements together, each once."""
    found = {
        one.function: one.operation
        for body in bodies
        for one in expressions_in(body)
        if isinstance(one, Combined)
    }
    for name, operation in found.items():
        parameters, body = combining(operation)
        _begin(lines)
        with lines.block(f"def {name}({', '.join(parameters)}):"):
            for line in body:
                lines.say(line)


def _modules(bodies: Sequence[Sequence[Instruction]]) -> set[str]:
    """Modules that expressions name beside Gluon's own."""
    return {
        name
        for body in bodies
        for one in expressions_in(body)
        if isinstance(one, Computed)
        for name in modules_of(one.operation)
    }


def _text(lines: Lines, text: str) -> None:
    for line in text.splitlines():
        lines.say(line)


def _begin(lines: Lines, options: str = "") -> None:
    """Before a function of the device."""
    _text(lines, f"\n\n@gluon.jit{options}")


def _kernel(lines: Lines, program: KernelProgram) -> None:
    # Any number of tiles is one kernel's: 1, and multiples of 16, are no kinds of their own.
    counted = [] if program.tiles is None else list(program.tiles.arguments)
    _begin(lines, f"(do_not_specialize={counted})" if counted else "")
    parameters = ", ".join((*signatures(program), "num_warps: gl.constexpr"))
    with lines.block(f"def {program.name}({parameters}):"):
        for name in _ones(program):
            lines.say(f"{name} = gl.to_tensor({name})  # an argument of 1 is a constant")
        for one in program.memory:
            match one:
                case SharedMemory():
                    _shared(lines, one)
                case TensorMemory():
                    _tensor(lines, one)
                case Barriers():
                    _barriers(lines, one)
        if program.memory:
            lines.say("fence_async_shared()")
        if len(program.agents) == 1:
            write(lines, program.agents[0].body)
            return
        _specialize(lines, program.agents)


def _ones(program: KernelProgram) -> list[str]:
    """Integers that agents take, and that may be 1: Triton hands no constants to agents."""
    even = {one.name for one in program.kernel.parameters if one.divisibility > 1}
    taken = {name for agent in program.agents for name in agent.takes}
    return [
        one.name
        for one in program.arguments
        if isinstance(one.type, Scalar) and one.type.is_integer
        if len(program.agents) > 1 and one.name in taken and one.given.parameter not in even
    ]


def _specialize(lines: Lines, agents: Sequence[AgentProgram]) -> None:
    lines.say("gl.warp_specialize(")
    lines.say("    [")
    for agent in agents:
        taken = ", ".join(agent.takes) + ("," if len(agent.takes) == 1 else "")
        lines.say(f"        ({agent.function}, ({taken})),")
    lines.say("    ],")
    lines.say(f"    {[agent.warps for agent in agents[1:]]},")
    lines.say(f"    {[agent.registers for agent in agents[1:]]},")
    lines.say(")")


def _shared(lines: Lines, one: SharedMemory) -> None:
    element = DTYPES[one.element]
    turned = ", transposed=True" if one.turned else ""
    layout = f"gl.NVMMASharedLayout.get_default_for({list(one.shape)}, {element}{turned})"
    shape = [*([] if one.depth is None else [one.depth]), *one.shape]
    lines.say(f"{one.name}_layout: gl.constexpr = {layout}")
    lines.say(f"{one.name} = gl.allocate_shared_memory({element}, {shape}, {one.name}_layout)")


def _tensor(lines: Lines, one: TensorMemory) -> None:
    shape = [*([] if one.depth is None else [one.depth]), *one.shape]
    layout = f"TensorMemoryLayout({list(one.block)}, col_stride=1)"
    lines.say(f"{one.name}_layout: gl.constexpr = {layout}")
    lines.say(f"{one.name} = allocate_tensor_memory(gl.float32, {shape}, {one.name}_layout)")


def _barriers(lines: Lines, one: Barriers) -> None:
    shape = [1] if one.depth is None else [one.depth, 1]
    taken = f"gl.int64, {shape}, mbarrier.MBarrierLayout()"
    lines.say(f"{one.name} = gl.allocate_shared_memory({taken})")
    if one.depth is None:
        lines.say(f"mbarrier.init({one.name}, count={one.arrivals})")
        return
    with lines.block(f"for slot in gl.static_range({one.depth}):"):
        lines.say(f"mbarrier.init({one.name}.index(slot), count={one.arrivals})")


# The host ----------------------------------------------------------------------------------------


def _launch(lines: Lines, program: KernelProgram) -> None:
    traced = ["trace"] if program.tracing is not None else []
    kernel = program.kernel.name
    names = ", ".join([*dict.fromkeys(p.name for p in program.kernel.parameters), *traced])
    options = {"num_warps": program.warps}
    if program.maxnreg is not None:
        options["maxnreg"] = program.maxnreg
    told = ", ".join(f'"{name}": {number}' for name, number in options.items())
    layouts = {_layout_name(d): d for d in program.descriptors}
    _text(lines, "\n\n")
    for name, one in layouts.items():
        shape = f"{list(one.block)}, {DTYPES[one.element]}"
        lines.say(f"{name} = gl.NVMMASharedLayout.get_default_for({shape})")
    lines.say(f"OPTIONS = {{{told}}}")
    asked = _fits(lines, program, names)
    _text(lines, "\n\n")
    with lines.block(f"def arguments({names}):"):
        lines.say(f'"""What {program.name} takes, of what `{kernel}` is given."""')
        for one in program.descriptors:
            lines.say(f"{one.name} = {_descriptor(one)}")
        taken = [d.name for d in program.descriptors]
        taken += [spelled(argument.given) for argument in program.arguments] + traced
        lines.say(f"return ({', '.join(taken)}{',' if len(taken) == 1 else ''})")
    if program.tiles is not None:
        _work(lines, program.tiles)
    _text(lines, "\n\n")
    with lines.block(f"def launch({names}{', ' if names else ''}grid):"):
        lines.say(f'"""Run `{kernel}` on the caller\'s tensors over a grid of blocks."""')
        if asked:
            lines.say(f"why = fits({names})")
            with lines.block("if why:"):
                lines.say("raise ValueError(why)")
        if program.tiles is None:
            lines.say(f"return {program.name}[grid](*arguments({names}), **OPTIONS)")
            return
        lines.say("blocks, tiles = work(grid)")
        lines.say(f"return {program.name}[blocks](*arguments({names}), *tiles, **OPTIONS)")


def _work(lines: Lines, tiles: WorkTiles) -> None:
    counts = [f"grid[{axis}]" for axis in tiles.axes]
    told = ", ".join(counts) + ("," if len(counts) == 1 else "")
    _text(lines, "\n\n")
    with lines.block("def work(grid):"):
        lines.say(
            '"""Of a grid of tiles: the blocks that go over them, and the tiles of each axis."""'
        )
        lines.say("grid = (*grid, 1, 1)")
        lines.say(f"return (min({tiles.blocks}, {' * '.join(counts)}),), ({told})")


def _fits(lines: Lines, program: KernelProgram, names: str) -> bool:
    """What a launch is asked before the kernel runs: whether there is anything."""
    made = dict.fromkeys(
        f'undescribed("{one.tensor}", {spelled(one.base)}, {_numbers(one.sizes)}, '
        f"{_numbers(one.strides)}, {max(1, Scalar(one.element).bits // 8)})"
        for one in program.descriptors
        if one.base is not None
    )
    if made:
        _text(lines, UNDESCRIBED)
    if not made and not program.assumed:
        return False
    _text(lines, "\n\n")
    with lines.block(f"def fits({names}):"):
        lines.say('"""Why a launch cannot run as this kernel; empty where it can."""')
        for condition in program.assumed:
            text = spelled(condition)
            with lines.block(f"if not ({text}):"):
                lines.say(f'return "`{text}` does not hold"')
        if len(made) < 2:
            lines.say(f"return {next(iter(made), repr(''))}")
            return True
        lines.say("return (")
        for number, text in enumerate(made):
            lines.say(f"    {'or ' if number else ''}{text}")
        lines.say(")")
    return True


def _descriptor(one: Descriptor) -> str:
    tile = f"{list(one.block)}, {_layout_name(one)}"
    if one.base is None:
        name = one.tensor
        return f"TensorDescriptor({name}.base, {name}.shape, {name}.strides, {tile})"
    sizes, strides = _numbers(one.sizes), _numbers(one.strides)
    return f"TensorDescriptor({spelled(one.base)}, {sizes}, {strides}, {tile})"


def _numbers(values: Sequence[Expression]) -> str:
    return "[" + ", ".join(map(spelled, values)) + "]"


def _layout_name(descriptor: Descriptor) -> str:
    """How tiles that a descriptor brings lie in shared memory: found once, not at each launch."""
    sizes = "x".join(str(n) for n in descriptor.block)
    return f"SHARED_{sizes}_{descriptor.element.upper()}"
