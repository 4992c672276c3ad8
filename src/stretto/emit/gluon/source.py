"""The whole file: agents, the kernel that starts them, and the host side that launches it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from stretto.emit.gluon.agent import AgentWriter
from stretto.emit.gluon.expressions import (
    DTYPES,
    WIDTHS,
    EmitError,
    expression,
    literal,
    wrapped,
)
from stretto.emit.gluon.layouts import Layouts
from stretto.emit.gluon.loops import LoopWriter
from stretto.emit.gluon.plan import (
    WHOLE,
    Descriptor,
    Looped,
    Plan,
    SharedTile,
    Worker,
    deepen,
    make_plan,
)
from stretto.emit.gluon.rings import Ring
from stretto.emit.gluon.sums import Sum
from stretto.emit.gluon.text import Lines
from stretto.emit.gluon.tracing import FUNCTIONS, Mark, Tracer, Tracing, read_back
from stretto.emit.score import AgentScore
from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Pointer, Scalar, View
from stretto.machine import Machine
from stretto.ops.spaces import STAGING

_HEAD = '''"""{title}"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.{products}
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

# Two names that newer versions of Triton spell differently.
tma_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
tma_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global
'''

_NEXT = '''
@gluon.jit
def next_slot(slot, phase, DEPTH: gl.constexpr):
    """One slot further in a ring; barriers change parity when it begins anew."""
    slot += 1
    phase = gl.where(slot == DEPTH, phase ^ 1, phase)
    slot = gl.where(slot == DEPTH, 0, slot)
    return slot, phase
'''

_UNDESCRIBED = '''
def undescribed(name, array, sizes, strides, width):
    """Why no descriptor can be made of an array; empty where one can."""
    if array.data_ptr() % 16:
        return f"`{name}` does not begin at a multiple of 16 bytes"
    for size in sizes:
        if not 0 < size < 1 << 31:
            told = f"`{name}` has {size} elements along a dimension"
            return f"{told}: a descriptor takes 1 to 2^31 - 1"
    for stride in strides[:-1]:
        if not 0 < stride * width < 1 << 40 or stride * width % 16:
            told = f"`{name}` has a stride of {stride * width} bytes"
            return f"{told}: a descriptor takes multiples of 16 above 0"
    return ""
