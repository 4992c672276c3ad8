"""mbarriers, TMA, cp.async, fences and cluster operations, as Gluon names them.

expect ─► copy ─► lands late ─► wait        store reads until store_wait
"""

# Tiles are NumPy's.
# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.sanitizer.barriers import Copy
from stretto.sanitizer.block import current
from stretto.sanitizer.buffers import Barriers, Outside, Shared, allocate_shared
from stretto.sanitizer.finding import Access, Proxy, Site
from stretto.sanitizer.layouts import MBarrierLayout, shared_by
from stretto.sanitizer.pointers import Descriptor, Pointer, Storage, true
from stretto.sanitizer.scheduler import merge
from stretto.sanitizer.values import INT32, INT64, Tile, tile

# mbarriers ----------------------------------------------------------------------------------------


def init(mbarrier: Any, count: Any = 1) -> None:
    """Set its count; where blocks of a cluster share one, so much of each of them."""
    block = current()
    shares = 1 << shared_by(mbarrier.layout).bit_count()
    for agent in block.ctas():
        if mbarrier.lead(agent.cta) == agent.cta:
            barrier = mbarrier.get()
            access = block.access("init")
            _require_unused(barrier, access, "initialized")
            if barrier.initialized:
                block.report(
                    "barrier-reinitialized",
                    access.site,
                    f"`{barrier.name}` is initialized again without mbarrier.invalidate in between",
                    slot=barrier.name,
                    first=barrier.begun,
                    second=access,
                    agents=(access.agent,),
                )
            barrier.begun = access
            barrier.init(int(count) * shares)
            # In a cluster the compiler lets all blocks meet between this and the first use.
            barrier.born = access if block.cluster == 1 else None


def invalidate(mbarrier: Any) -> None:
    """Its memory is free for other things."""
    block = current()
    for agent in block.ctas():
        if mbarrier.lead(agent.cta) == agent.cta:
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


def _used(mbarrier: Any, what: str, cta: int | None = None) -> tuple[Any, Access]:
    """A barrier that is used, by somebody who must know that it was initialized."""
    block = current()
    if not isinstance(mbarrier, Barriers | Outside):
        raise block.refuse("illegal", "a barrier was expected, memory of another kind is given")
    barrier = mbarrier.initialized(cta)
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


def _arrival(mbarrier: Any, count: int, size: Any, from_cta: Any, what: str) -> None:
    block = current()
    for agent in block.ctas():
        source = agent if from_cta is None else block.acting(agent.cta & int(from_cta))
        barrier, access = _used(mbarrier, what, agent.cta)
        if size is not None:
            barrier.expect(int(size), access)
        clock, fenced = dict(source.clock), dict(source.fenced)
        source.tick()
        before = barrier.completed
        barrier.arrive(count, access, clock, fenced)
        if barrier.completed > before and barrier.brought_about_by(source.clock):
            source.clock[barrier.component] = barrier.completed
    block.scheduler.pause()


def expect(
    mbarrier: Any, bytes_per_cta: Any = None, pred: Any = True, *, from_cta: Any = None, **_: Any
) -> None:
    """Bytes that a phase waits for, and an arrival."""
    if true(pred):
        _arrival(mbarrier, 1, bytes_per_cta, from_cta, "expect")


def arrive(
    mbarrier: Any, *, count: Any = 1, pred: Any = True, from_cta: Any = None, **_: Any
) -> None:
    """So many arrivals."""
    if true(pred):
        _arrival(mbarrier, int(count), None, from_cta, "arrive")


def wait(mbarrier: Any, phase: Any, pred: Any = True, deps: Any = ()) -> None:
    """Until a phase is over; of blocks of a cluster that share a barrier only the first waits."""
    del deps
    if not true(pred):
        return
    block, parity = current(), int(phase) & 1
    asked: list[Any] = []
    for agent in block.ctas():
        if not isinstance(mbarrier, Barriers) or mbarrier.lead(agent.cta) == agent.cta:
            barrier, access = _used(mbarrier, "wait")
            agent.context["waits_at"] = access.site
            asked.append((barrier, barrier.wait(parity, agent, access), agent, access))
    for barrier, target, _, _ in asked:
        block.scheduler.block(
            lambda b=barrier, t=target: b.completed > t,
            lambda b=barrier, t=target: b.waiting(parity, t),
        )
    for barrier, target, agent, access in asked:
        barrier.hear(target, agent, access)


def allocate_mbarrier(batch: Any = None, two_ctas: Any = False) -> Any:
    """One barrier, or several."""
    blocks = current().cluster
    count = blocks // 2 if true(two_ctas) else blocks
    shape = [count] if batch is None else [int(batch), count]
    return allocate_shared(INT64, shape, MBarrierLayout.multicta(blocks, true(two_ctas)))


