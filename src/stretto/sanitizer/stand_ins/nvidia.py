"""mbarriers, TMA, cp.async, fences and cluster operations, as Gluon names them.

expect ─► copy ─► lands late ─► wait        store reads until store_wait
"""

# Tiles are NumPy's.
# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.sanitizer.barriers import Copy
from stretto.sanitizer.block import NotCoveredError, current
from stretto.sanitizer.buffers import Barriers, Outside, Shared, allocate_shared
from stretto.sanitizer.finding import Access, Site
from stretto.sanitizer.layouts import MBarrierLayout
from stretto.sanitizer.pointers import Descriptor, Pointer, Storage, true
from stretto.sanitizer.scheduler import merge
from stretto.sanitizer.values import INT32, INT64, Tile, tile

# mbarriers ----------------------------------------------------------------------------------------


def init(mbarrier: Any, count: Any = 1) -> None:
    """Set its count."""
    block = current()
    barrier = mbarrier.get()
    access = block.access("init")
    _require_unused(barrier, access, "initialized")
    barrier.init(int(count))
    barrier.born = access


def invalidate(mbarrier: Any) -> None:
    """Its memory is free for other things."""
    block = current()
    barrier = mbarrier.initialized()
    _require_unused(barrier, block.access("invalidate"), "invalidated")
    barrier.initialized = False


def _require_unused(barrier: Any, access: Access, done: str) -> None:
    block = current()
    clock = block.agent.clock
    for user in barrier.users.values():
        if clock.get(user.component, 0) < user.time:
            block.report(
                "barrier-reinitialized",
                access.site,
                f"`{barrier.name}` is {done} while {user.agent} may still use it "
                f"({user.what}, line {user.site.line})",
                slot=barrier.name,
                first=user,
                second=access,
                agents=(access.agent, user.agent),
            )
            return


def _used(mbarrier: Any, what: str) -> tuple[Any, Access]:
    """A barrier that is used, by somebody who must know that it was initialized."""
    block = current()
    if not isinstance(mbarrier, Barriers | Outside):
        raise block.refuse("illegal", "a barrier was expected, memory of another kind is given")
    barrier = mbarrier.initialized()
    access = block.access(what)
    block.history.touches(access, barrier.name)
    born = barrier.born
    if born is not None and block.agent.clock.get(born.component, 0) < born.time:
        block.report(
            "barrier-uninitialized",
            access.site,
            f"`{barrier.name}` is used by {access.agent} while nothing orders that after its "
            f"initialization (line {born.site.line})",
            slot=barrier.name,
            first=born,
            second=access,
            agents=(access.agent, born.agent),
        )
        barrier.born = None
    barrier.users[access.component] = access
    return barrier, access


def expect(mbarrier: Any, bytes_per_cta: Any = None, pred: Any = True, **_: Any) -> None:
    """Bytes that a phase waits for, and an arrival."""
    if not true(pred):
        return
    barrier, access = _used(mbarrier, "expect")
    if bytes_per_cta is not None:
        barrier.expect(int(bytes_per_cta), access)
    _arrive(barrier, 1, access)


def arrive(mbarrier: Any, *, count: Any = 1, pred: Any = True, **_: Any) -> None:
    """So many arrivals."""
    if not true(pred):
        return
    barrier, access = _used(mbarrier, "arrive")
    _arrive(barrier, int(count), access)


def _arrive(barrier: Any, count: int, access: Access) -> None:
    block = current()
    agent = block.agent
    clock, fenced = dict(agent.clock), dict(agent.fenced)
    agent.tick()
    barrier.arrive(count, access, clock, fenced)
    block.scheduler.pause()


def wait(mbarrier: Any, phase: Any, pred: Any = True, deps: Any = ()) -> None:
    """Until a phase is over."""
    del deps
    if not true(pred):
        return
    barrier, access = _used(mbarrier, "wait")
    agent = current().agent
    agent.context["waits_at"] = access.site
    barrier.wait(int(phase) & 1, agent, access)


def allocate_mbarrier(batch: Any = None, two_ctas: Any = False) -> Any:
    """One barrier, or several."""
    count = int(current().options.get("num_ctas", 1))
    count = count // 2 if two_ctas else count
    shape = [count] if batch is None else [int(batch), count]
    return allocate_shared(INT64, shape, MBarrierLayout.multicta(1))


