"""Runs emitted Gluon source without Triton and without a GPU, as unkindly as the hardware may.

    partitions      threads; one that waits in vain for a while is a deadlock
    mbarriers       counts, bytes and phases; more arrivals than the count are an error
    TMA             copies land late and in any order, some after a nap, in other threads; stores
                    read their tile as late as a wait lets them, and only what was fenced
    products        read their operands when they are waited for, not when they are issued;
                    what is in flight cannot be computed with; those of tensor memory run in
                    another thread, late, and arrive on barriers themselves
    shared memory   holds nonsense until it is written; tensor memory too, and what products
                    still add to there can be neither read nor written
    a loop variable after its loop is undefined, as it is in Triton
    orders          who reads or writes a tile must have heard, through barriers, of whoever
                    touched it before: a wait that is missing is an error whatever the timing is

It knows nothing of Stretto: it runs the text.
"""

# The modules that it makes up have no types.
# pyright: basic

from __future__ import annotations

import ast
import itertools
import queue
import random
import sys
import threading
import time
import types
from typing import Any

import numpy as np

from happens_before import Clock, Orders, RaceError

PATIENCE = 10.0
"""Seconds after which a wait is a deadlock."""
NAP = 0.001
"""Seconds that a copy, or whoever has arrived, may tarry."""

POLL = 0.05
"""Seconds after which whoever waits looks whether others have failed."""
COPIERS = 5
"""Copies that may overtake each other."""


class EmulationError(Exception):
    """What hardware or compiler would not stand."""


class Undefined:
    """The value of a loop variable after its loop."""

    def _refuse(self, *_: Any) -> Any:
        raise EmulationError("a loop variable is used after its loop")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __ge__ = _refuse
    __index__ = __bool__ = __int__ = __floordiv__ = __getattr__ = _refuse


class Dtype:
    """An element type."""

    def __init__(self, name: str, numpy: Any) -> None:
        self.name, self.numpy = name, numpy

    def cast(self, array: Any) -> Any:
        if self.name == "bfloat16":
            return rounded(np.asarray(array, dtype=np.float32))
        return np.asarray(array).astype(self.numpy)


def rounded(array: Any) -> Any:
    """To the nearest bfloat16, kept in 32 bits."""
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32).astype(np.uint64)
    even = (bits >> 16) & 1
    upper = ((bits + 0x7FFF + even) >> 16) << 16
    return upper.astype(np.uint32).view(np.float32)