# Fences -------------------------------------------------------------------------------------------


def fence_async_shared(cluster: Any = False) -> None:
    """What threads did so far comes before what the asynchronous proxy does from here on."""
    del cluster
    for agent in current().ctas():
        merge(agent.fenced, agent.clock)
        # The accesses of the same instant are meant as well.
        agent.fenced[agent.component] = agent.clock[agent.component]
        agent.tick()


def cluster_barrier(relaxed: Any = False) -> None:
    """All blocks of the cluster meet; relaxed, they hear nothing of each other."""
    if not true(relaxed):
        current().meet_cluster()
    current().scheduler.pause()


# TMA ----------------------------------------------------------------------------------------------


def _numbers(coord: Any) -> list[int]:
    given = coord if isinstance(coord, list | tuple) else [coord]
    return [int(c) for c in given]


def _begin_copy(
    result: Any, mbarrier: Any, size: int, read: Any, what: str = "TMA copy", spread: int = 0,
    proxy: Proxy = "async",
) -> None:  # fmt: skip
    """A copy that lands in shared memory some time later.

    Of blocks of the cluster whose numbers differ in the bits of `spread` only, the first copies
    for all; the copy arrives at the barrier of each.
    """
    block = current()
    first = True
    for agent in block.ctas():
        cta = agent.cta
        source = block.acting(cta & ~spread)
        barrier, _ = _used(mbarrier, f"{what} to it", cta)
        access = block.access(what, proxy, barrier.copies, barrier.completed + 1)
        # Whoever knows that it has landed may do away with the barrier.
        barrier.users.pop(source.component, None)
        barrier.users[barrier.copies] = access
        born = barrier.born
        if born is not None and source.fenced.get(born.component, 0) < born.time:
            block.report(
                "unfenced-barrier",
                access.site,
                f"a copy completes `{barrier.name}`, which was initialized at line "
                f"{born.site.line} with no fence_async_shared() since",
                slot=barrier.name,
                first=born,
                second=access,
            )
        clock, fenced = dict(source.clock), dict(source.fenced)
        source.tick()
        result.allocation.write(result.raw, access, clock, fenced, cta)
        copy = Copy(size, clock, fenced, access)
        barrier.flying.append(copy)

        def job(barrier: Any = barrier, copy: Copy = copy, fills: bool = first) -> None:
            if fills:
                result.raw[...] = read()
            barrier.landed(copy)

        block.scheduler.put(("copy", block.new_component()), job)
        first = False
    block.scheduler.pause()


def async_load(
    tensor_desc: Any, coord: Any, barrier: Any = None, result: Any = None, pred: Any = True,
    multicast: Any = False,
) -> None:  # fmt: skip
    """A tile by TMA."""
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
        spread=shared_by(result.layout) if true(multicast) else 0,
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
    if not true(pred):
        return
    rows, column = np.asarray(tile(x_offsets).value), int(y_offset)

    def read() -> Any:
        made = np.zeros(result.raw.shape, result.raw.dtype)
        tensor_desc.gathered(rows, column, made)
        return made

    _begin_copy(
        result, barrier, result.nbytes_per_cta, read, "TMA gather",
        shared_by(result.layout) if true(multicast) else 0,
    )  # fmt: skip


def async_store_shared(dst: Any, value: Any, mbarrier: Any) -> None:
    """From registers into shared memory of a cluster, asynchronously, for a barrier there."""
    given = tile(value).used()
    data = dst.dtype.encode(dst.dtype.cast(given.value))
    if current().cluster == 1:
        raise current().refuse("illegal", "async_store takes a cluster of at least two blocks")
    _begin_copy(
        dst, mbarrier, dst.nbytes_per_cta, lambda: data, "asynchronous store", proxy="generic"
    )


class _Store:
    """A TMA store that may still read its tile."""

    def __init__(self, site: Site, number: int, run: Any) -> None:
        self.site, self.number, self.run = site, number, run


def _begin_store(src: Any, run: Any, what: str) -> Access:
    block = current()
    lead: Any = None
    for agent in block.ctas():
        component = block.own("tma store")
        number = agent.context.get("tma stores", 0) + 1
        agent.context["tma stores"] = number
        access = block.access(what, "async", component, number)
        lead = lead or access
        src.allocation.read(src.raw, access, agent.clock, agent.fenced)
        effect = run if access is lead else (lambda: None)
        agent.context.setdefault("stores", []).append(_Store(access.site, number, effect))
    block.scheduler.pause()
    return lead


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

    _begin_store(src, lambda: tensor_desc.scattered(rows, column, src.raw), "TMA scatter")


def store_wait(pendings: Any = 0, read_only: Any = True) -> None:
    """Until at most so many stores still read their tiles, or (read_only=False) are not done."""
    block = current()
    for agent in block.ctas():
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


