"""`triton.experimental.gluon.language`: tiles, global memory, reductions, partitions.

gl.load, gl.store, gl.arange, gl.where, gl.max … ─► Tile
gl.warp_specialize ─► partitions of the block
"""

# Tiles are NumPy's.
# pyright: basic

from __future__ import annotations

import builtins
import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np

from stretto.sanitizer import layouts, pointers
from stretto.sanitizer.barriers import NamedBarrier
from stretto.sanitizer.block import REGISTERS, NotCoveredError, current, running
from stretto.sanitizer.buffers import Shared, TensorMemory, allocate_shared
from stretto.sanitizer.pointers import Pointer, PointerType
from stretto.sanitizer.stand_ins.products import InFlight, dot_fma, finished
from stretto.sanitizer.values import (
    DTYPES,
    FLOAT32,
    INT1,
    INT32,
    INT64,
    Dtype,
    Tile,
    TileType,
    reduced,
    tile,
)


class _ConstexprType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return not isinstance(instance, Tile | Shared | TensorMemory | Pointer)


class constexpr(metaclass=_ConstexprType):  # noqa: N801 - Triton's name
    """A constant is itself here."""

    def __new__(cls, value: Any = None) -> Any:
        """The value itself."""
        return value

    def __class_getitem__(cls, item: Any) -> Any:
        return item


PROPAGATE_NAN = SimpleNamespace(NONE=0, ALL=0xFFFF)
"""What becomes of two of which one is no number."""


def elementwise(change: Any, as_float: bool = False) -> Any:
    """A function of numbers as one of tiles; what it makes is of the widest type it takes."""

    def run(*values: Any, **_: Any) -> Tile:
        given = [finished(v) for v in values]
        shaped = next((g for g in given if g.shape), given[0])
        dtype = shaped.dtype
        for one in given:
            if one.dtype.kind == "f" and dtype.kind != "f":
                dtype = one.dtype
        if as_float and dtype.kind != "f":
            dtype = FLOAT32
        parts = [dtype.cast(g.value) if g.dtype != dtype else g.value for g in given]
        layout = next((g.layout for g in given if g.layout is not None), None)
        return Tile(dtype.cast(change(*parts)), dtype, layout).tainted(*given)

    return run


def program_id(axis: Any = 0) -> Tile:
    """Which program of the grid."""
    return Tile(np.int32(current().at[int(axis)]), INT32)


def num_programs(axis: Any = 0) -> Tile:
    """How many programs."""
    return Tile(np.int32(current().grid[int(axis)]), INT32)


def num_warps() -> int:
    """Of the partition at hand."""
    return current().agent.warps


def num_ctas() -> int:
    """Of a cluster."""
    return int(current().options.get("num_ctas", 1))


def arange(start: Any, end: Any, layout: Any = None) -> Tile:
    """Numbers in order."""
    return Tile(np.arange(int(start), int(end), dtype=np.int32), INT32, layout)


def full(shape: Any, value: Any, dtype: Any = FLOAT32, layout: Any = None) -> Tile:
    """One value everywhere."""
    sizes = [int(n) for n in shape]
    held = value.value if isinstance(value, Tile) else value
    return Tile(np.full(sizes, dtype.cast(held), dtype.wide), dtype, layout)


def zeros(shape: Any, dtype: Any = FLOAT32, layout: Any = None) -> Tile:
    """Nothing everywhere."""
    return full(shape, 0, dtype, layout)


def full_like(
    given: Any, value: Any, shape: Any = None, dtype: Any = None, layout: Any = None
) -> Any:
    """One value, as another tile is."""
    return full(shape or given.shape, value, dtype or given.dtype, layout or given.layout)


def zeros_like(given: Any, **more: Any) -> Tile:
    """Nothing, as another tile is."""
    return full_like(given, 0, **more)