class Reg(np.ndarray):
    """A tile, or a number, in registers; values never change, so `x += y` makes another."""

    def __iadd__(self, other: Any) -> Any:
        return self + other

    def __isub__(self, other: Any) -> Any:
        return self - other

    def __imul__(self, other: Any) -> Any:
        return self * other

    def __ixor__(self, other: Any) -> Any:
        return self ^ other

    # Towards zero, as on the machine.
    def __floordiv__(self, other: Any) -> Any:
        a, b = np.asarray(self), np.asarray(other)
        return reg((a - np.fmod(a, b)) // b)

    def __mod__(self, other: Any) -> Any:
        return reg(np.fmod(np.asarray(self), np.asarray(other)))

    def to(self, dtype: Dtype, bitcast: bool = False) -> Reg:
        return reg(np.asarray(self).view(dtype.numpy) if bitcast else dtype.cast(self))


def reg(value: Any) -> Reg:
    return np.asarray(value).view(Reg)


class Pointer:
    """Addresses: an array and offsets into it."""

    __array_ufunc__ = None  # offsets and addresses are added here, in either order

    def __init__(self, array: Any, offsets: Any = 0) -> None:
        self.array, self.offsets = array, np.asarray(offsets)

    def __add__(self, more: Any) -> Pointer:
        return Pointer(self.array, self.offsets + np.asarray(more))

    __radd__ = __add__

    def __getitem__(self, index: Any) -> Pointer:
        return Pointer(self.array, self.offsets[index])


_unfenced = threading.local()
"""What a partition has written since its last fence, which TMA and products may not see."""


def _written() -> set[int]:
    if not hasattr(_unfenced, "roots"):
        _unfenced.roots = set()
    return _unfenced.roots


def _root(array: Any) -> int:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return id(array)


def _require_fenced(tile: Any) -> None:
    if isinstance(tile, Shared) and _root(tile.array) in _written():
        raise EmulationError("what threads wrote is used before a fence")


class Shared:
    """Shared memory, or a view of it."""

    def __init__(self, array: Any, orders: Orders) -> None:
        self.array, self.orders = array, orders

    def index(self, i: Any) -> Any:
        number = int(i)
        if not 0 <= number < len(self.array):
            raise EmulationError(f"slot {number} of {len(self.array)}")
        found = self.array[number]
        return found if isinstance(found, Barrier) else Shared(found, self.orders)

    def permute(self, order: Any) -> Shared:
        return Shared(self.array.transpose(order), self.orders)

    def reshape(self, shape: Any) -> Shared:
        return Shared(self.array.reshape(shape), self.orders)

    def store(self, value: Any) -> None:
        if np.shape(value) != self.array.shape:
            raise EmulationError(f"{np.shape(value)} into {self.array.shape}")
        _written().add(_root(self.array))
        self.orders.write(self.array)
        self.array[...] = value

    def load(self, layout: Any = None) -> Reg:
        del layout
        self.orders.read(self.array)
        return reg(self.array.copy())


class TensorMemory:
    """Tiles in tensor memory, or one of them."""

    def __init__(self, array: Any, flying: list[int], emulator: Any, at: int = 0) -> None:
        self.array, self.flying, self.emulator, self.at = array, flying, emulator, at

    def index(self, i: Any) -> TensorMemory:
        number = int(i)
        if self.array.ndim != 3 or not 0 <= number < len(self.array):
            raise EmulationError(f"copy {number} of {self.array.shape}")
        return TensorMemory(self.array[number], self.flying, self.emulator, number)

    def _require(self, what: str) -> None:
        warps = self.emulator._local.warps
        if self.array.ndim != 2 or warps not in (4, 8):
            raise EmulationError(f"{self.array.shape} is {what} by {warps} warps")
        self.emulator.nap()
        if self.flying[self.at]:
            raise EmulationError(f"a sum is {what} while products add to it")

    def store(self, value: Any) -> None:
        self._require("written")
        if np.shape(value) != self.array.shape:
            raise EmulationError(f"{np.shape(value)} into {self.array.shape}")
        self.array[...] = value

    def load(self, layout: Any = None) -> Reg:
        del layout
        self._require("read")
        return reg(self.array.copy())


class Barrier:
    """An mbarrier."""

    def __init__(self, orders: Orders) -> None:
        self.changed = threading.Condition()
        self.count = self.left = -1
        self.bytes = self.phase = 0
        self._orders = orders
        self._heard: Clock = {}
        self._done: list[Clock] = [{}, {}]
        """Of the last turn of each parity: what those knew that arrived."""
        self._waiting = [0, 0]

    def init(self, count: int) -> None:
        _written().add(id(self))
        self.count = self.left = count

    def arrive(self, count: int = 1, expected: int = 0, clock: Clock | None = None) -> None:
        with self.changed:
            if self.left < count:
                raise EmulationError("a barrier has more arrivals than its count")
            self.left -= count
            self.bytes += expected
            self._turn(self._orders.give() if clock is None else clock)

    def landed(self, number: int, clock: Clock) -> None:
        with self.changed:
            self.bytes -= number
            self._turn(clock)

    def _turn(self, clock: Clock) -> None:
        for name, time_ in clock.items():
            self._heard[name] = max(time_, self._heard.get(name, 0))
        if self.left == 0 and self.bytes == 0:
            self._done[self.phase], self._heard = self._heard, {}
            self._orders.count(waiting=-self._waiting[self.phase])
            self._waiting[self.phase] = 0
            self.phase ^= 1
            self.left = self.count
            self.changed.notify_all()

    def wait(self, parity: Any) -> None:
        mine, name, until = int(parity), threading.current_thread().name, time.time() + PATIENCE
        with self.changed:
            if self.phase == mine:
                self._waiting[mine] += 1
                self._orders.count(waiting=1)
            while not self.changed.wait_for(lambda: self.phase != mine, POLL):
                if time.time() > until or self._orders.stopped or self._orders.stuck:
                    raise EmulationError(f"deadlock: {name} waits in vain")
            self._orders.take(self._done[mine])


class Flight:
    """A product in flight; nothing but a wait or another product may touch it."""

    def __init__(self, a: Any, b: Any, total: Any, adds: bool) -> None:
        self.parts, self.value = (a, b, total, adds), None
        self.reads = [tile for tile in (a, b) if isinstance(tile, Shared)]
        for tile in self.reads:
            tile.orders.depart(tile.array, self)

    def run(self) -> None:
        a, b, total, adds = self.parts
        for tile in self.reads:
            tile.orders.arrive(tile.array, self)
        left = a.array if isinstance(a, Shared) else a
        made = np.asarray(left, dtype=np.float32) @ np.asarray(b.array, dtype=np.float32)
        if adds:
            held: Any = total.value if isinstance(total, Flight) else total
            made = made + held
        self.value = reg(made.astype(np.float32))

    def __getattr__(self, name: str) -> Any:
        raise EmulationError(f"a product in flight is used ({name})")


class Descriptor:
    """A TMA descriptor."""

    def __init__(self, base: Any, shape: Any, strides: Any, block: Any, layout: Any) -> None:
        del layout
        self.base = base.reshape(-1)
        self.shape, self.strides = [int(n) for n in shape], [int(n) for n in strides]
        self.block = list(block)
        if self.strides[-1] != 1:
            raise EmulationError("TMA wants the last stride to be 1")

    def _where(self, at: Any) -> tuple[Any, Any]:
        axes = [int(a) + np.arange(n) for a, n in zip(at, self.block, strict=True)]
        grid = np.meshgrid(*axes, indexing="ij")
        inside = np.ones(self.block, dtype=bool)
        flat = np.zeros(self.block, dtype=np.int64)
        for index, size, stride in zip(grid, self.shape, self.strides, strict=True):
            inside &= (index >= 0) & (index < size)
            flat += index * stride
        return inside, flat

    def load(self, at: Any) -> Any:
        inside, flat = self._where(at)
        return np.where(inside, self.base[np.where(inside, flat, 0)], 0)

    def store(self, at: Any, tile: Any) -> None:
        inside, flat = self._where(at)
        self.base[flat[inside]] = np.asarray(tile)[inside]


class Late(threading.Thread):
    """Where TMA copies wait until they land, or products until they run: one after the other."""

    def __init__(self, seed: int, naps: float, orders: Orders) -> None:
        super().__init__(daemon=True)
        self.orders = orders
        self.todo: queue.Queue[Any] = queue.Queue()
        self.rng, self.naps = random.Random(seed), naps
        self.failed: BaseException | None = None
        self.start()

    def put(self, job: Any) -> None:
        """For later."""
        self.orders.count(jobs=1)
        self.todo.put(job)

    def run(self) -> None:
        while True:
            job = self.todo.get()
            if job is None:
                return
            if self.rng.random() < max(self.naps, 0.2):
                time.sleep(self.rng.random() * NAP * (2 if self.naps else 1))
            try:
                job()
            except BaseException as error:
                told = EmulationError(str(error)) if isinstance(error, RaceError) else error
                self.failed = self.failed or told
                self.orders.stopped = True
            finally:
                self.orders.count(jobs=-1)


class Emulator:
    """One emitted file, ready to be launched; `naps` is how often copies and arrivals tarry.

    With `slow`, arrivals of that partition alone do.
    """

    def __init__(self, source: str, seed: int = 0, naps: float = 0.0, slow: str = "") -> None:
        self._slow = slow
        self._local = threading.local()
        self.orders = Orders()
        self._products = Late(seed, naps, self.orders)
        self._copies = [Late(seed + 1 + n, naps, self.orders) for n in range(COPIERS)]
        self._turns = itertools.cycle(self._copies)
        self._naps, self._rng = naps, random.Random(seed)
        self._sums: list[TensorMemory] = []
        self._alone = threading.Lock()
        self.events: list[tuple[str, str]] = []
        """What was begun or done, and by whom, in this order."""
        self._modules = self._fake()
        tree = _Undefining().visit(ast.parse(source))
        ast.fix_missing_locations(tree)
        space: dict[str, Any] = {"__undefined__": Undefined()}
        kept = {name: sys.modules.get(name) for name in self._modules}
        sys.modules.update(self._modules)
        try:
            exec(compile(tree, "emitted", "exec"), space)
        finally:
            for name, module in kept.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module
        self.space = space

    def launch(self, *args: Any, grid: tuple[int, ...], **named: Any) -> None:
        """Run the host side on NumPy arrays, which it writes into."""
        try:
            with np.errstate(all="ignore"):
                self.space["launch"](*args, **named, grid=grid)
        finally:
            for late in (*self._copies, self._products):
                late.todo.put(None)
        for late in (*self._copies, self._products):
            if late.failed is not None:
                raise late.failed

    # What the source imports ---------------------------------------------------------------------

    def _jit(self, function: Any = None, **_: Any) -> Any:
        if function is None:
            return self._jit
        emulator = self

        class Jit:
            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

            def __getitem__(self, grid: Any) -> Any:
                def run(*args: Any, num_warps: int, maxnreg: int | None = None) -> None:
                    del maxnreg
                    made = [_argument(a) for a in args]
                    sizes = (*grid, 1, 1)[:3]
                    for at in itertools.product(*(range(n) for n in reversed(sizes))):
                        emulator._local.at = tuple(reversed(at))
                        emulator._local.grid = sizes
                        emulator._local.pending, emulator._local.stores = [], []
                        _written().clear()
                        emulator.orders.begin()
                        emulator._local.warps = num_warps
                        emulator._sums = []
                        function(*made, num_warps=num_warps)
                        emulator._require_stored()
                        if any(any(one.flying) for one in emulator._sums):
                            raise EmulationError("products are in flight at the end")

                return run

        return Jit()

    def _specialize(self, parts: Any, warps: Any, registers: Any) -> None:
        if len(parts) != len(warps) + 1 or len(warps) != len(registers):
            raise EmulationError("partitions, warps and registers do not fit together")
        if _written():
            raise EmulationError("partitions begin before what is there was fenced")
        errors: list[BaseException] = []
        ends: list[Clock] = []
        at, grid = self._local.at, self._local.grid
        of = [self._local.warps, *warps]
        known = self.orders.give()
        self.orders.count(live=len(parts) - 1)

        def go(function: Any, args: Any, number: int) -> None:
            self.orders.enter(threading.current_thread().name, known)
            self._local.warps = of[number]
            self._local.at, self._local.grid = at, grid
            self._local.pending, self._local.stores = [], []
            try:
                with np.errstate(all="ignore"):  # each thread has its own
                    function(*args)
                if self._local.pending:
                    raise EmulationError("products are in flight at the end")
                self._require_stored()
                ends.append(self.orders.give())
            except BaseException as error:
                errors.append(EmulationError(str(error)) if isinstance(error, RaceError) else error)
                self.orders.stopped = True
            finally:
                self.orders.count(live=-1)

        threads = [
            threading.Thread(target=go, args=(*part, n), name=f"partition {n}", daemon=True)
            for n, part in enumerate(parts)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(3 * PATIENCE)
        if errors:
            raise errors[0]
        if any(thread.is_alive() for thread in threads):
            raise EmulationError("deadlock: a partition does not end")
        self.orders.count(live=1)
        for clock in ends:
            self.orders.take(clock)

    def _mma(self, a: Any, b: Any, total: Any, use_acc: bool = True, is_async: bool = False) -> Any:
        self._note("product")
        _require_fenced(a)
        _require_fenced(b)
        flight = Flight(a, b, total, use_acc)
        self._local.pending.append(flight)
        return flight if is_async else self._wait(0, (flight,))

    def _wait(self, outstanding: int, deps: Any) -> Any:
        pending = self._local.pending
        while len(pending) > outstanding:
            pending.pop(0).run()
        made = tuple(d.value if isinstance(d, Flight) and d.value is not None else d for d in deps)
        return made[0] if len(made) == 1 else made

    def _allocate_tensor(self, dtype: Any, shape: Any, layout: Any) -> TensorMemory:
        rows, columns = layout
        if list(shape[-2:]) != [rows, columns] or rows not in (64, 128) or columns > 256:
            raise EmulationError(f"{shape} in blocks of {rows} x {columns}")
        copies = shape[0] if len(shape) == 3 else 1
        made = TensorMemory(np.full(shape, np.nan, dtype.numpy), [0] * copies, self)
        self._sums.append(made)
        if sum(len(one.flying) * one.array.shape[-1] for one in self._sums) > 512:
            raise EmulationError("tensor memory has 512 columns")
        return made

    def _add(self, a: Any, b: Any, total: Any, use_acc: Any = True) -> None:
        _require_fenced(a)
        _require_fenced(b)
        left, right, into, adds = a.array, b.array, total.array, bool(use_acc)
        if into.ndim != 2 or not isinstance(a, Shared) or not isinstance(total, TensorMemory):
            raise EmulationError("a product takes tiles in shared memory, its sum is elsewhere")

        known = self.orders.give()

        def job() -> None:
            self._know(known)
            self.orders.read(left)
            self.orders.read(right)
            made = np.asarray(left, dtype=np.float32) @ np.asarray(right, dtype=np.float32)
            into[...] = into + made if adds else made
            total.flying[total.at] -= 1
            self._note("done")

        self._note("product")
        total.flying[total.at] += 1
        self._products.put(job)

    def _commit(self, barrier: Barrier) -> None:
        known = self.orders.give()

        def job() -> None:
            self._know(known)
            barrier.arrive()

        self._products.put(job)

    def _know(self, known: Clock) -> None:
        """The unit that multiplies into tensor memory begins what an agent asked for."""
        if not hasattr(self.orders._mine, "clock"):
            self.orders.enter("products", {})
        self.orders.take(known)

    def _note(self, what: str) -> None:
        self.events.append((what, threading.current_thread().name))

    def _arrive(self, barrier: Barrier, count: int = 1) -> None:
        barrier.arrive(count)
        self.nap()

    def nap(self) -> None:
        """Others go ahead meanwhile."""
        if self._slow not in ("", threading.current_thread().name):
            return
        if self._rng.random() < self._naps:
            time.sleep(3 * NAP)

    @staticmethod
    def _init(value: Any) -> Any:
        if isinstance(value, Flight):
            return value
        done = Flight(None, None, None, False)
        done.value = value
        return done

    def _tma_load(self, desc: Descriptor, at: Any, barrier: Barrier, to: Shared) -> None:
        at = [int(a) for a in at]
        size = to.array.size * _width(to.array)

        name, clock = self.orders.copied()

        def job() -> None:
            self.orders.landed(to.array, name, clock)
            to.array[...] = desc.load(at)
            barrier.landed(size, clock)

        if list(to.array.shape) != desc.block:
            raise EmulationError(f"a tile of {desc.block} into {to.array.shape}")
        self._note(f"copy {desc.block}")
        next(self._turns).put(job)

    def _tma_store(self, desc: Descriptor, at: Any, tile: Shared) -> None:
        _require_fenced(tile)
        where = [int(a) for a in at]

        def job() -> None:
            self.orders.arrive(tile.array, job)
            desc.store(where, tile.array)

        self.orders.depart(tile.array, job)
        self._local.stores.append(job)

    def _store_wait(self, outstanding: int) -> None:
        while len(self._local.stores) > outstanding:
            self._local.stores.pop(0)()

    def _require_stored(self) -> None:
        if self._local.stores:
            raise EmulationError("tiles are being stored at the end")

    def _allocate(self, dtype: Any, shape: Any, layout: Any) -> Any:
        if layout == "mbarrier":
            made = [Barrier(self.orders) for _ in range(shape[0])]
            return made[0] if len(shape) == 1 else Shared(made, self.orders)
        kind = np.float32 if dtype.name == "bfloat16" else dtype.numpy
        array = np.full(shape, np.nan if np.issubdtype(kind, np.floating) else 77, kind)
        held = array.view(_Bfloat) if dtype.name == "bfloat16" else array
        return Shared(held, self.orders)

    def _load(self, pointer: Pointer, mask: Any = None, other: Any = 0) -> Reg:
        if mask is None:
            return reg(pointer.array.reshape(-1)[pointer.offsets])
        on = np.broadcast_to(np.asarray(mask), pointer.offsets.shape)
        found = pointer.array.reshape(-1)[np.where(on, pointer.offsets, 0)]
        return reg(np.where(on, found, other).astype(found.dtype))

    def _store(self, pointer: Pointer, value: Any, mask: Any = None) -> None:
        offsets, data = np.broadcast_arrays(pointer.offsets, np.asarray(value))
        on = np.broadcast_to(True if mask is None else np.asarray(mask), offsets.shape)
        pointer.array.reshape(-1)[offsets[on]] = data[on]

    def _atomic(self, change: Any) -> Any:
        def run(pointer: Pointer, *values: Any, sem: str, scope: str) -> Reg:
            orders = ("relaxed", "acquire", "release", "acq_rel")
            if sem not in orders or scope not in ("cta", "gpu", "sys"):
                raise EmulationError(f"an atomic operation that is {sem}, {scope}")
            data = pointer.array.reshape(-1)
            offsets, *parts = np.broadcast_arrays(pointer.offsets, *map(np.asarray, values))
            on = parts.pop() if len(parts) > change.__code__.co_argcount - 1 else True
            found = np.zeros(offsets.shape, data.dtype)
            with self._alone:
                for at in np.ndindex(offsets.shape):
                    if np.broadcast_to(on, offsets.shape)[at]:
                        found[at] = data[offsets[at]]
                        data[offsets[at]] = change(found[at], *(part[at] for part in parts))
            self.nap()
            return reg(found)

        return run

    def _fake(self) -> dict[str, types.ModuleType]:
        gl: Any = types.ModuleType("language")
        dtypes = {
            "float16": np.float16, "bfloat16": np.float32, "float32": np.float32,
            "float64": np.float64, "int1": np.bool_, "int8": np.int8, "int16": np.int16,
            "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16,
            "uint32": np.uint32, "uint64": np.uint64,
            "float8e4nv": np.float16, "float8e5": np.float16,  # of few values: none is rounded
        }  # fmt: skip
        for name, numpy in dtypes.items():
            setattr(gl, name, Dtype(name, numpy))
        wrap = lambda f: lambda *a, **_: reg(f(*a))  # noqa: E731
        for name in ("exp2", "exp", "log2", "log", "sqrt", "maximum", "minimum", "floor", "ceil"):
            setattr(gl, name, wrap(getattr(np, name)))
        gl.abs = wrap(np.abs)
        gl.rsqrt = wrap(lambda x: (1 / np.sqrt(x)).astype(np.asarray(x).dtype))
        gl.fma = wrap(lambda a, b, c: a * b + c)
        gl.where = wrap(np.where)
        gl.max, gl.min, gl.sum = wrap(np.max), wrap(np.min), wrap(np.sum)
        gl.cdiv = wrap(lambda a, b: (reg(a) + (b - 1)) // b)
        gl.permute, gl.reshape = wrap(np.transpose), wrap(np.reshape)
        gl.split = lambda x: (reg(x[..., 0]), reg(x[..., 1]))
        gl.join = wrap(lambda a, b: np.stack((a, b), axis=-1))
        gl.to_tensor = lambda x: reg(np.int32(x))
        gl.umulhi = wrap(_upper_half)
        gl.thread_barrier = lambda: None
        gl.zeros = lambda s, d, _=None: reg(np.zeros(s, d.numpy))
        gl.full = lambda s, v, d, _=None: reg(np.full(s, v, d.numpy))
        gl.arange = lambda a, b, **_: reg(np.arange(a, b, dtype=np.int32))
        gl.convert_layout = _converted
        gl.static_range = range
        gl.program_id = lambda axis: reg(np.int32(self._local.at[axis]))
        gl.num_programs = lambda axis: reg(np.int32(self._local.grid[axis]))
        ticks = itertools.count(1)
        gl.inline_asm_elementwise = lambda _, __, given, *_a, **_k: (
            given[0] if given else reg(np.int64(next(ticks)))  # held numbers; clocks
        )
        gl.allocate_shared_memory = self._allocate
        gl.warp_specialize = self._specialize
        gl.load, gl.store = self._load, self._store
        gl.atomic_add = self._atomic(lambda old, new: old + new)
        gl.atomic_max, gl.atomic_min = self._atomic(_larger), self._atomic(_smaller)
        gl.atomic_and = self._atomic(lambda old, new: old & new)
        gl.atomic_or = self._atomic(lambda old, new: old | new)
        gl.atomic_xor = self._atomic(lambda old, new: old ^ new)
        gl.atomic_xchg = self._atomic(lambda _, new: new)
        gl.atomic_cas = self._atomic(lambda old, seen, new: new if old == seen else old)
        gl.constexpr = lambda x: x
        for name in ("NVMMADistributedLayout", "DotOperandLayout", "SliceLayout", "BlockedLayout"):
            setattr(gl, name, lambda *_: None)
        gl.NVMMASharedLayout = types.SimpleNamespace(get_default_for=lambda *_, **__: None)
        gl.PropagateNan = types.SimpleNamespace(ALL=None)
        mbarrier = types.SimpleNamespace(
            MBarrierLayout=lambda: "mbarrier",
            init=lambda b, count: b.init(count),
            expect=lambda b, n: b.arrive(1, n),
            arrive=self._arrive,
            wait=lambda b, parity: b.wait(parity),
        )
        tma = types.SimpleNamespace(
            async_copy_global_to_shared=self._tma_load,
            async_copy_shared_to_global=self._tma_store,
            store_wait=self._store_wait,
        )
        hopper: Any = types.ModuleType("hopper")
        hopper.__dict__.update(
            fence_async_shared=lambda: _written().clear(), mbarrier=mbarrier, tma=tma,
            warpgroup_mma=self._mma, warpgroup_mma_init=self._init, warpgroup_mma_wait=self._wait,
        )  # fmt: skip
        blackwell: Any = types.ModuleType("blackwell")
        blackwell.__dict__.update(
            fence_async_shared=lambda: _written().clear(), mbarrier=mbarrier, tma=tma,
            TensorMemoryLayout=lambda block, **_: tuple(block),
            allocate_tensor_memory=self._allocate_tensor,
            tcgen05_mma=self._add, tcgen05_commit=self._commit,
        )  # fmt: skip
        gluon: Any = types.ModuleType("gluon")
        gluon.jit, gluon.language = self._jit, gl
        experimental: Any = types.ModuleType("experimental")
        experimental.gluon = gluon
        host: Any = types.ModuleType("host")
        host.TensorDescriptor = Descriptor
        base = "triton.experimental"
        return {
            "triton": types.ModuleType("triton"),
            base: experimental,
            f"{base}.gluon": gluon,
            f"{base}.gluon.language": gl,
            f"{base}.gluon.language.nvidia": types.ModuleType("nvidia"),
            f"{base}.gluon.language.nvidia.hopper": hopper,
            f"{base}.gluon.language.nvidia.blackwell": blackwell,
            f"{base}.gluon.nvidia": types.ModuleType("nvidia"),
            f"{base}.gluon.nvidia.hopper": host,
        }


class _Bfloat(np.ndarray):
    """Shared memory of bfloat16, kept in 32 bits."""


def _width(array: Any) -> int:
    """Bytes of an element on the machine."""
    at = array
    while isinstance(at, np.ndarray):
        if isinstance(at, _Bfloat):
            return 2
        at = at.base
    return array.itemsize


def _upper_half(a: Any, b: Any) -> Any:
    if a.dtype != np.uint32 or b.dtype != np.uint32:
        raise EmulationError(f"the upper half of {a.dtype} times {b.dtype}")
    return ((a.astype(np.uint64) * b.astype(np.uint64)) >> 32).astype(np.uint32)


def _larger(old: Any, new: Any) -> Any:
    return max(old, new)


def _smaller(old: Any, new: Any) -> Any:
    return min(old, new)


def _converted(value: Any, layout: Any) -> Any:
    del layout
    if isinstance(value, Flight):
        raise EmulationError("a product in flight is used")
    return value


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return Pointer(value)
    if isinstance(value, int):
        return reg(np.int32(value))
    return reg(np.float32(value)) if isinstance(value, float) else value


class _Undefining(ast.NodeTransformer):
    """After each loop its variable is undefined."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        gone = ast.Assign(
            targets=[ast.Name(node.target.id, ast.Store())],
            value=ast.Name("__undefined__", ast.Load()),
        )
        return [node, gone]