def async_load_im2col(
    tensor_desc: Any, coord: Any, offsets: Any, barrier: Any, result: Any, pred: Any = True,
    multicast: Any = False,
) -> None:  # fmt: skip
    """Pixels by channels, by TMA."""
    if not true(pred):
        return
    at, moved = _numbers(coord), _numbers(offsets)
    _require_tile(tensor_desc, result)
    _begin_copy(
        result, barrier, result.nbytes_per_cta, lambda: tensor_desc.read_pixels(at, moved),
        "TMA copy", shared_by(result.layout) if true(multicast) else 0,
    )  # fmt: skip


# cp.async -----------------------------------------------------------------------------------------


def async_copy(smem: Any, pointer: Any, mask: Any = None, other: Any = None, **_: Any) -> None:
    """Elements by threads, asynchronously."""
    del other
    block = current()
    offsets, on, _ = pointer.index(mask)
    if list(np.shape(offsets)) != list(smem.shape):
        raise block.refuse("illegal", f"{list(np.shape(offsets))} copied into {list(smem.shape)}")
    storage = pointer.storage

    def job() -> None:
        smem.raw[...] = np.where(on, storage.raw[np.where(on, offsets, 0)], 0)

    for agent in block.ctas():
        component = block.own("cp.async")
        group = agent.context.get("cp.async groups", 0) + 1
        access = block.access("asynchronous copy", "copy", component, group)
        smem.allocation.write(smem.raw, access, agent.clock, agent.fenced)
        effect = job if agent.cta == 0 else (lambda: None)
        agent.context.setdefault("copies", []).append((group, effect))
    block.scheduler.pause()


def commit_group() -> None:
    """What was copied so far is a group."""
    for agent in current().ctas():
        agent.context["cp.async groups"] = agent.context.get("cp.async groups", 0) + 1


def wait_group(num_outstanding: Any = 0) -> None:
    """Until at most so many groups are on their way."""
    block = current()
    for agent in block.ctas():
        reached = agent.context.get("cp.async groups", 0) - int(num_outstanding)
        copies = agent.context.setdefault("copies", [])
        while copies and copies[0][0] <= reached:
            copies.pop(0)[1]()
        component = block.own("cp.async")
        agent.clock[component] = max(agent.clock.get(component, 0), reached)
    block.scheduler.pause()


def copies_arrive(mbarrier: Any, increment_count: Any = True, *, pred: Any = True) -> None:
    """An arrival when all copies of the agent so far are done."""
    if not true(pred):
        return
    block = current()
    for agent in block.ctas():
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

        def job(
            barrier: Any = barrier, jobs: Any = jobs, count: int = count, access: Any = access,
            clock: Any = clock, fenced: Any = fenced,
        ) -> None:  # fmt: skip
            for _, run in jobs:
                run()
            barrier.arrive(count, access, clock, fenced)

        block.scheduler.put(("cp.async", agent.component), job)
    block.scheduler.pause()


# Clusters -----------------------------------------------------------------------------------------


TAKEN_OVER = 2
"""Programs of a grid that a program takes over, where it asks for them and there are others."""


class ClcResult:
    """What an attempt to take over the work of a program that has not begun has brought."""

    def __init__(self, number: int, grid: Any) -> None:
        self.number, self.grid = number, grid

    def is_canceled(self) -> Tile:
        """Whether there is work."""
        return Tile(np.bool_(self.number > 0), tile(True).dtype)

    def program_id(self, dim: Any) -> Tile:
        """Which."""
        number = max(self.number - 1, 0)
        for size in self.grid[: int(dim)]:
            number //= size
        return Tile(np.int32(number % self.grid[int(dim)]), INT32)


def try_cancel(result: Any, mbarrier: Any, *_: Any, **__: Any) -> None:
    """Ask for the work of a program that has not begun: the next ones of the grid, then none."""
    block = current()
    x, y, z = block.at
    columns, rows, layers = block.grid
    asked = block.agent.context.get("cancelled", 0) + 1
    block.agent.context["cancelled"] = asked
    number = x + columns * (y + rows * z) + asked
    there = asked <= TAKEN_OVER and number < columns * rows * layers
    raw = np.zeros(result.raw.shape, result.raw.dtype)
    raw.flat[0] = number + 1 if there else 0
    block.coverage.leave_out(
        f"clc.try_cancel gives a program up to {TAKEN_OVER} others of its grid, which run as well"
    )
    _begin_copy(result, mbarrier, 16, lambda: raw, "clc.try_cancel", block.cluster - 1)


def load_result(src: Any) -> ClcResult:
    """The answer."""
    block = current()
    told = src._read("clc.load_result")
    if told is not None:
        told()
    return ClcResult(int(src.raw.flat[0]), block.grid)


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