# Fences -------------------------------------------------------------------------------------------


def fence_async_shared(cluster: Any = False) -> None:
    """What threads did so far comes before what the asynchronous proxy does from here on."""
    del cluster
    agent = current().agent
    merge(agent.fenced, agent.clock)
    # The accesses of the same instant are meant as well.
    agent.fenced[agent.component] = agent.clock[agent.component]
    agent.tick()


def cluster_barrier(relaxed: Any = False) -> None:
    """All blocks of the cluster meet; they are run as one."""
    del relaxed
    current().scheduler.pause()


# TMA ----------------------------------------------------------------------------------------------


def _numbers(coord: Any) -> list[int]:
    given = coord if isinstance(coord, list | tuple) else [coord]
    return [int(c) for c in given]


def _begin_copy(result: Any, mbarrier: Any, size: int, read: Any, what: str = "TMA copy") -> None:
    """A copy that lands in shared memory some time later."""
    block = current()
    agent = block.agent
    barrier, _ = _used(mbarrier, f"{what} to it")
    number = block.new_component()
    access = block.access(what, "async", number, 1)
    born = barrier.born
    if born is not None and agent.fenced.get(born.component, 0) < born.time:
        block.report(
            "unfenced-barrier",
            access.site,
            f"a copy completes `{barrier.name}`, which was initialized at line {born.site.line} "
            "with no fence_async_shared() since",
            slot=barrier.name,
            first=born,
            second=access,
        )
    clock, fenced = dict(agent.clock), dict(agent.fenced)
    agent.tick()
    result.allocation.write(result.raw, access, clock, fenced)
    copy = Copy(number, size, clock, fenced, access)
    barrier.flying.append(copy)
    block.landing[number] = barrier

    def job() -> None:
        result.raw[...] = read()
        barrier.landed(copy)

    block.scheduler.put(("copy", number), job)
    block.scheduler.pause()


def async_load(
    tensor_desc: Any, coord: Any, barrier: Any = None, result: Any = None, pred: Any = True,
    multicast: Any = False,
) -> None:  # fmt: skip
    """A tile by TMA."""
    del multicast
    if not true(pred):
        return
    at = _numbers(coord)
    _require_tile(tensor_desc, result)
    watched(tensor_desc, at)
    same = tensor_desc.dtype == result.dtype
    _begin_copy(
        result,
        barrier,
        result.nbytes_per_cta,
        lambda: (
            tensor_desc.read(at)
            if same
            else result.dtype.encode(tensor_desc.dtype.decode(tensor_desc.read(at)))
        ),
    )


def _require_tile(desc: Any, tile_: Any) -> None:
    if not isinstance(desc, Descriptor) or not isinstance(tile_, Shared | Outside):
        raise current().refuse("illegal", "TMA takes a descriptor and shared memory")
    if list(tile_.shape) != desc.block_shape:
        raise current().refuse(
            "illegal", f"a tile of {desc.block_shape} and shared memory of {list(tile_.shape)}"
        )
    if tile_.dtype != desc.dtype and not desc.loose:
        raise current().refuse("illegal", f"a tile of {desc.dtype} in memory of {tile_.dtype}")


def watched(desc: Descriptor, at: list[int]) -> None:
    """A tile of global memory is read."""
    if desc.storage.writers is not None:
        desc.storage.note_read(desc.offsets(at), current().access("TMA copy from global memory"))


def async_gather(
    tensor_desc: Any, x_offsets: Any, y_offset: Any, barrier: Any, result: Any, pred: Any = True,
    multicast: Any = False,
) -> None:  # fmt: skip
    """Rows by TMA."""
    del multicast
    if not true(pred):
        return
    rows, column = np.asarray(tile(x_offsets).value), int(y_offset)

    def read() -> Any:
        width = result.raw.shape[-1]
        made = np.zeros(result.raw.shape, result.raw.dtype)
        for to, row in enumerate(rows):
            if 0 <= row < tensor_desc.sizes[0]:
                part = tensor_desc._view[row, max(column, 0) : column + width]
                made[to, : len(part)] = part
        return made

    _begin_copy(result, barrier, result.nbytes_per_cta, read, "TMA gather")


class _Store:
    """A TMA store that may still read its tile."""

    def __init__(self, site: Site, number: int, run: Any) -> None:
        self.site, self.number, self.run = site, number, run


