"""Tensor cores: wgmma, mma.sync and tcgen05, with what is in flight.

warpgroup_mma       reads its operands until it is waited for; its sum is not there before
tcgen05_mma         a queue of each agent; commit arrives on a barrier when all before is done
"""

# Tiles are NumPy's.
# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.sanitizer.block import NotCoveredError, current
from stretto.sanitizer.buffers import Barriers, Buffer, Outside, Shared, TensorMemory
from stretto.sanitizer.layouts import shared_by
from stretto.sanitizer.pointers import true
from stretto.sanitizer.values import DTYPES, FLOAT32, Dtype, Tile, TileType, tile


def _wide(operand: Any) -> Any:
    """An operand as numbers, at the time of asking."""
    value = (
        operand.dtype.decode(operand.raw) if isinstance(operand, Buffer) else operand.used().value
    )
    kind = np.asarray(value).dtype.kind
    return np.asarray(value, np.int32 if kind in "iu" else np.float32)


class InFlight:
    """The sum of a product that may not be done."""

    def __init__(self, tile_: Tile | None, site: Any = None) -> None:
        self.done, self.site = tile_, site
        self.parts: tuple[Any, ...] = ()
        self.kind: tuple[Dtype, Any, Any] | None = None
        if tile_ is not None:
            self.kind = (tile_.dtype, tile_.shape, tile_.layout)

    def run(self) -> None:
        """Now it reads its operands."""
        a, b, total, adds = self.parts
        assert self.kind is not None
        dtype, _, layout = self.kind
        made = _wide(a) @ _wide(b)
        if adds:
            held = total.done if isinstance(total, InFlight) else total
            made = made + np.asarray(held.value)
        self.done = Tile(dtype.cast(made), dtype, layout)

    @property
    def shape(self) -> list[int]:
        """Of the sum."""
        assert self.kind is not None
        return list(self.kind[1])

    @property
    def dtype(self) -> Dtype:
        """Of the sum."""
        assert self.kind is not None
        return self.kind[0]

    @property
    def type(self) -> TileType:
        """Of the sum."""
        assert self.kind is not None
        return TileType(self.kind[0], self.kind[1], self.kind[2])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _USES:
            raise AttributeError(name)
        raise _used(name)


_USES = ("__add__", "__mul__", "__sub__")


def _used(how: str) -> Exception:
    return current().refuse(
        "accumulator-in-flight",
        f"the sum of a warpgroup_mma is used ({how}) before warpgroup_mma_wait says that it is "
        "there",
    )


def _refusing(name: str) -> Any:
    def use(self: InFlight, *_: Any) -> Any:
        del self
        raise _used(name.strip("_"))

    return use


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "getitem", "neg"):
    setattr(InFlight, f"__{_name}__", _refusing(f"__{_name}__"))


def finished(value: Any) -> Tile:
    """A tile that is wanted in registers; a sum in flight is an error."""
    if isinstance(value, InFlight):
        raise _used("as a tile")
    return tile(value)


def warpgroup_mma_init(value: Any) -> InFlight:
    """A sum to begin with."""
    return value if isinstance(value, InFlight) else InFlight(tile(value))


def _require_shapes(a: Any, b: Any, total: Any, what: str) -> None:
    rows, inner = a.shape[-2:]
    other, columns = b.shape[-2:]
    if inner != other or list(total.shape)[-2:] != [rows, columns]:
        raise current().refuse(
            "illegal",
            f"{what} of {list(a.shape)} by {list(b.shape)} into {list(total.shape)}",
        )


def warpgroup_mma(
    a: Any, b: Any, acc: Any, *, use_acc: Any = True, precision: Any = None,
    max_num_imprecise_acc: Any = None, is_async: Any = False,
) -> Any:  # fmt: skip
    """A product of a warpgroup; asynchronous where asked for."""
    del precision, max_num_imprecise_acc
    block = current()
    agent = block.agent
    if not isinstance(b, Shared | Outside) or not isinstance(a, Shared | Tile | Outside):
        raise block.refuse("illegal", "warpgroup_mma takes `b` and, or from registers, `a`")
    _require_shapes(a, b, acc, "a product")
    if agent.warps % 4:
        raise block.refuse("illegal", f"warpgroup_mma by {agent.warps} warps; it takes 4 or 8")
    access: Any = None
    for peer in block.ctas():
        component = block.own("wgmma")
        issued = peer.context.get("wgmma issued", 0) + 1
        peer.context["wgmma issued"] = issued
        made = block.access("product", "async", component, issued)
        access = access or made
        for operand in (a, b):
            if isinstance(operand, Shared):
                operand.allocation.read(operand.raw, made, peer.clock, peer.fenced)
    flight = InFlight(None, access.site)
    flight.kind = (acc.dtype, list(acc.shape), acc.type.layout)
    flight.parts = (a, b, acc, true(use_acc))
    agent.context.setdefault("products", []).append(flight)
    block.scheduler.pause()
    return flight if is_async else warpgroup_mma_wait(0, (flight,))