def where(condition: Any, x: Any, y: Any) -> Tile:
    """One or the other."""
    a, b = x, y
    if not isinstance(a, Tile):
        a = b.constant(a) if isinstance(b, Tile) else tile(a)
    if not isinstance(b, Tile):
        b = a.constant(b)
    zero = a * 0 + b * 0 if a.dtype != b.dtype else None
    dtype = a.dtype if zero is None else zero.dtype
    on = tile(condition)
    made = np.where(np.asarray(on.value, np.bool_), dtype.cast(a.value), dtype.cast(b.value))
    found = Tile(made.astype(dtype.wide)[()], dtype, a.layout or b.layout or on.layout)
    if a.poison is not None or b.poison is not None or on.poison is not None:
        if np.any(on.value):
            found.tainted(a)
        if not np.all(on.value):
            found.tainted(b)
        found.tainted(on)
    return found


def cdiv(a: Any, b: Any) -> Any:
    """Rounded up."""
    return (a + (b - 1)) // b


def convert_layout(value: Any, layout: Any, assert_trivial: Any = False) -> Any:
    """The same tile, held by other threads."""
    del assert_trivial
    given = finished(value) if not isinstance(value, Pointer) else value
    if layouts.cluster_bases(given.layout) != layouts.cluster_bases(layout):
        _across(given.layout)
    if isinstance(given, Pointer):
        return Pointer(given.storage, given.element, given.offsets, layout)
    return Tile(given.value, given.dtype, layout).tainted(given)


def reshape(value: Any, shape: Any, **_: Any) -> Tile:
    """The same elements in another shape."""
    return finished(value).reshape(shape)


def permute(value: Any, *order: Any) -> Tile:
    """Axes in another order."""
    return finished(value).permute(*order)


def expand_dims(value: Any, axis: Any) -> Any:
    """One more axis, of one element."""
    if isinstance(value, Pointer):
        return Pointer(value.storage, value.element, np.expand_dims(value.offsets, int(axis)))
    return finished(value).expand_dims(int(axis))


def broadcast(a: Any, b: Any) -> tuple[Tile, Tile]:
    """Two tiles of one shape."""
    x, y = tile(a), tile(b)
    left, right = np.broadcast_arrays(x.value, y.value)
    return Tile(left, x.dtype, x.layout), Tile(right, y.dtype, y.layout)


def split(value: Any) -> tuple[Tile, Tile]:
    """Halves along the last axis."""
    return finished(value).split()


def join(a: Any, b: Any) -> Tile:
    """Two tiles side by side, along a last axis that is new."""
    x, y = finished(a), finished(b)
    both = np.stack(np.broadcast_arrays(x.value, y.value), axis=-1)
    return Tile(both, x.dtype).tainted(x, y)


def to_tensor(value: Any, *_: Any) -> Any:
    """A constant as a number in registers."""
    return value if isinstance(value, InFlight) else tile(value)


def _reduction(how: Any) -> Any:
    def run(value: Any, axis: Any = None, keep_dims: Any = False, **_: Any) -> Any:
        given = finished(value)
        _across(given.layout, axis)
        return reduced(how, given, axis if axis is None else int(axis), bool(keep_dims))

    return run


def reduce(value: Any, axis: Any, combine: Any, keep_dims: Any = False) -> Any:
    """Any combination along an axis, in the order of the elements."""
    given = value if isinstance(value, tuple) else (value,)
    tiles = [finished(g) for g in given]
    _across(tiles[0].layout, axis)
    axis = int(axis) if axis is not None else 0
    count = tiles[0].shape[axis]

    def part(number: int) -> list[Tile]:
        return [Tile(np.take(t.value, number, axis), t.dtype) for t in tiles]

    total = part(0)
    for number in range(1, count):
        made = combine(*total, *part(number))
        total = list(made) if isinstance(made, tuple) else [made]
    if keep_dims:
        total = [t.expand_dims(axis) for t in total]
    kept = [Tile(t.value, t.dtype, _sliced(o, axis)) for t, o in zip(total, tiles, strict=True)]
    return tuple(kept) if isinstance(value, tuple) else kept[0]


def _sliced(of: Tile, axis: int) -> Any:
    return None if of.layout is None else layouts.SliceLayout(axis, of.layout)