'''

_HELD = '''
@gluon.jit
def held(x):
    """The same numbers, two in a register: they are narrowed here, not where they are read."""
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], x.dtype, is_pure=True, pack=2)
'''

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
REGISTER_FILE = 65536
WARP = 32


@dataclass(frozen=True)
class Emitted:
    """A kernel as Gluon source."""

    name: str
    """Of the kernel, as its author called it; the Gluon kernel is NAME_kernel, it is launched by
    `launch`."""
    source: str
    smem: int
    """Bytes of shared memory."""
    warps: int
    """Of the first agent; Gluon adds those of the others."""
    maxnreg: int | None
    """Registers a thread begins with, where agents share them out anew."""
    rings: dict[str, int]
    """Depths."""
    descriptors: dict[str, tuple[str, tuple[int, ...], str]]
    """By name: the tensor, the tile, the element."""
    parameters: dict[str, str]
    """Of the Gluon kernel: what it takes, as Triton's signatures write it."""
    turns: dict[str, int] = field(default_factory=dict[str, int])
    """Orders between agents, and how many iterations lie between the two."""
    score: tuple[AgentScore, ...] = ()
    """What its agents do, in order."""
    marks: dict[str, dict[str, list[Mark]]] = field(
        default_factory=dict[str, dict[str, list[Mark]]]
    )
    """Where it reads clocks: of each agent and loop, the marks of a step."""
    scratch: int = 0
    """Of the bytes of shared memory: those that Triton takes beside what the source allocates."""


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
    plan = make_plan(kernel, loops, workers, machine)
    layouts = Layouts(kernel, workers[0].warps)
    # What is exchanged between threads is known once it is written, and leaves the rest to rings.
    source = _Source(plan, layouts, _written(plan, layouts, tracing), title)
    plan.scratch = source.scratch
    deepen(plan) if depth is None else deepen(plan, depth)
    budget = machine.budget(STAGING)
    if budget is not None and budget.bytes is not None and plan.bytes > budget.bytes:
        raise SharedMemoryError(plan.bytes, plan.scratch, budget.bytes, machine.name)
    return _Source(plan, layouts, _written(plan, layouts, tracing), title).emitted()


class SharedMemoryError(EmitError):
    """What a kernel needs of shared memory is more than there is."""

    def __init__(self, bytes: int, scratch: int, room: int, machine: str) -> None:
        told = f"{bytes:,} bytes of shared memory are needed, {machine} has {room:,}"
        if scratch:
            told += f"; {scratch:,} of them for what the compiler hands from thread to thread"
        super().__init__(told, hint="smaller tiles, or --depth for shorter rings")
        self.scratch = scratch


def _written(plan: Plan, layouts: Layouts, tracing: Tracing | None) -> list[AgentWriter]:
    """The functions of all agents that have something to do."""
    writers: list[AgentWriter] = []
    for number, worker in enumerate(plan.workers):
        tracer = Tracer(tracing, number, len(plan.workers)) if tracing else None
        writer = AgentWriter(plan, worker, layouts, tracer)

        def looped(agent: AgentWriter, operation: Operation) -> None:
            LoopWriter(agent, plan.loops[operation]).write()

        writer.write(looped)
        writers.append(writer)
    # An agent that has nothing to do is none.
    return [writer for writer in writers if writer.lines.lines or writer is writers[0]]


class _Source:
    def __init__(
        self, plan: Plan, layouts: Layouts, writers: Sequence[AgentWriter], title: str
    ) -> None:
        self._plan = plan
        self._layouts = layouts
        self._writers = writers
        self._title = title or f"{plan.kernel.name}, by Stretto for {plan.machine.name}."
        self._parameters = self._taken()

    def _taken(self) -> list[str]:
        """What the kernel takes: descriptors, then the parameters that somebody uses."""
        used = {name for writer in self._writers for name in writer.used}
        found = [d.name for d in self._plan.descriptors.values()]
        found += [name for name, _ in self._plan.named.values() if name in used]
        found += ["trace"] if self._traced else []
        return list(dict.fromkeys(found))

    @property
    def _traced(self) -> bool:
        return any(writer.tracer for writer in self._writers)

    @property
    def scratch(self) -> int:
        """Bytes of shared memory that Triton takes for exchanges, and to start agents."""
        started = sum(
            writer.worker.warps + sum(self._handed(name) for name in writer.used)
            for writer in self._writers[1:]
        )
        return started + sum(writer.layouts.bytes for writer in self._writers)

    def _handed(self, name: str) -> int:
        """Bytes in which an agent is told of an argument: its address, and what lies there."""
        for descriptor in self._plan.descriptors.values():
            if descriptor.name == name:
                return 8 + (4 + 8) * len(descriptor.block)  # sizes and strides
        shared = (*self._plan.shared_rings(), *self._plan.tiles.values())
        ranks = {one.name: len(one.shape) + 1 for one in shared}
        return 8 + 4 * ranks.get(name, 2)  # where it begins; barriers have two dimensions

    @property
    def _name(self) -> str:
        return f"{self._plan.kernel.name}_kernel"

    def emitted(self) -> Emitted:
        lines = Lines()
        products = _BLACKWELL if self._plan.sums else _HOPPER
        for part in _HEAD.format(title=self._title, products=products).splitlines():
            lines.say(part)
        for layout in self._layouts.roots():
            if any(layout.name in "\n".join(w.lines.lines) for w in self._writers):
                lines.say(f"{layout.name} = gl.constexpr({layout.text})")
        repeated = any(one.repeated for one in self._plan.sums.values())
        if self._plan.rings or any(t.depth > 1 for t in self._plan.all_turns()) or repeated:
            lines.say()
            for part in _NEXT.splitlines():
                lines.say(part)
        held = any(writer.holds for writer in self._writers)
        if held:
            lines.say()
            for part in _HELD.splitlines():
                lines.say(part)
        for part in FUNCTIONS.splitlines() if self._traced else ():
            lines.say(part)
        for writer in self._writers if len(self._writers) > 1 else ():
            self._function(lines, writer)
        self._kernel(lines)
        self._launch(lines)
        for part in self._read_back(str(lines)).splitlines():
            lines.say(part)
        source = str(lines) + "\n"
        return Emitted(
            self._plan.kernel.name,
            source,
            self._plan.bytes,
            self._plan.workers[0].warps,
            self._maxnreg,
            {ring.name: ring.depth for ring in self._plan.shared_rings()},
            {
                d.name: (self._tensor_of(d.view), d.block, d.element)
                for d in self._plan.descriptors.values()
            },
            {name: self._signature(name) for name in self._parameters},
            {turn.name: turn.distance for turn in self._plan.all_turns()},
            tuple(writer.score for writer in self._writers),
            {w.worker.name: w.tracer.marks for w in self._writers if w.tracer is not None},
            self._plan.scratch,
        )

    def _signature(self, name: str) -> str:
        if name == "trace":
            return "*i64"
        for descriptor in self._plan.descriptors.values():
            if descriptor.name == name:
                element, block = TRITON[descriptor.element], list(descriptor.block)
                layout = "{layout}"
                return f"tensordesc<{element}{block},{layout}>"
        type = next(value.type for value, (called, _) in self._plan.named.items() if called == name)
        if isinstance(type, Pointer):
            return f"*{TRITON[type.pointee.element]}"
        assert isinstance(type, Scalar)
        return TRITON[type.element]

    @property
    def _maxnreg(self) -> int | None:
        if len(self._writers) == 1:
            return None
        # The kernel begins with whole groups of four warps; each gives back or takes.
        warps = sum(writer.worker.warps for writer in self._writers)
        threads = -(-warps // 4) * 4 * WARP
        return REGISTER_FILE // threads // 8 * 8

    def _function(self, lines: Lines, writer: AgentWriter) -> None:
        lines.say()
        lines.say()
        lines.say("@gluon.jit")
        with lines.block(f"def {writer.worker.function}({', '.join(writer.used)}):"):
            for line in writer.lines.lines:
                lines.say(line)

    def _kernel(self, lines: Lines) -> None:
        plan = self._plan
        lines.say()
        lines.say()
        lines.say("@gluon.jit")
        parameters = ", ".join((*self._parameters, "num_warps: gl.constexpr"))
        with lines.block(f"def {self._name}({parameters}):"):
            for ring in plan.shared_rings():
                self._allocate(lines, ring, [ring.depth, *ring.shape])
                for what, there, count in (
                    ("full", ring.full, 1),
                    ("free", ring.free, len(ring.consumers)),
                ):
                    if there:
                        self._barriers(lines, f"{ring.name}_{what}", ring.depth, count)
            for tile in plan.tiles.values():
                self._allocate(lines, tile, list(tile.shape))
                if tile.loaded:
                    self._barriers(lines, f"{tile.name}_full", None, 1)
                    if tile.repeated and len(plan.workers) > 1:
                        self._barriers(lines, f"{tile.name}_free", None, tile.readers)
            for turn in plan.all_turns():
                self._barriers(lines, turn.name, turn.depth if turn.depth > 1 else None, 1)
            for one in plan.sums.values():
                self._sum(lines, one)
            if plan.rings or plan.tiles or plan.sums or plan.all_turns():
                lines.say("fence_async_shared()")
            if len(self._writers) == 1:
                for line in self._writers[0].lines.lines:
                    lines.say(line)
                return
            lines.say("gl.warp_specialize(")
            lines.say("    [")
            for writer in self._writers:
                taken = ", ".join(writer.used) + ("," if len(writer.used) == 1 else "")
                lines.say(f"        ({writer.worker.function}, ({taken})),")
            lines.say("    ],")
            others = [writer.worker for writer in self._writers[1:]]
            lines.say(f"    {[worker.warps for worker in others]},")
            lines.say(f"    {[worker.registers for worker in others]},")
            lines.say(")")

    def _allocate(self, lines: Lines, one: Ring | SharedTile, shape: list[int]) -> None:
        name, element = one.name, one.element
        turned = ", transposed=True" if one.turned else ""
        asked = f"{list(one.shape)}, {DTYPES[element]}{turned}"
        layout = f"gl.NVMMASharedLayout.get_default_for({asked})"
        lines.say(f"{name}_layout: gl.constexpr = {layout}")
        text = f"gl.allocate_shared_memory({DTYPES[element]}, {shape}, {name}_layout)"
        lines.say(f"{name} = {text}")

    def _sum(self, lines: Lines, one: Sum) -> None:
        copies = [one.depth] if one.repeated else []
        lines.say(
            f"{one.name}_layout: gl.constexpr = TensorMemoryLayout({one.block}, col_stride=1)"
        )
        shape = [*copies, *one.shape]
        text = f"allocate_tensor_memory(gl.float32, {shape}, {one.name}_layout)"
        lines.say(f"{one.name} = {text}")
        for what in ("full", "free") if one.free else ("full",):
            self._barriers(lines, f"{one.name}_{what}", one.depth if one.repeated else None, 1)

    def _barriers(self, lines: Lines, name: str, depth: int | None, count: int) -> None:
        shape = [1] if depth is None else [depth, 1]
        lines.say(
            f"{name} = gl.allocate_shared_memory(gl.int64, {shape}, mbarrier.MBarrierLayout())"
        )
        if depth is None:
            lines.say(f"mbarrier.init({name}, count={count})")
            return
        with lines.block(f"for slot in gl.static_range({depth}):"):
            lines.say(f"mbarrier.init({name}.index(slot), count={count})")

    # The host ------------------------------------------------------------------------------------

    def _launch(self, lines: Lines) -> None:
        plan = self._plan
        names = ", ".join(
            [*dict.fromkeys(p.name for p in plan.kernel.parameters), *["trace"] * self._traced]
        )
        options = {"num_warps": plan.workers[0].warps}
        if self._maxnreg is not None:
            options["maxnreg"] = self._maxnreg
        told = ", ".join(f'"{name}": {number}' for name, number in options.items())
        lines.say()
        lines.say()
        for name, layout in self._shared().items():
            lines.say(f"{name} = {layout}")
        lines.say(f"OPTIONS = {{{told}}}")
        fits = self._fits()
        if any(text.startswith("undescribed") for _, text in fits):
            lines.say()
            for part in _UNDESCRIBED.splitlines():
                lines.say(part)
        if fits:
            self._say_fits(lines, names, fits)
        lines.say()
        lines.say()
        with lines.block(f"def arguments({names}):"):
            lines.say(f'"""What {self._name} takes, of what `{plan.kernel.name}` is given."""')
            for descriptor in plan.descriptors.values():
                lines.say(f"{descriptor.name} = {self._descriptor(descriptor)}")
            given = dict(self._plan.named.values())
            taken = [given.get(name, name) for name in self._parameters]
            lines.say(f"return ({', '.join(taken)}{',' if len(taken) == 1 else ''})")
        lines.say()
        lines.say()
        with lines.block(f"def launch({names}{', ' if names else ''}grid):"):
            lines.say(
                f'"""Run `{plan.kernel.name}` on the caller\'s tensors over a grid of blocks."""'
            )
            if fits:
                lines.say(f"why = fits({names})")
                with lines.block("if why:"):
                    lines.say("raise ValueError(why)")
            lines.say(f"return {self._name}[grid](*arguments({names}), **OPTIONS)")

    def _fits(self) -> list[tuple[str, str]]:
        """What a launch has to keep to: of assumptions, what they say and how it is asked; of
        descriptors, an expression that says what is wrong."""
        found = [(f"`{text}` does not hold", text) for text in self._assumed()]
        for descriptor in self._plan.descriptors.values():
            made = self._plan.maker.get(descriptor.view)
            if made is not None:
                base, *numbers = made.operands
                sizes, strides = self._extents(numbers, made)
                width = max(1, Scalar(descriptor.element).bits // 8)
                name = base.name
                array = self._host(base, made)
                text = f'undescribed("{name}", {array}, {sizes}, {strides}, {width})'
                found.append(("", text))
        return list(dict.fromkeys(found))

    def _assumed(self) -> list[str]:
        """What the kernel takes for granted of the numbers that a host gives it."""
        found: list[str] = []
        for operation in self._plan.kernel.walk():
            if kind_of(operation) == "assume":
                with suppress(EmitError):
                    found.append(self._host(operation.operands[0], operation))
        return [text for text in found if text != "True"]

    def _say_fits(self, lines: Lines, names: str, fits: Sequence[tuple[str, str]]) -> None:
        lines.say()
        lines.say()
        with lines.block(f"def fits({names}):"):
            lines.say('"""Why a launch cannot run as this kernel; empty where it can."""')
            for told, text in fits:
                if told:
                    with lines.block(f"if not {wrapped(text)}:"):
                        lines.say(f'return "{told}"')
            asked = [text for told, text in fits if not told]
            if len(asked) < 2:
                lines.say(f"return {asked[0] if asked else repr('')}")
                return
            lines.say("return (")
            for number, text in enumerate(asked):
                lines.say(f"    {'or ' if number else ''}{text}")
            lines.say(")")

    def _read_back(self, text: str) -> str:
        """What writes down the marks of a launch, where there are any."""
        tracers = [writer.tracer for writer in self._writers if writer.tracer is not None]
        if not any(tracer.tracing == "marks" for tracer in tracers):
            return ""
        return read_back(text, len(self._writers))

    def _tensor_of(self, view: Value) -> str:
        made = self._plan.maker.get(view)
        if made is None:
            return view.name
        return made.operands[0].name

    def _shared(self) -> dict[str, str]:
        """How tiles that descriptors bring lie in shared memory: found once, not at each launch."""
        return {
            _layout_name(d): f"gl.NVMMASharedLayout.get_default_for({list(d.block)}, "
            f"{DTYPES[d.element]})"
            for d in self._plan.descriptors.values()
        }

    def _descriptor(self, descriptor: Descriptor) -> str:
        block, layout = list(descriptor.block), _layout_name(descriptor)
        view = descriptor.view
        made = self._plan.maker.get(view)
        if made is None:
            name = view.name
            return f"TensorDescriptor({name}.base, {name}.shape, {name}.strides, {block}, {layout})"
        base, *numbers = made.operands
        sizes, strides = self._extents(numbers, made)
        if not isinstance(base.type, Pointer) or (base not in self._plan.maker and not base.name):
            told = "a view of something else than a parameter cannot be emitted"
            raise EmitError(told, made, WHOLE)
        return f"TensorDescriptor({self._host(base, made)}, {sizes}, {strides}, {block}, {layout})"

    def _extents(self, numbers: Sequence[Value], view: Operation) -> tuple[str, str]:
        """Sizes and strides of a view, as lists."""
        rank = len(numbers) // 2
        sizes, strides = (
            "[" + ", ".join(self._host(v, view) for v in part) + "]"
            for part in (numbers[:rank], numbers[rank:])
        )
        return sizes, strides

    def _host(self, value: Value, user: Operation) -> str:
        """A number that the host can compute from the parameters."""
        if value in self._plan.named:
            return self._plan.named[value][1]
        made = self._plan.maker.get(value)
        if made is None or isinstance(value.type, View):
            raise EmitError("a view that depends on the block cannot be emitted", user, WHOLE)
        kind = kind_of(made)
        if kind == "arith.constant":
            return literal(made.attributes["value"], value.type)
        if kind in WIDTHS:
            return self._host(made.operands[0], user)
        if not kind.startswith("arith.") or not isinstance(value.type, Scalar):
            raise EmitError("a view that depends on the block cannot be emitted", user, WHOLE)
        return expression(made, [wrapped(self._host(v, user)) for v in made.operands])


def _layout_name(descriptor: Descriptor) -> str:
    sizes = "x".join(str(n) for n in descriptor.block)
    return f"SHARED_{sizes}_{descriptor.element.upper()}"