def warpgroup_mma_wait(num_outstanding: Any = 0, deps: Any = None) -> Any:
    """Until at most so many are in flight; what is done is a tile again."""
    block = current()
    agent = block.agent
    flying = agent.context.setdefault("products", [])
    block.scheduler.pause()
    while len(flying) > int(num_outstanding):
        flying.pop(0).run()
    done = agent.context.get("wgmma issued", 0) - len(flying)
    for peer in block.ctas():
        component = block.own("wgmma")
        peer.clock[component] = max(done, peer.clock.get(component, 0))
    made = tuple(
        d.done if isinstance(d, InFlight) and d.done is not None else d for d in deps or ()
    )
    return made[0] if len(made) == 1 else made


def mma_v2(a: Any, b: Any, acc: Any, input_precision: Any = None, **_: Any) -> Tile:
    """A product of warps, from registers into registers."""
    del input_precision
    left, right, total = finished(a), finished(b), finished(acc)
    made = _wide(left) @ _wide(right) + np.asarray(total.value)
    return Tile(total.dtype.cast(made), total.dtype, total.layout)


def dot_fma(a: Any, b: Any, acc: Any, **_: Any) -> Tile:
    """A product by multiplications and additions of threads: done before they go on."""
    return mma_v2(a, b, acc)


# Tensor memory ------------------------------------------------------------------------------------


def _issuers() -> list[tuple[Any, list[int]]]:
    """Who issues an operation on tensor memory, and for which blocks of the cluster.

    Each block for itself; where products are those of two blocks, the first of two for both.
    """
    block = current()
    if block.paired and block.cluster > 1:
        return [(peer, [peer.cta, peer.cta + 1]) for peer in block.agent.peers[::2]]
    return [(peer, [peer.cta]) for peer in block.agent.peers]


def _issue(what: str, read: Any, written: Any) -> None:
    """One more operation of the queue of each issuer: what it reads and what it writes."""
    block = current()
    for agent, ctas in _issuers():
        block.acting(agent.cta)
        component = block.own("tcgen05")
        issued = agent.context.get("tcgen05 issued", 0) + 1
        agent.context["tcgen05 issued"] = issued
        clock, fenced = dict(agent.clock), dict(agent.fenced)
        clock[component] = issued
        access = block.access(what, "async", component, issued)
        for cta in ctas:
            for operand in read:
                operand.allocation.read(operand.raw, access, clock, fenced, cta=cta)
            written.allocation.write(written.raw, access, clock, fenced, cta)
    block.acting(0)


def _commit(barrier: Any, spread: tuple[int, ...] = ()) -> None:
    """Arrive when all before is done; at the barriers of all blocks that share an operand.

    Of each operand: the bits in which the numbers of those differ that have the same part of it.
    """
    block = current()
    for agent, ctas in _issuers():
        block.acting(agent.cta)
        reached = {
            barrier.lead(other)
            for other in range(block.cluster)
            for cta in ctas
            if other == cta or any((other ^ cta) & ~bits == 0 for bits in spread)
        }
        if block.paired:
            reached |= {barrier.lead(other ^ 1) for other in reached if other ^ 1 < block.cluster}
        access = block.access("commit")
        clock, fenced = dict(agent.clock), dict(agent.fenced)
        component = block.own("tcgen05")
        clock[component] = agent.context.get("tcgen05 issued", 0)
        agent.tick()
        for other in sorted(reached):
            target = barrier.initialized(other)

            def job(
                target: Any = target, access: Any = access, clock: Any = clock, fenced: Any = fenced
            ) -> None:
                target.arrive(1, access, clock, fenced)

            block.scheduler.put(("tcgen05", agent.peers[0].component), job)
    block.acting(0)


def tcgen05_mma(
    a: Any, b: Any, acc: Any, *, use_acc: Any = True, pred: Any = True, multicast: Any = False,
    mbarriers: Any = None, mbarrier_preds: Any = None,
) -> None:  # fmt: skip
    """A product into tensor memory; asynchronous."""
    _multiply(a, b, acc, use_acc, pred, lambda: _wide(a) @ _wide(b))
    _arrivals(pred, mbarriers, mbarrier_preds, _spread((a, b), multicast))


def _spread(operands: Any, multicast: Any) -> tuple[int, ...]:
    return tuple(shared_by(o.layout) for o in operands) if true(multicast) else ()