def associative_scan(value: Any, axis: Any, combine: Any, reverse: Any = False) -> Any:
    """Any combination of all elements so far."""
    given = value if isinstance(value, tuple) else (value,)
    tiles = [finished(g) for g in given]
    axis = int(axis)
    numbers = list(range(tiles[0].shape[axis]))
    if reverse:
        numbers.reverse()
    total: list[Any] = []
    found: list[Any] = [None] * len(numbers)
    for number in numbers:
        part = [Tile(np.take(t.value, number, axis), t.dtype) for t in tiles]
        made = combine(*total, *part) if total else tuple(part)
        total = list(made) if isinstance(made, tuple) else [made]
        found[number] = [t.value for t in total]
    made = tuple(
        Tile(np.stack([f[n] for f in found], axis), t.dtype, t.layout) for n, t in enumerate(tiles)
    )
    return made if isinstance(value, tuple) else made[0]


def map_elementwise(change: Any, *values: Any, pack: int = 1) -> Any:
    """A scalar function on each element."""
    del pack
    tiles = [finished(v) for v in values]
    shape = np.broadcast_shapes(*(np.shape(t.value) for t in tiles))
    parts = [np.broadcast_to(t.value, shape) for t in tiles]
    found = [
        change(*(Tile(p[at], t.dtype) for p, t in zip(parts, tiles, strict=True)))
        for at in np.ndindex(*shape)
    ]
    several = isinstance(found[0], tuple)
    rows = [f if several else (f,) for f in found]
    made = tuple(
        Tile(np.array([r[n].value for r in rows]).reshape(shape), rows[0][n].dtype, tiles[0].layout)
        for n in range(len(rows[0]))
    )
    return made if several else made[0]


def histogram(value: Any, num_bins: Any, mask: Any = None, layout: Any = None) -> Tile:
    """How often each number is there."""
    given = np.asarray(finished(value).value)
    on = np.ones(given.shape, np.bool_) if mask is None else np.asarray(tile(mask).value)
    counts = np.bincount(given[on], minlength=int(num_bins))[: int(num_bins)]
    return Tile(counts.astype(np.int32), INT32, layout)


def gather(value: Any, index: Any, axis: Any) -> Tile:
    """Elements of a tile along an axis."""
    given = finished(value)
    made = np.take_along_axis(given.value, np.asarray(tile(index).value), int(axis))
    return Tile(made, given.dtype, getattr(index, "layout", None))


# Partitions and barriers --------------------------------------------------------------------------


def warp_specialize(*given: Any, **named: Any) -> Any:
    """Partitions, the first of them in the warps at hand; of any version of Gluon."""
    values = list(given)
    if values and isinstance(values[0], list | tuple) and _is_parts(values[0]):
        parts = [(part[0], part[1]) for part in values[0]]
        rest = values[1:]
    else:
        default = (values[1], values[0])
        of_workers = named.get("worker_partitions", values[3] if len(values) > 3 else [])
        arguments = values[2] if len(values) > 2 else ()
        parts = [default, *((function, arguments) for function in of_workers)]
        rest = values[4:]
    warps = named.get("worker_num_warps", rest[0] if rest else [])
    registers = named.get("worker_num_regs", rest[1] if len(rest) > 1 else None)
    return _specialized(parts, [int(w) for w in warps], registers)


def _is_parts(first: Any) -> bool:
    return bool(first) and isinstance(first[0], tuple) and callable(first[0][0])


def _specialized(parts: Any, warps: list[int], registers: Any) -> Any:
    block = current()
    if len(warps) != len(parts) - 1:
        raise block.refuse(
            "illegal", f"{len(parts)} partitions and numbers of warps for {len(warps)} of them"
        )
    main = block.agent.warps
    _require_registers(main, warps, registers)
    names: list[str] = []
    for function, _ in parts:
        name = getattr(function, "__name__", "partition")
        count = sum(n == name or n.startswith(f"{name} ") for n in names)
        names.append(f"{name} {count + 1}" if count else name)
    forks = [
        (name, (lambda f=function, a=arguments: f(*a)), count)
        for name, (function, arguments), count in zip(names, parts, [main, *warps], strict=True)
    ]
    return block.fork(forks)


