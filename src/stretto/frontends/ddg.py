"""Dependence-graph dumps ("ddg-0.1") of a public Triton fork, onto `b200-pipes`.

    nodes, edges      ──►  operations on TMA, TC, CUDA, SFU, and the flows between them
    ops (types)       ──►  storages: a load and the alloc it feeds are one, views alias it
    an inner loop     ──►  one operation with an exclusive slot of its own, touching what its
                           body touches

A buffer allocated inside the loop rotates; one allocated outside and written inside is fixed;
one only read is a live-in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.document import Cursor
from stretto.frontends.ddg_buffers import Accesses, Buffers
from stretto.loop import Access, Loop, Note, Op, Operand, Place, Storage, TileType, Use, Value
from stretto.ops.opcodes import opcode

SCHEMA_VERSION = "ddg-0.1"
PIPES = ("TMA", "TC", "CUDA", "SFU", "NONE")


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of the graph."""

    id: int
    name: str
    kind: str
    ref: str
    pipe: str
    latency: int
    duration: int
    inner: int | None
    """For a super node: the loop it stands for."""


@dataclass(slots=True)
class _Body:
    """A loop in the making."""

    loop: int
    nodes: list[_Node]
    accesses: dict[int, Accesses] = field(default_factory=dict[int, Accesses])


def read_ddg(top: Cursor) -> tuple[tuple[Loop, ...], tuple[Note, ...]]:
    """Every loop of a dump, and what is worth saying about them."""
    buffers = Buffers(top)
    kernel = top.get("kernel").get("name").text()
    loops: list[Loop] = []
    notes: list[Note] = []
    for entry in top.get("loops").items():
        number = entry.get("loop_id").natural()
        body = _Body(number, [_node(c, buffers) for c in entry.get("ddg").get("nodes").items()])
        for node in body.nodes:
            body.accesses[node.id] = buffers.accesses(node.ref, number, node.inner)
        name = f"{kernel}.{number}"
        notes += [Note(Place(name), text) for text in _drop_dead_writes(body)]
        loops.append(_loop(name, body, entry.get("ddg").get("edges"), buffers))
    return tuple(loops), tuple(notes)


def _node(row: Cursor, buffers: Buffers) -> _Node:
    id = row.get("id").natural()
    kind = row.get("op_kind").text()
    ref = row.get("op_ref")
    buffers.require(ref)
    is_super = row.opt("is_super_node", Cursor.boolean, False)
    return _Node(
        id=id,
        name=f"{kind.split('.')[-1]}_{id}",
        kind=kind,
        ref=ref.text(),
        pipe=row.get("pipeline").choice(PIPES),
        latency=row.get("latency").natural(),
        duration=row.get("occupancy").natural(),
        inner=buffers.loop_of(ref) if is_super else None,
    )


def _drop_dead_writes(body: _Body) -> list[str]:
    """A fill that an inner loop overwrites before anyone reads it is as good as deleted.

    The dumps zero an accumulator and then run an inner loop whose first product does not read
    it. The fill keeps its time on the pipe, but it orders nothing.
    """
    notes: list[str] = []
    for position, node in enumerate(body.nodes):
        mine = body.accesses[node.id]
        for storage in sorted(mine.writes - mine.reads):
            later = [body.accesses[n.id] for n in body.nodes[position + 1 :]]
            users = [
                (n, a)
                for n, a in zip(body.nodes[position + 1 :], later, strict=True)
                if storage in a.reads | a.writes
            ]
            if not users or storage in users[0][1].reads or users[0][0].inner is None:
                continue
            mine.writes.discard(storage)
            notes.append(
                f"`{node.name}` fills {storage}, which inner loop `{users[0][0].name}` overwrites "
                "without reading it (if it runs at all); the fill is treated as deleted"
            )
    return notes


def _loop(name: str, body: _Body, edges: Cursor, buffers: Buffers) -> Loop:
    by_id = {node.id: node for node in body.nodes}
    operands: dict[int, dict[tuple[int, int], int]] = {node.id: {} for node in body.nodes}
    for edge in edges.items():
        src, dst = edge.get("src"), edge.get("dst")
        for end in (src, dst):
            if end.natural() not in by_id:
                raise end.fail(f"is {end.value}", "expected the id of a node of this loop")
        key = (src.natural(), edge.get("distance").natural())
        latency = edge.get("latency").natural()
        known = operands[dst.natural()]
        known[key] = max(known.get(key, 0), latency)
    touched = {s for a in body.accesses.values() for s in a.reads | a.writes}
    storages = tuple(_storage(root, body, buffers) for root in buffers.order if root in touched)
    homes = {
        node.id: buffers.home(node.ref)
        for node in body.nodes
        if operands[node.id] or body.accesses[node.id].writes  # else an address, and no data yet
    }
    values = tuple(
        Value(
            node.name,
            _value_type(node, buffers),
            home if (home := homes.get(node.id)) in touched else None,
            _viewed(node, operands[node.id], by_id),
        )
        for node in body.nodes
    )
    ops = tuple(_op(node, operands[node.id], by_id, body) for node in body.nodes)
    slots = tuple(_own_slot(node) for node in body.nodes if node.inner is not None)
    return Loop(name, ops, values, storages, machine="b200-pipes", slots=slots)


def _storage(root: str, body: _Body, buffers: Buffers) -> Storage:
    buffer = buffers.roots[root]
    written = any(root in a.writes for a in body.accesses.values())
    fresh = buffer.scope == f"loop:{body.loop}"
    return Storage(root, buffer.space, buffer.type.bytes, fixed=written and not fresh)


def _value_type(node: _Node, buffers: Buffers) -> TileType | None:
    return None if node.inner is not None else buffers.result_type(node.ref)


def _viewed(
    node: _Node, operands: dict[tuple[int, int], int], by_id: dict[int, _Node]
) -> str | None:
    """The value that a register view is another name of."""
    if not opcode(node.kind).renames_registers or len(operands) != 1:
        return None
    return by_id[next(iter(operands))[0]].name


def _own_slot(node: _Node) -> str:
    return f"inner_loop_{node.inner}"


def _op(
    node: _Node, operands: dict[tuple[int, int], int], by_id: dict[int, _Node], body: _Body
) -> Op:
    accesses = body.accesses[node.id]
    if node.inner is not None:
        uses = (Use(_own_slot(node), node.latency),)
    elif node.pipe == "NONE" or node.duration == 0:
        uses = ()
    else:
        uses = (Use(node.pipe, node.duration),)
    return Op(
        name=node.name,
        kind=node.kind,
        operands=tuple(
            Operand(by_id[src].name, distance, None if latency == by_id[src].latency else latency)
            for (src, distance), latency in operands.items()
        ),
        results=(node.name,),
        reads=tuple(Access(s) for s in sorted(accesses.reads)),
        writes=tuple(sorted(accesses.writes)),
        uses=uses,
        latency=node.latency,
    )