def _begin_store(src: Any, run: Any, what: str) -> Access:
    block = current()
    agent = block.agent
    component = block.own("tma store")
    number = agent.context.get("tma stores", 0) + 1
    agent.context["tma stores"] = number
    access = block.access(what, "async", component, number)
    src.allocation.read(src.raw, access, agent.clock, agent.fenced)
    agent.context.setdefault("stores", []).append(_Store(access.site, number, run))
    block.scheduler.pause()
    return access


def async_store(tensor_desc: Any, coord: Any, src: Any) -> None:
    """A tile by TMA into global memory."""
    _store(tensor_desc, coord, src, "store")


def _store(tensor_desc: Any, coord: Any, src: Any, kind: str) -> None:
    at = _numbers(coord)
    _require_tile(tensor_desc, src)

    def run() -> None:
        raw = src.raw
        if src.dtype != tensor_desc.dtype:
            raw = tensor_desc.dtype.encode(tensor_desc.dtype.cast(src.dtype.decode(raw)))
        tensor_desc.write(at, raw, kind)

    access = _begin_store(src, run, f"TMA {kind}")
    if kind == "store":
        component = current().own("tma store to global memory")
        written = access._replace(component=component)
        tensor_desc.storage.note_write(tensor_desc.offsets(at), written)


def _reducing(kind: str) -> Any:
    def reduce(tensor_desc: Any, coord: Any, src: Any) -> None:
        _store(tensor_desc, coord, src, kind)

    return reduce


def async_scatter(tensor_desc: Any, x_offsets: Any, y_offset: Any, src: Any) -> None:
    """Rows by TMA into global memory."""
    rows, column = np.asarray(tile(x_offsets).value), int(y_offset)

    def run() -> None:
        width = src.raw.shape[-1]
        for index, row in enumerate(rows):
            if 0 <= row < tensor_desc.sizes[0]:
                there = tensor_desc._view[row, column : column + width]
                there[...] = src.raw[index, : len(there)]

    _begin_store(src, run, "TMA scatter")


def store_wait(pendings: Any = 0, read_only: Any = True) -> None:
    """Until at most so many stores still read their tiles, or (read_only=False) are not done."""
    block = current()
    agent = block.agent
    stores = agent.context.setdefault("stores", [])
    done = 0
    while len(stores) > int(pendings):
        store = stores.pop(0)
        store.run()
        done = store.number
    component = block.own("tma store")
    agent.clock[component] = max(agent.clock.get(component, 0), done)
    if not true(read_only):
        reached = agent.context.get("tma stores", 0) - len(stores)
        agent.clock[block.own("tma store to global memory")] = reached
    block.scheduler.pause()


def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, layout: Any, padding_option: Any = "zero"
) -> Descriptor:
    """A descriptor made in the kernel."""
    if not isinstance(base, Pointer):
        raise current().refuse("illegal", "a descriptor is made of a pointer")
    storage: Storage = base.storage
    sizes = [int(n) for n in shape]
    steps = [int(n) for n in strides]
    last = int(base.offsets) + sum((n - 1) * s for n, s in zip(sizes, steps, strict=True))
    if min(sizes) > 0 and last >= storage.raw.size:
        raise current().refuse(
            "out-of-bounds",
            f"a descriptor of {sizes} with strides {steps} reaches beyond {storage.name}",
        )
    return Descriptor(
        storage, base.element, int(base.offsets), sizes, steps, block_shape, layout,
        str(padding_option),
    )  # fmt: skip


def async_load_im2col(*_: Any, **__: Any) -> None:
    """Not covered."""
    raise NotCoveredError("tma.async_load_im2col", current().sources.site())


# cp.async -----------------------------------------------------------------------------------------


def async_copy(smem: Any, pointer: Any, mask: Any = None, other: Any = None, **_: Any) -> None:
    """Elements by threads, asynchronously."""
    del other
    block = current()
    agent = block.agent
    offsets, on, _ = pointer.index(mask)
    if list(np.shape(offsets)) != list(smem.shape):
        raise block.refuse("illegal", f"{list(np.shape(offsets))} copied into {list(smem.shape)}")
    component = block.own("cp.async")
    group = agent.context.get("cp.async groups", 0) + 1
    access = block.access("asynchronous copy", "copy", component, group)
    smem.allocation.write(smem.raw, access, agent.clock, agent.fenced)
    storage = pointer.storage

    def job() -> None:
        smem.raw[...] = np.where(on, storage.raw[np.where(on, offsets, 0)], 0)

    agent.context.setdefault("copies", []).append((group, job))
    block.scheduler.pause()