def _require_registers(main: int, warps: list[int], registers: Any) -> None:
    block = current()
    total = -(-(main + sum(warps)) // 4) * 4
    most = int(block.options.get("maxnreg") or 0)
    if total * 32 > 1024:
        raise block.refuse("registers", f"{total} warps are {total * 32} threads; a block has 1024")
    if most and most * total * 32 > REGISTERS:
        raise block.refuse(
            "registers",
            f"{total} warps with {most} registers a thread are {most * total * 32} registers; a "
            f"multiprocessor has {REGISTERS}",
        )
    if registers is None:
        return
    asked = [int(r) for r in registers]
    if len(asked) != len(warps):
        raise block.refuse("illegal", f"registers of {len(asked)} of {len(warps)} partitions")
    for number in asked:
        if number % 8 or not 24 <= number <= 256:
            raise block.refuse(
                "registers", f"{number} registers a thread; a multiple of 8 from 24 to 256"
            )
    # What a launch has is what it begins with; partitions only divide it anew.
    each = most or REGISTERS // (total * 32) // 8 * 8
    pool = (each or 8) * total * 32
    # Registers go to groups of four warps; small partitions share one.
    taken = sum(-(-w // 4) * 128 * r for w, r in zip(warps, asked, strict=True) if w >= 4)
    small = sorted(
        (r for w, r in zip(warps, asked, strict=True) for _ in range(w % 4)), reverse=True
    )
    taken += sum(128 * r for r in small[::4])
    if taken + main * 32 * 24 > min(pool, REGISTERS):
        raise block.refuse(
            "registers",
            f"the partitions ask for {taken} registers of {pool}: less than 24 a thread are left "
            f"to the first, which has {main} warps",
        )


def barrier(*, cluster: Any = False) -> None:
    """All threads of the partition meet."""
    block = current()
    context = block.agent.context
    context["barriers"] = context.get("barriers", 0) + 1
    if cluster:
        block.meet_cluster()
    block.scheduler.pause()


def _across(layout: Any, axis: Any = None) -> None:
    """What goes from block to block of a cluster: the compiler lets them meet there."""
    block = current()
    if block.cluster > 1 and any(
        any(basis) if axis is None else len(basis) > int(axis) and basis[int(axis)]
        for basis in layouts.cluster_bases(layout)
    ):
        block.meet_cluster()


_BARRIER = re.compile(r"\b(?:bar|barrier)(?:\.cta)?\.(sync|arrive)(?:\.aligned)?\s+([^;]+);")


def inline_asm_elementwise(
    asm: Any, constraints: Any, args: Any, dtype: Any = INT32, is_pure: Any = True, pack: Any = 1
) -> Any:
    """Named barriers and fences; of anything else, that its values are not covered."""
    del constraints, is_pure, pack
    block = current()
    agent, text = block.agent, str(asm)
    given = [tile(a) for a in args]
    met = _BARRIER.search(text)
    if met:
        words = [_word(word, given) for word in met[2].split(",")]
        number = words[0]
        if not 0 <= number < 16:
            raise block.refuse("barriers", f"named barrier {number}; a block has 0 to 15")
        count = words[1] if len(words) > 1 else agent.warps * 32
        barrier_ = block.named.setdefault(number, NamedBarrier(block, number))
        agent.context["waits_at"] = block.sources.site()
        agent.context["barriers"] = agent.context.get("barriers", 0) + 1
        access = block.access(f"bar.{met[1]}")
        barrier_.meet(agent, count, access, stays=met[1] == "sync")
    elif "cluster_ctarank" in text and block.cluster > 1:
        raise NotCoveredError("code that asks for its block of a cluster", block.sources.site())
    elif "fence.proxy.async" in text:
        from stretto.sanitizer.stand_ins.nvidia import fence_async_shared  # noqa: PLC0415

        fence_async_shared()
    packed = {"add": np.add, "mul": np.multiply, "sub": np.subtract}
    for name, change in packed.items():
        if f"{name}.f32x2" in text or f"{name}.rn.f32x2" in text:
            return elementwise(change)(*given[:2])
    if "fma" in text and "f32x2" in text and len(given) >= 3:
        return elementwise(lambda a, b, c: a * b + c)(*given[:3])
    if "vote.sync" in text and "mul.f32" in text and len(given) == 2:
        return elementwise(np.multiply)(*given)  # left out where all factors of a warp are 1
    if "ex2" in text and given:
        return elementwise(np.exp2)(given[0])
    if not met and given and "mov" not in text and text.strip():
        block.coverage.leave_out(f"{block.sources.site()}: the values of inline assembly")
    if isinstance(dtype, tuple | list):
        return tuple(zeros(given[0].shape if given else (), d) for d in dtype)
    if not given:
        return Tile(np.int64(block.now()), INT64).to(dtype)
    return given[0] if given[0].dtype == dtype else given[0].to(dtype)


def _word(word: str, given: list[Tile]) -> int:
    text = word.strip().removeprefix("%")
    if text.startswith("$"):
        # Operand 0 is the result.
        number = int(text[1:]) - 1
        return int(np.asarray(given[max(0, min(number, len(given) - 1))].value).flat[0])
    return int(text)


def static_assert(condition: Any, message: Any = "") -> None:
    """Or the kernel does not compile."""
    if not condition:
        raise current().refuse("illegal", f"static_assert fails: {message}")


def device_assert(condition: Any, message: Any = "", mask: Any = None) -> None:
    """Or the kernel traps."""
    on = np.asarray(tile(condition).value)
    if mask is not None:
        on = on | ~np.asarray(tile(mask).value)
    if not np.all(on):
        raise current().refuse("failure", f"device_assert fails: {message}")


def _nothing(*_: Any, **__: Any) -> None:
    """Nothing to do here."""


def _itself(value: Any, *_: Any, **__: Any) -> Any:
    return value


def umulhi(a: Any, b: Any) -> Tile:
    """The upper half of a product."""
    x, y = tile(a), tile(b)
    half = x.dtype.primitive_bitwidth
    wide = np.int64 if x.dtype.kind == "i" else np.uint64
    made = (np.asarray(x.value).astype(wide) * np.asarray(y.value).astype(wide)) >> half
    return Tile(made.astype(x.dtype.wide), x.dtype, x.layout)


def clamp(x: Any, low: Any, high: Any, *_: Any, **__: Any) -> Tile:
    """Between two bounds."""
    return elementwise(lambda a, b, c: np.minimum(np.maximum(a, b), c))(x, low, high)


def expect_zero(*_: Any, **__: Any) -> None:
    """A promise to the compiler."""


class range_:  # noqa: N801 - called as a function
    """A loop of a kernel whose trips are counted; its variable is a number in registers."""

    def __new__(cls, *bounds: Any, **_: Any) -> Any:
        """Its numbers."""
        given = [int(b) for b in bounds]
        numbers = builtins.range(*given)
        if not running():
            return numbers
        current().trips(len(numbers))
        return cls._each(numbers)

    @staticmethod
    def _each(numbers: Any) -> Any:
        dtype = INT32
        for number in numbers:
            yield Tile(dtype.wide.type(number), dtype)


def static_range(*bounds: Any) -> Any:
    """A loop that is unrolled: its variable is a constant."""
    numbers = builtins.range(*(int(b) for b in bounds))
    return _unrolled(numbers) if running() else numbers


def _unrolled(numbers: Any) -> Any:
    context = current().agent.context
    path = context.setdefault("unrolled", [])
    path.append(0)
    depth = len(path)
    try:
        for number in numbers:
            path[depth - 1 :] = [number]
            yield number
    finally:
        del path[depth - 1 :]


def aggregate_replace(instance: Any, **changes: Any) -> Any:
    """A copy with other fields."""
    import copy  # noqa: PLC0415 - rarely

    made = copy.copy(instance)
    for name, value in changes.items():
        object.__setattr__(made, name, value)
    return made


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float32])(x)


def _larger(old: Any, new: Any) -> Any:
    return max(old, new)


def _smaller(old: Any, new: Any) -> Any:
    return min(old, new)


def _extreme(numbers: Any, all_of_them: Any) -> Any:
    """The greater or the lesser of two: of numbers, or none where one of both is none."""
    usual, strict = elementwise(numbers), elementwise(all_of_them)

    def run(a: Any, b: Any, propagate_nan: Any = None, **_: Any) -> Tile:
        return (strict if propagate_nan == PROPAGATE_NAN.ALL else usual)(a, b)

    return run


def names() -> dict[str, Any]:
    """All that the module has."""
    floats = {
        "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sqrt": np.sqrt,
        "sqrt_rn": np.sqrt, "sin": np.sin, "cos": np.cos, "floor": np.floor, "ceil": np.ceil,
        "erf": _erf, "rsqrt": lambda x: 1 / np.sqrt(x), "fdiv": np.divide, "div_rn": np.divide,
    }  # fmt: skip
    either = {
        "abs": np.abs, "add": np.add, "mul": np.multiply,
        "sub": np.subtract, "fma": lambda a, b, c: a * b + c,
    }  # fmt: skip
    shapes = [
        program_id, num_programs, num_warps, num_ctas, arange, full, zeros, full_like, zeros_like,
        where, cdiv, convert_layout, reshape, permute, expand_dims, broadcast, split, join,
        to_tensor, reduce, associative_scan, map_elementwise, histogram, gather, warp_specialize,
        barrier, inline_asm_elementwise, static_assert, device_assert, umulhi, clamp, expect_zero,
        static_range, aggregate_replace, dot_fma,
    ]  # fmt: skip
    return {
        **DTYPES,
        **{name: elementwise(change, True) for name, change in floats.items()},
        **{name: elementwise(change) for name, change in either.items()},
        **{function.__name__: function for function in shapes},
        "maximum": _extreme(np.fmax, np.maximum),
        "minimum": _extreme(np.fmin, np.minimum),
        **{name: value for name, value in vars(layouts).items() if name.endswith("Layout")},
        "float8e4b8": DTYPES["float8e4nv"],
        "float8e4b15": DTYPES["float8e4nv"],
        "float8e5b16": DTYPES["float8e5"],
        "void": None,
        "constexpr": constexpr,
        "dtype": Dtype,
        "tensor": Tile,
        "tuple": builtins.tuple,
        "base_value": object,
        "block_type": TileType,
        "distributed_type": TileType,
        "pointer_type": PointerType,
        "shared_memory_descriptor": Shared,
        "shared_memory_descriptor_type": TileType,
        "range": range_,
        "load": pointers.load,
        "store": pointers.store,
        "atomic_add": pointers.atomic(lambda old, new: old + new),
        "atomic_max": pointers.atomic(_larger),
        "atomic_min": pointers.atomic(_smaller),
        "atomic_and": pointers.atomic(lambda old, new: old & new),
        "atomic_or": pointers.atomic(lambda old, new: old | new),
        "atomic_xor": pointers.atomic(lambda old, new: old ^ new),
        "atomic_xchg": pointers.atomic(lambda _, new: new),
        "atomic_cas": pointers.atomic(lambda old, seen, new: new if old == seen else old),
        "max": _reduction(np.max),
        "min": _reduction(np.min),
        "sum": _reduction(np.sum),
        "xor_sum": _reduction(np.bitwise_xor.reduce),
        "reduce_or": _reduction(np.any),
        "ravel": lambda x: finished(x).reshape(-1),
        "cast": lambda x, dtype, **more: tile(x).to(dtype, **more),
        "allocate_shared_memory": allocate_shared,
        "set_auto_layout": convert_layout,
        "thread_barrier": barrier,
        "static_print": _nothing,
        "device_print": _nothing,
        "assume": _nothing,
        "multiple_of": _itself,
        "max_contiguous": _itself,
        "max_constancy": _itself,
        "_unwrap_if_constexpr": _itself,
        "bank_conflicts": lambda *_: 0,
        "int1": INT1,
    }  # fmt: skip


class Absent:
    """Something of a module that is not there: told by name where a kernel uses it."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        """An error in a kernel, nothing on the host."""
        if running():
            raise NotCoveredError(f"`{self.__name__}`", current().sources.site())
        from stretto.sanitizer.stand_ins.tensors import PARTIAL  # noqa: PLC0415 - of the host

        PARTIAL.append(f"`{self.__name__}` is not there")
        return Absent(self.__name__)

    def __mro_entries__(self, _: Any) -> Any:
        return (object,)

    def __or__(self, _: Any) -> Any:
        return self

    __ror__ = __or__


def missing(module: str) -> Any:
    """Gives whatever is asked of a module that lacks it."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{module}.{name}")

    return get
