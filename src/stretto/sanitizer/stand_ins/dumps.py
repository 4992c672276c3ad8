"""What each operation of a TTGIR dump does, by the stand-ins that Gluon kernels use as well.

Arrays whose sizes a dump does not tell are large, and reads beyond them begin anew.
"""

# Tiles are NumPy's.
# pyright: basic

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from stretto.sanitizer.block import NotCoveredError, current
from stretto.sanitizer.buffers import Shared, allocate_shared
from stretto.sanitizer.layouts import MBarrierLayout
from stretto.sanitizer.pointers import Descriptor, Pointer, Storage
from stretto.sanitizer.pointers import load as load_global
from stretto.sanitizer.pointers import store as store_global
from stretto.sanitizer.stand_ins import language, nvidia, products
from stretto.sanitizer.values import DTYPES, INT1, INT64, Dtype, Tile, tile

ELEMENTS = 1 << 20
"""Of an array that a dump is run on."""
NAMES = {
    "i1": "int1", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16",
    "bf16": "bfloat16", "f32": "float32", "f64": "float64", "f8E4M3FN": "float8e4nv",
    "f8E5M2": "float8e5", "index": "int64",
}  # fmt: skip
_NUMBERS = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and,
    "ori": np.bitwise_or, "xori": np.bitwise_xor, "shli": np.left_shift, "shrsi": np.right_shift,
    "shrui": np.right_shift, "minsi": np.minimum, "maxsi": np.maximum, "minui": np.minimum,
    "maxui": np.maximum, "addf": np.add, "subf": np.subtract, "mulf": np.multiply,
    "divf": np.divide, "maxnumf": np.fmax, "minnumf": np.fmin, "maximumf": np.maximum,
    "minimumf": np.minimum,
}  # fmt: skip
_COMPARED = {"eq": "__eq__", "ne": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__"}
_MATH = {"absf": "abs", "rsqrt": "rsqrt"}


def shape_of(type_: str) -> tuple[list[int], Dtype]:
    """Of a tensor, a memory descriptor or a number."""
    found = re.search(r"(?:tensor|memdesc|ptr)<((?:\d+x)*)(!tt\.ptr<)?(\w+)", type_)
    if found is None or "<" not in type_:
        return [], DTYPES[NAMES[type_.strip()]]
    return [int(n) for n in found[1].split("x") if n], DTYPES[NAMES[found[3]]]


class Scratch:
    """Where a kernel makes a descriptor."""

    desc: Any = None


class Runtime:
    """Operations by their names; `text` is what the dump says besides operands."""

    def __getattr__(self, name: str) -> Any:
        short = name.removesuffix("_")
        if short in _NUMBERS:
            change = _NUMBERS[short]
            return lambda a, b, **_: Tile(
                a.dtype.cast(change(a.value, b.value)), a.dtype
            ).tainted(a, b) if isinstance(a, Tile) else finished_pair(a, b, change)  # fmt: skip
        known = language.names()
        if _MATH.get(short, short) in known:
            return lambda *given, **_: known[_MATH.get(short, short)](*given)
        raise NotCoveredError(f"`{short}` of TTGIR", current().sources.site())

    @staticmethod
    def several(given: Any) -> Any:
        """Results of an operation that has several."""
        return given if isinstance(given, tuple) else (given,)

    @staticmethod
    def reduce(given: Any, axis: int, combine: Any) -> Any:
        """Along an axis."""
        made = language.reduce(tuple(given), axis, combine)
        return made if isinstance(made, tuple) else (made,)

    # Numbers ------------------------------------------------------------------------------------

    @staticmethod
    def constant_(*, text: str, type: str) -> Tile:
        """`dense<0.0> : tensor<…>` or `64 : i32`."""
        sizes, dtype = shape_of(type)
        body: str = text.removeprefix("dense<").rstrip(">").strip()
        if body in ("true", "false"):
            value: Any = body == "true"
        elif body.startswith("0x"):
            bits = int(body, 16)
            formats = {32: ("I", "f"), 64: ("Q", "d"), 16: ("H", "e")}
            as_int, as_float = formats[dtype.primitive_bitwidth]
            floating = dtype.kind == "f" and dtype.name != "bfloat16"
            value = struct.unpack(as_float, struct.pack(as_int, bits))[0] if floating else bits
            if dtype.name == "bfloat16":
                value = float(dtype.decode(np.array([bits], np.uint16))[0])
        else:
            value = float(body) if dtype.kind == "f" else int(float(body))
        return Tile(np.full(sizes, dtype.cast(value), dtype.wide)[()], dtype)

    @staticmethod
    def divsi_(a: Any, b: Any, **_: Any) -> Any:
        """Towards zero."""
        return a // b

    divui_ = divsi_

    @staticmethod
    def ceildivsi_(a: Any, b: Any, **_: Any) -> Any:
        """Rounded up."""
        return (a + b - 1) // b

    @staticmethod
    def remsi_(a: Any, b: Any, **_: Any) -> Any:
        """What is left."""
        return a % b

    remui_ = remsi_

    @staticmethod
    def negf_(a: Any, **_: Any) -> Any:
        """The opposite."""
        return -a

    @staticmethod
    def cmpi_(a: Any, b: Any, *, text: str, **_: Any) -> Any:
        """`slt, %a, %b`."""
        which = text.split(",", maxsplit=1)[0].strip().lstrip("suo")
        if which == "ge":
            return b.__le__(a)
        if which not in _COMPARED:
            raise NotCoveredError(f"a comparison `{which}`", current().sources.site())
        return getattr(a, _COMPARED[which])(b)

    cmpf_ = cmpi_

    @staticmethod
    def select_(condition: Any, a: Any, b: Any, **_: Any) -> Any:
        """One or the other."""
        if not isinstance(a, Tile):
            return a if bool(condition) else b
        return language.where(condition, a, b)

    @staticmethod
    def extsi_(a: Any, *, type: str, **_: Any) -> Any:
        """Any cast."""
        return products.finished(a).to(shape_of(type)[1])

    extui_ = trunci_ = sitofp_ = uitofp_ = fptosi_ = fptoui_ = truncf_ = extf_ = extsi_
    index_cast_ = fp_to_fp_ = extsi_

    @staticmethod
    def bitcast_(a: Any, *, type: str, **_: Any) -> Any:
        """The same bits."""
        if isinstance(a, Pointer):
            return a
        return tile(a).to(shape_of(type)[1], bitcast=True)

    # Tiles --------------------------------------------------------------------------------------

    @staticmethod
    def get_program_id_(*, text: str, **_: Any) -> Tile:
        """`x`."""
        return language.program_id("xyz".index(text.strip()[0]))

    @staticmethod
    def get_num_programs_(*, text: str, **_: Any) -> Tile:
        """`x`."""
        return language.num_programs("xyz".index(text.strip()[0]))

    @staticmethod
    def make_range_(*, text: str, **_: Any) -> Tile:
        """`{end = 64 : i32, start = 0 : i32}`."""
        end, start = (re.search(rf"{n} = (\d+)", text) for n in ("end", "start"))
        assert end is not None
        assert start is not None
        return language.arange(int(start[1]), int(end[1]))

    @staticmethod
    def splat_(a: Any, *, type: str, **_: Any) -> Any:
        """One value everywhere."""
        sizes, _dtype = shape_of(type)
        if isinstance(a, Pointer):
            return Pointer(a.storage, a.element, np.broadcast_to(a.offsets, sizes))
        return Tile(np.broadcast_to(a.value, sizes), a.dtype).tainted(a)

    broadcast_ = splat_

    @staticmethod
    def reshape_(a: Any, *, type: str, **_: Any) -> Any:
        """Another shape."""
        return a.reshape(shape_of(type)[0])

    @staticmethod
    def expand_dims_(a: Any, *, text: str, **_: Any) -> Any:
        """`{axis = 1 : i32}`."""
        axis = re.search(r"axis = (\d+)", text)
        assert axis is not None
        return language.expand_dims(a, int(axis[1]))

    @staticmethod
    def trans_(a: Any, *, text: str, **_: Any) -> Any:
        """`{order = array<i32: 1, 0>}`."""
        return a.permute(_order(text))

    @staticmethod
    def convert_layout_(a: Any, **_: Any) -> Any:
        """The same tile."""
        return products.finished(a) if not isinstance(a, Pointer) else a

    @staticmethod
    def addptr_(a: Any, b: Any, **_: Any) -> Any:
        """Addresses further on."""
        return a + b

    @staticmethod
    def load_(pointer: Any, *rest: Any, **_: Any) -> Any:
        """From global memory."""
        mask, other = [*rest, None, None][:2]
        return load_global(pointer, mask, other)

    @staticmethod
    def store_(pointer: Any, value: Any, mask: Any = None, **_: Any) -> None:
        """Into global memory."""
        store_global(pointer, value, mask)

    @staticmethod
    def dot_(a: Any, b: Any, c: Any, **_: Any) -> Any:
        """mma.sync."""
        return products.mma_v2(a, b, c)

    @staticmethod
    def assert_(*_: Any, **__: Any) -> None:
        """Not looked at."""

    # Shared memory ------------------------------------------------------------------------------

    @staticmethod
    def local_alloc_(value: Any = None, *, type: str, **_: Any) -> Any:
        """Barriers are arrays of 64-bit integers with a last axis of 1."""
        sizes, dtype = shape_of(type)
        if dtype == INT64 and value is None and sizes[-1] == 1:
            return allocate_shared(INT64, sizes, MBarrierLayout())
        return allocate_shared(dtype, sizes, None, value)

    @staticmethod
    def memdesc_index_(a: Any, at: Any = None, *, text: str, **_: Any) -> Any:
        """`%a[%i]`."""
        if at is None:
            number = re.search(r"\[(\d+)\]", text)
            at = int(number[1]) if number else 0
        return a.index(at)

    @staticmethod
    def memdesc_subslice_(a: Any, *, text: str, type: str) -> Any:
        """`%a[0, 64]`."""
        sizes = shape_of(type.split(",", maxsplit=1)[0])[0]
        starts = re.search(r"\[([\d, ]+)\]", text)
        for axis, start in enumerate((starts[1] if starts else "0").split(",")):
            a = a.slice(int(start), sizes[axis], axis)
        return a

    @staticmethod
    def memdesc_trans_(a: Any, *, text: str, **_: Any) -> Any:
        """Axes in another order."""
        return a.permute(_order(text))

    @staticmethod
    def memdesc_reshape_(a: Any, *, type: str, **_: Any) -> Any:
        """Another shape."""
        return a.reshape(shape_of(type)[0])

    @staticmethod
    def memdesc_reinterpret_(a: Any, *, type: str, **_: Any) -> Any:
        """The same bytes."""
        sizes, dtype = shape_of(type)
        return a.reinterpret(dtype, sizes)

    @staticmethod
    def local_load_(a: Any, *_: Any, **__: Any) -> Any:
        """Into registers."""
        return a.load()

    @staticmethod
    def local_store_(value: Any, to: Any, **_: Any) -> None:
        """From registers."""
        to.store(value)

    @staticmethod
    def local_dealloc_(a: Any, **_: Any) -> None:
        """No more of it."""

    @staticmethod
    def async_copy_global_to_local_(pointer: Any, to: Any, *rest: Any, text: str, **_: Any) -> None:
        """`%ptr, %slot mask %m other %o`."""
        mask = rest[0] if "mask" in text and rest else None
        nvidia.async_copy(to, pointer, mask)

    @staticmethod
    def async_commit_group_(*_: Any, **__: Any) -> None:
        """What was copied so far is a group."""
        nvidia.commit_group()

    @staticmethod
    def async_wait_(*_: Any, text: str, **__: Any) -> None:
        """`{num = 2 : i32}`."""
        number = re.search(r"num = (\d+)", text)
        nvidia.wait_group(int(number[1]) if number else 0)

    @staticmethod
    def barrier_(*_: Any, **__: Any) -> None:
        """All threads meet."""
        language.barrier()

    # Hopper -------------------------------------------------------------------------------------

    @staticmethod
    def init_barrier_(a: Any, *, text: str, **_: Any) -> None:
        """`%b, 1`."""
        nvidia.init(a, int(text.rpartition(",")[2]))

    @staticmethod
    def inval_barrier_(a: Any, **_: Any) -> None:
        """Its memory is free."""
        nvidia.invalidate(a)

    @staticmethod
    def barrier_expect_(a: Any, *pred: Any, text: str, **_: Any) -> None:
        """`%b, 32768, %pred`."""
        number = re.search(r", (\d+)", text)
        nvidia.expect(a, int(number[1]) if number else 0, pred=pred[0] if pred else True)

    @staticmethod
    def wait_barrier_(a: Any, phase: Any, *more: Any, text: str, **_: Any) -> None:
        """`%b, %phase, %pred deps %x`."""
        pred = (
            more[0]
            if more and re.match(r"[^,]*,[^,]*,", text.split(" deps", maxsplit=1)[0])
            else True
        )
        nvidia.wait(a, phase, pred)

    @staticmethod
    def arrive_barrier_(a: Any, *pred: Any, text: str, **_: Any) -> None:
        """`%b, 1, %pred`."""
        number = re.search(r", (\d+)", text)
        count = int(number[1]) if number else 1
        nvidia.arrive(a, count=count, pred=pred[0] if pred else True)

    @staticmethod
    def fence_async_shared_(**_: Any) -> None:
        """Between threads and the asynchronous proxy."""
        nvidia.fence_async_shared()

    @staticmethod
    def global_scratch_alloc_(**_: Any) -> Scratch:
        """For a descriptor."""
        return Scratch()

    @staticmethod
    def tensormap_create_(to: Any, pointer: Any, *numbers: Any, text: str, **_: Any) -> None:
        """`%at, %ptr, [box], [sizes], [strides in bytes], …`, the last axis first."""
        lists = [re.findall(r"%", part) for part in re.findall(r"\[([^\]]*)\]", text)]
        rank = len(lists[0])
        box = [int(n) for n in numbers[:rank]][::-1]
        sizes = [int(n) for n in numbers[rank : 2 * rank]][::-1]
        item = pointer.element.bytes
        steps = [int(n) // item for n in numbers[2 * rank : 3 * rank - 1]][::-1]
        to.desc = (pointer, sizes, [*steps, 1], box)

    @staticmethod
    def tensormap_fenceproxy_acquire_(*_: Any, **__: Any) -> None:
        """The descriptor is there."""

    @staticmethod
    def reinterpret_tensor_descriptor_(at: Any, *, type: str, **_: Any) -> Any:
        """As one of tiles."""
        pointer, sizes, steps, _box = at.desc
        block, dtype = shape_of(type)
        start = int(pointer.offsets)
        return Descriptor(pointer.storage, dtype, start, sizes, steps, block, None)

    @staticmethod
    def async_tma_copy_global_to_local_(desc: Any, *given: Any, **_: Any) -> None:
        """`%desc[%i, %j] %slot, %barrier, %pred`."""
        rank = len(desc.block_shape)
        slot, barrier, *pred = given[rank:]
        at = [int(n) for n in given[:rank]]
        nvidia.async_load(desc, at, barrier, slot, pred=pred[0] if pred else True)

    @staticmethod
    def async_tma_copy_local_to_global_(desc: Any, *given: Any, **_: Any) -> None:
        """`%desc[%i, %j] %tile`."""
        rank = len(desc.block_shape)
        nvidia.async_store(desc, [int(n) for n in given[:rank]], given[rank])

    @staticmethod
    def async_tma_reduce_(desc: Any, *given: Any, text: str, **_: Any) -> None:
        """`add, %desc[%i, %j] %tile`."""
        rank = len(desc.block_shape)
        kind = text.split(",", maxsplit=1)[0].strip()
        at = [int(n) for n in given[:rank]]
        nvidia.TMA[f"async_atomic_{kind}"](desc, at, given[rank])

    @staticmethod
    def async_tma_store_wait_(*, text: str, **_: Any) -> None:
        """`{pendings = 0 : i32}`."""
        number = re.search(r"pendings = (\d+)", text)
        nvidia.store_wait(int(number[1]) if number else 0)

    @staticmethod
    def warp_group_dot_(a: Any, b: Any, c: Any, *use: Any, text: str, **_: Any) -> Any:
        """`%a, %b, %c, %use {isAsync = true}`."""
        held = a if isinstance(a, Shared) else products.finished(a)
        return products.warpgroup_mma(
            held, b, c, use_acc=use[0] if use else True, is_async="isAsync = true" in text
        )

    @staticmethod
    def warp_group_dot_wait_(*given: Any, text: str, **_: Any) -> Any:
        """`%t, %a, %b {pendings = 1 : i32}`."""
        number = re.search(r"pendings = (\d+)", text)
        return products.warpgroup_mma_wait(int(number[1]) if number else 0, given)


def finished_pair(a: Any, b: Any, change: Any) -> Any:
    """Numbers that may be sums in flight, which is an error."""
    x, y = products.finished(a), products.finished(b)
    return Tile(x.dtype.cast(change(x.value, y.value)), x.dtype)


def _order(text: str) -> list[int]:
    found = re.search(r"order = array<i32: ([\d, ]+)>", text)
    return [int(n) for n in (found[1] if found else "1, 0").split(",")]


def argument(type_: str, number: int, seed: int) -> Any:
    """Something for a parameter: an array, a number, a descriptor of an array."""
    rng = np.random.default_rng(seed)
    if type_.startswith("!tt.ptr"):
        found = re.search(r"<(\w+)", type_)
        dtype = DTYPES[NAMES[found[1] if found else "f32"]]
        if dtype.kind == "f":
            raw = dtype.encode(rng.standard_normal(ELEMENTS, dtype=np.float32))
        else:
            raw = np.zeros(ELEMENTS, dtype.raw)
        storage = Storage(raw, f"argument {seed + 1}")
        storage.wraps = True
        return Pointer(storage, dtype, np.int64(0))
    if type_.startswith("!tt.tensordesc"):
        block, dtype = shape_of(type_)
        raw = dtype.encode(rng.standard_normal(ELEMENTS, dtype=np.float32))
        sizes = [max(number, 1)] * len(block)
        steps = [max(number, 1) ** n for n in range(len(block))][::-1]
        return Descriptor(Storage(raw, f"argument {seed + 1}"), dtype, 0, sizes, steps, block, None)
    dtype = DTYPES[NAMES[type_.strip()]]
    if dtype == INT1:
        return Tile(np.bool_(number % 2), dtype)
    return Tile(dtype.cast(1.0 if dtype.kind == "f" else number), dtype)