def _arrivals(pred: Any, mbarriers: Any, preds: Any, spread: tuple[int, ...]) -> None:
    if not true(pred):
        return
    asked = preds if preds is not None else [True] * len(mbarriers or ())
    for barrier, on in zip(mbarriers or (), asked, strict=True):
        if true(on):
            _commit(barrier, spread)
    current().scheduler.pause()


def _multiply(
    a: Any, b: Any, acc: Any, use_acc: Any, pred: Any, product: Any, more: Any = ()
) -> None:
    if not true(pred):
        return
    block = current()
    if not isinstance(acc, TensorMemory) or not isinstance(a, Shared | TensorMemory | Outside):
        raise block.refuse("illegal", "tcgen05_mma takes `a` in shared or tensor memory")
    if list(acc.shape)[-2:] != [a.shape[-2], b.shape[-1]] and not more:
        _require_shapes(a, b, acc, "a product")
    adds = true(use_acc)
    _issue("product", (*more, a, b, *((acc,) if adds else ())), acc)
    issued = block.history.steps[-1]

    def job() -> None:
        with np.errstate(all="ignore"):
            made = product()
            if adds:
                made = made + acc.dtype.decode(acc.raw)
            acc.raw[...] = acc.dtype.encode(acc.dtype.cast(made))
        block.history.add(issued._replace(what="product done"))

    block.scheduler.put(("tcgen05", block.agent.peers[0].component), job)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def _unpacked(operand: Any, kind: str, rows_last: bool) -> Any:
    """Numbers of 4 or 8 bits."""
    raw = operand.raw
    if kind != "e2m1":
        return DTYPES["float8e4nv" if kind == "e4m3" else "float8e5"].decode(raw.view(np.uint8))
    low, high = E2M1[raw & 15], E2M1[raw >> 4]
    axis = 0 if rows_last else 1
    return np.stack((low, high), axis=axis + 1).reshape(
        [n * (2 if i == axis else 1) for i, n in enumerate(raw.shape)]
    )


def _scaled(operand: Any, kind: str, scale: Any, transposed: bool) -> Any:
    """Numbers of 4 or 8 bits, each times the scale of its row and its group along K."""
    found = _unpacked(operand, kind, transposed)
    rows = found.T if transposed else found
    scales = scale.dtype.decode(scale.raw)
    if scale.dtype.kind in "iu":
        scales = np.exp2(np.asarray(scales, np.float32) - 127)
    scales = np.asarray(scales, np.float32).reshape(-1, scales.shape[-1])[: len(rows)]
    group = rows.shape[1] // scales.shape[1]
    made = rows * np.repeat(scales, group, axis=1)[:, : rows.shape[1]]
    return made.T if transposed else made


def tcgen05_mma_scaled(
    a: Any, b: Any, acc: Any, a_scale: Any, b_scale: Any, a_type: Any, b_type: Any, *,
    use_acc: Any = True, pred: Any = True, multicast: Any = False, mbarriers: Any = None,
    mbarrier_preds: Any = None,
) -> None:  # fmt: skip
    """A product of blocks with scales; asynchronous."""

    def product() -> Any:
        left = _scaled(a, str(a_type), a_scale, False)
        return left @ _scaled(b, str(b_type), b_scale, True)

    _multiply(a, b, acc, use_acc, pred, product, (a_scale, b_scale))
    _arrivals(pred, mbarriers, mbarrier_preds, _spread((a, b), multicast))


def tcgen05_commit(barrier: Any, pred: Any = True, descs: Any = ()) -> None:
    """Arrive on a barrier when all products and copies of the agent before are done."""
    if true(pred):
        _commit(barrier, _spread(descs, True))
        current().scheduler.pause()


def tcgen05_copy(src: Any, dst: Any) -> None:
    """From shared into tensor memory; asynchronous, in the queue of the products."""
    block = current()
    if src.raw.size != dst.raw.size:
        raise NotCoveredError("tcgen05_copy between shapes of different size", block.sources.site())
    _issue("copy to tensor memory", (src,), dst)

    def job() -> None:
        dst.raw[...] = src.raw.reshape(dst.raw.shape)

    block.scheduler.put(("tcgen05", block.agent.peers[0].component), job)


def tcgen05_mma_barrier_count(smems: Any, multicast: Any, two_ctas: Any = False) -> int:
    """How many blocks of a cluster commit."""
    if not smems or not true(multicast):
        return 1
    step = 2 if true(two_ctas) else 1
    return sum(
        any(cta & ~shared_by(one.layout) == 0 for one in smems)
        for cta in range(0, current().cluster, step)
    )


__all__ = ["FLOAT32", "Barriers"]