def commit_group() -> None:
    """What was copied so far is a group."""
    context = current().agent.context
    context["cp.async groups"] = context.get("cp.async groups", 0) + 1


def wait_group(num_outstanding: Any = 0) -> None:
    """Until at most so many groups are on their way."""
    block = current()
    agent = block.agent
    reached = agent.context.get("cp.async groups", 0) - int(num_outstanding)
    _complete(reached)
    component = block.own("cp.async")
    agent.clock[component] = max(agent.clock.get(component, 0), reached)
    block.scheduler.pause()


def _complete(reached: int) -> None:
    copies = current().agent.context.setdefault("copies", [])
    while copies and copies[0][0] <= reached:
        copies.pop(0)[1]()


def copies_arrive(mbarrier: Any, increment_count: Any = True) -> None:
    """An arrival when all copies of the agent so far are done."""
    block = current()
    agent = block.agent
    barrier, access = _used(mbarrier, "arrive when copied")
    component = block.own("cp.async")
    reached = agent.context.get("cp.async groups", 0) + 1
    agent.context["cp.async groups"] = reached
    jobs = agent.context.pop("copies", [])
    clock, fenced = dict(agent.clock), dict(agent.fenced)
    clock[component] = reached
    agent.tick()
    count = 1 if true(increment_count) else agent.warps * 32
    if true(increment_count):
        barrier.pending += 1

    def job() -> None:
        for _, run in jobs:
            run()
        barrier.arrive(count, access, clock, fenced)

    block.scheduler.put(("cp.async", agent.component), job)
    block.scheduler.pause()


# Clusters -----------------------------------------------------------------------------------------


class ClcResult:
    """What an attempt to take over another block's work brought: here none is left."""

    def is_canceled(self) -> Tile:
        """Whether there is work."""
        return Tile(np.bool_(False), tile(True).dtype)

    def program_id(self, dim: Any) -> Tile:
        """Which."""
        del dim
        return Tile(np.int32(0), INT32)


def try_cancel(result: Any, mbarrier: Any, *_: Any, **__: Any) -> None:
    """Ask for the work of a block that has not begun: there is none."""
    block = current()
    block.coverage.leave_out("clc.try_cancel: no block ever takes over another's work")
    raw = np.zeros(result.raw.shape, result.raw.dtype)
    _begin_copy(result, mbarrier, 16, lambda: raw, "clc.try_cancel")


def load_result(src: Any) -> ClcResult:
    """The answer."""
    block = current()
    access = block.access("clc.load_result")
    src.allocation.read(src.raw, access, block.agent.clock, block.agent.fenced)
    return ClcResult()


MBARRIER: dict[str, Any] = {
    "MBarrierLayout": MBarrierLayout,
    "allocate_mbarrier": allocate_mbarrier,
    "arrive": arrive,
    "expect": expect,
    "init": init,
    "invalidate": invalidate,
    "wait": wait,
}
TMA: dict[str, Any] = {
    "async_load": async_load,
    "async_copy_global_to_shared": async_load,
    "async_load_im2col": async_load_im2col,
    "async_copy_global_to_shared_im2col": async_load_im2col,
    "async_store": async_store,
    "async_copy_shared_to_global": async_store,
    "async_gather": async_gather,
    "async_scatter": async_scatter,
    "store_wait": store_wait,
    "make_tensor_descriptor": make_tensor_descriptor,
    "tensor_descriptor": Descriptor,
    "tensor_descriptor_im2col": Descriptor,
    "tensor_descriptor_type": Descriptor,
    **{
        f"async_atomic_{kind}": _reducing(kind)
        for kind in ("add", "min", "max", "and", "or", "xor")
    },
}
ASYNC_COPY: dict[str, Any] = {
    "async_load": async_copy,
    "async_copy_global_to_shared": async_copy,
    "commit_group": commit_group,
    "wait_group": wait_group,
    "mbarrier_arrive": copies_arrive,
}
CLC: dict[str, Any] = {
    "try_cancel": try_cancel,
    "load_result": load_result,
    "clc_result": ClcResult,
}
