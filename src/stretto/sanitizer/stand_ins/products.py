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
    component = block.own("wgmma")
    issued = agent.context.get("wgmma issued", 0) + 1
    agent.context["wgmma issued"] = issued
    access = block.access("product", "async", component, issued)
    for operand in (a, b):
        if isinstance(operand, Shared):
            operand.allocation.read(operand.raw, access, agent.clock, agent.fenced)
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
    component = block.own("wgmma")
    agent.clock[component] = max(done, agent.clock.get(component, 0))
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


def _issue(what: str) -> tuple[Any, Any, Any, Any]:
    """One more operation of the agent's queue: its access, and what it knows."""
    block = current()
    agent = block.agent
    component = block.own("tcgen05")
    issued = agent.context.get("tcgen05 issued", 0) + 1
    agent.context["tcgen05 issued"] = issued
    clock = dict(agent.clock)
    clock[component] = issued
    return block, block.access(what, "async", component, issued), clock, dict(agent.fenced)


def _commit(barrier: Any) -> None:
    block = current()
    agent = block.agent
    target = barrier.initialized()
    component = block.own("tcgen05")
    issued = agent.context.get("tcgen05 issued", 0)
    access = block.access("commit")
    clock, fenced = dict(agent.clock), dict(agent.fenced)
    clock[component] = issued
    agent.tick()
    block.scheduler.put(
        ("tcgen05", agent.component), lambda: target.arrive(1, access, clock, fenced)
    )


def tcgen05_mma(
    a: Any, b: Any, acc: Any, *, use_acc: Any = True, pred: Any = True, multicast: Any = False,
    mbarriers: Any = None, mbarrier_preds: Any = None,
) -> None:  # fmt: skip
    """A product into tensor memory; asynchronous."""
    del multicast
    _multiply(a, b, acc, use_acc, pred, lambda: _wide(a) @ _wide(b))
    _arrivals(pred, mbarriers, mbarrier_preds)


def _arrivals(pred: Any, mbarriers: Any, preds: Any) -> None:
    if not true(pred):
        return
    asked = preds if preds is not None else [True] * len(mbarriers or ())
    for barrier, on in zip(mbarriers or (), asked, strict=True):
        if true(on):
            _commit(barrier)
    current().scheduler.pause()


def _multiply(a: Any, b: Any, acc: Any, use_acc: Any, pred: Any, product: Any) -> None:
    if not true(pred):
        return
    if not isinstance(acc, TensorMemory) or not isinstance(a, Shared | TensorMemory | Outside):
        raise current().refuse("illegal", "tcgen05_mma takes `a` in shared or tensor memory")
    block, access, clock, fenced = _issue("product")
    for operand in (a, b):
        operand.allocation.read(operand.raw, access, clock, fenced)
    adds = true(use_acc)
    if adds:
        acc.allocation.read(acc.raw, access, clock, fenced)
    acc.allocation.write(acc.raw, access, clock, fenced)

    def job() -> None:
        with np.errstate(all="ignore"):
            made = product()
            if adds:
                made = made + acc.dtype.decode(acc.raw)
            acc.raw[...] = acc.dtype.encode(acc.dtype.cast(made))
        block.history.add(access._replace(what="product done"))

    if list(acc.shape)[-2:] != [a.shape[-2], b.shape[-1]] and product.__name__ == "<lambda>":
        _require_shapes(a, b, acc, "a product")
    block.scheduler.put(("tcgen05", block.agent.component), job)


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


def tcgen05_mma_scaled(
    a: Any, b: Any, acc: Any, a_scale: Any, b_scale: Any, a_type: Any, b_type: Any, *,
    use_acc: Any = True, pred: Any = True, multicast: Any = False, mbarriers: Any = None,
    mbarrier_preds: Any = None,
) -> None:  # fmt: skip
    """A product of blocks with scales; asynchronous. Its orders are checked, not its values."""
    del multicast

    def product() -> Any:
        left, right = _unpacked(a, str(a_type), False), _unpacked(b, str(b_type), True)
        return left @ right

    if true(pred):
        block, access, clock, fenced = _issue("product")
        for scale in (a_scale, b_scale):
            scale.allocation.read(scale.raw, access, clock, fenced)
        block.coverage.leave_out("values of scaled products: their scales are taken as 1")
    _multiply(a, b, acc, use_acc, pred, product)
    _arrivals(pred, mbarriers, mbarrier_preds)


def tcgen05_commit(barrier: Any, pred: Any = True, descs: Any = ()) -> None:
    """Arrive on a barrier when all products and copies of the agent before are done."""
    del descs
    if true(pred):
        _commit(barrier)
        current().scheduler.pause()


def tcgen05_copy(src: Any, dst: Any) -> None:
    """From shared into tensor memory; asynchronous, in the queue of the products."""
    block, access, clock, fenced = _issue("copy to tensor memory")
    src.allocation.read(src.raw, access, clock, fenced)
    dst.allocation.write(dst.raw, access, clock, fenced)
    if src.raw.size != dst.raw.size:
        raise NotCoveredError("tcgen05_copy between shapes of different size", block.sources.site())

    def job() -> None:
        dst.raw[...] = src.raw.reshape(dst.raw.shape)

    block.scheduler.put(("tcgen05", block.agent.component), job)


def tcgen05_mma_barrier_count(smems: Any, multicast: Any, two_ctas: Any = False) -> int:
    """How many blocks of a cluster commit; blocks of a cluster are run as one."""
    del smems, multicast, two_ctas
    return 1


__all__ = ["FLOAT32", "Barriers"]
