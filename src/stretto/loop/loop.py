"""The problem: a loop, and nothing of its solution.

Loop  ──►  .reads, .dependences, .groups, topological_order     follow from it, each worked out once

And where something is in it, and what is said of it there:

    Place("gemm", 2, ("uses", 0, "slot"))    $.ops[2].uses[0].slot  of loop gemm
    Place("gemm")                            the loop
    Place()                                  no loop: the machine, or one that was not read

A note is worth knowing; a fault stops. Both are made where they are noticed, and keep their place
until somebody prints them: as a path into the document, or as a line and column of a module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from stretto.errors import StrettoError
from stretto.limits import FAULTS_TOLD
from stretto.loop.derive import derive_dependences, effective_reads, storage_views
from stretto.loop.parts import Access, Dependence, Op, Operand, Storage, Value, cached_property
from stretto.machine import machine_beside


@dataclass(frozen=True)
class Loop:
    """A loop body in program order, with everything that constrains its pipelining."""

    name: str
    ops: tuple[Op, ...]
    values: tuple[Value, ...] = ()
    storages: tuple[Storage, ...] = ()
    stated: tuple[Dependence, ...] = ()
    """Dependences stated by the writer, beside those that values and storages imply."""
    machine: str | None = None
    """The machine it is written for, unless the user says otherwise."""
    slots: tuple[str, ...] = ()
    """Exclusive slots of its own: an inner loop that must not overlap itself, say."""
    force_serial: bool = False
    machine_why: str = field(default="", compare=False)
    """Why it names its machine, where that was chosen for it when it was read."""

    def __getstate__(self) -> dict[str, object]:
        """Pickle the fields alone, not what was derived from them."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @cached_property
    def index(self) -> dict[str, int]:
        """Program position of each operation."""
        return {op.name: i for i, op in enumerate(self.ops)}

    def op(self, name: str) -> Op:
        """The operation of this name."""
        return self.ops[self.index[name]]

    def storage(self, name: str) -> Storage:
        """The storage of this name."""
        return next(s for s in self.storages if s.name == name)

    def in_file(self, file: str) -> Loop:
        """As it stands in a file: the path of its machine is relative to that file's folder."""
        if self.machine is None:
            return self
        return replace(self, machine=machine_beside(file, self.machine))

    def at(self, *field: str | int, op: int | None = None) -> Place:
        """The place of a field of this loop, or of one of its operations."""
        return Place(self.name, op, field)

    @cached_property
    def producers(self) -> dict[str, str]:
        """Value name to the name of the operation that defines it; live-ins have none."""
        return {result: op.name for op in self.ops for result in op.results}

    @cached_property
    def readers(self) -> dict[str, tuple[tuple[str, int], ...]]:
        """Value to (operation, distance) of all that read it, by its own name or a view's."""
        direct: dict[str, list[tuple[str, int]]] = {}
        for op in self.ops:
            name = op.name
            for operand in op.operands:
                direct.setdefault(operand.value, []).append((name, operand.distance))
        views: dict[str, list[tuple[str, int]]] = {}
        for value in self.values:
            if value.view_of is not None and value.name in self.producers:
                maker = self.op(self.producers[value.name])
                back = next((o.distance for o in maker.operands if o.value == value.view_of), 0)
                views.setdefault(value.view_of, []).append((value.name, back))
        found: dict[str, tuple[tuple[str, int], ...]] = {}
        for value in self.values:
            name = value.name
            if name not in views:
                reading = direct.get(name, ())
                found[name] = tuple(dict.fromkeys(reading) if len(reading) > 1 else reading)
                continue
            work, seen = [(value.name, 0)], dict[tuple[str, int], None]()
            while work:
                name, back = work.pop()
                seen.update(dict.fromkeys((op, d + back) for op, d in direct.get(name, ())))
                if back <= len(self.ops):  # a view of itself, carried round, must end
                    work += [(view, back + d) for view, d in views.get(name, ())]
            found[value.name] = tuple(seen)
        return found

    @cached_property
    def homes(self) -> dict[str, str]:
        """Value to the storage it lives in, where it lives in one."""
        return {value.name: value.storage for value in self.values if value.storage is not None}

    @cached_property
    def reads(self) -> dict[str, tuple[Access, ...]]:
        """Operation to the reads of storages that it lists or that its operands imply."""
        return effective_reads(self.ops, self.values, self.storages)

    @cached_property
    def storage_writers(self) -> dict[str, tuple[Op, ...]]:
        """Storage to the operations that write it, in program order."""
        found: dict[str, dict[str, Op]] = {storage.name: {} for storage in self.storages}
        for op in self.ops:
            for name in op.writes:
                found[name][op.name] = op
        return {name: tuple(writers.values()) for name, writers in found.items()}

    @cached_property
    def storage_readers(self) -> dict[str, tuple[tuple[Op, int], ...]]:
        """Storage to (operation, distance) of all reads of it, in program order."""
        found: dict[str, list[tuple[Op, int]]] = {storage.name: [] for storage in self.storages}
        for op in self.ops:
            for read in self.reads[op.name]:
                found[read.storage].append((op, read.distance))
        return {name: tuple(readers) for name, readers in found.items()}

    @cached_property
    def storage_views(self) -> dict[str, Operand]:
        """Operations that only give what lies in a storage another name, and what they name."""
        return storage_views(self.ops, self.values)

    @cached_property
    def resolved(self) -> bool:
        """Whether the costs of every operation are known."""
        return all(op.resolved for op in self.ops)

    @cached_property
    def pinned(self) -> tuple[int, ...]:
        """Program positions of the operations that are told where to stand."""
        return tuple([i for i, op in enumerate(self.ops) if op.constraint.pinned])

    @cached_property
    def dependences(self) -> tuple[Dependence, ...]:
        """Every dependence: stated, from values, from storages. Needs a resolved loop."""
        return derive_dependences(self.ops, self.values, self.storages, self.stated, self.reads)

    @cached_property
    def edges(self) -> tuple[tuple[int, int, int, int], ...]:
        """The dependences by program position: (source, destination, latency, distance)."""
        index = self.index
        return tuple(
            [(index[d.src], index[d.dst], d.latency, d.distance) for d in self.dependences]
        )

    @cached_property
    def _order(self) -> tuple[int, ...] | Fault:
        return _sorted(self)

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Operations of one stage, but for offsets: disjoint sets over gid and leader_gid."""
        root: dict[int, int] = {}

        def find(gid: int) -> int:
            root.setdefault(gid, gid)
            while root[gid] != gid:
                root[gid] = root[root[gid]]
                gid = root[gid]
            return gid

        gid_of: dict[str, int] = {}
        for op in self.ops:
            gids = [g for g in (op.constraint.gid, op.constraint.leader_gid) if g is not None]
            if gids:
                gid_of[op.name] = gids[0]
                root[find(gids[0])] = find(gids[-1])
        members: dict[int, list[str]] = {}
        for name, gid in gid_of.items():
            members.setdefault(find(gid), []).append(name)
        return tuple(tuple(names) for names in members.values() if len(names) > 1)


def topological_order(loop: Loop) -> tuple[int, ...] | Fault:
    """Program positions in an order that respects distance-0 dependences, or the cycle."""
    return loop._order  # pyright: ignore[reportPrivateUsage] - worked out once


def _sorted(loop: Loop) -> tuple[int, ...] | Fault:
    successors: list[list[int]] = [[] for _ in loop.ops]
    waiting = [0] * len(loop.ops)
    for src, dst, _, distance in loop.edges:
        if distance == 0:
            successors[src].append(dst)
            waiting[dst] += 1
    # Operations come out in rounds, program order inside a round, whatever was ready first.
    ready = [i for i, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        later: list[int] = []
        for i in ready:
            order.append(i)
            for j in successors[i]:
                waiting[j] -= 1
                if waiting[j] == 0:
                    later.append(j)
        ready = sorted(later)
    if len(order) == len(loop.ops):
        return tuple(order)
    cycle = _some_cycle(successors, {i for i, count in enumerate(waiting) if count > 0})
    names = [loop.ops[i].name for i in cycle]
    way = " -> ".join([*names, names[0]])
    message = f"a cycle of dependences at distance 0, which no II can satisfy: {way}"
    return Fault(loop.at("ops"), "zero-distance-cycle", message)


def _some_cycle(successors: list[list[int]], blocked: set[int]) -> list[int]:
    """A cycle among operations that never became ready: each has a blocked predecessor."""
    predecessor: dict[int, int] = {}
    for i in sorted(blocked):
        for j in successors[i]:
            if j in blocked:
                predecessor.setdefault(j, i)
    at = min(predecessor)
    seen: list[int] = []
    while at not in seen:
        seen.append(at)
        at = predecessor[at]
    cycle = seen[seen.index(at) :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


# Places -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A loop, an operation of it, a field of that; each as far as it is known."""

    loop: str = ""
    """Its name; "": no loop that was read."""
    op: int | None = None
    """The program position of an operation; None: the loop as a whole."""
    field: tuple[str | int, ...] = ()
    """The keys and positions that lead to a field of the operation, or of the loop."""

    @property
    def path(self) -> str:
        """As a JSON path into the loop document."""
        keys = self.field if self.op is None else ("ops", self.op, *self.field)
        return "$" + "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in keys)


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth knowing that stops nothing."""

    place: Place
    text: str
    """What there is to know; that it is about this loop goes without saying."""

    def __str__(self) -> str:
        return f"{self.place.loop}: {self.text}" if self.place.loop else self.text


def texts(notes: Iterable[Note]) -> list[str]:
    """What notes say, for a report that has said which loop it is about."""
    return [note.text for note in notes]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a loop."""

    place: Place
    code: str
    """What kind of fault, in a word or two."""
    message: str

    @property
    def path(self) -> str:
        """Where, as a JSON path into the loop document."""
        return self.place.path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class LoopError(StrettoError):
    """The loop cannot be used as it is; `faults` has every `Fault`.

    The first are told, the others counted.
    """

    def __init__(self, loop: str, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.lines(loop)))
        self.loop = loop

    def lines(self, file: str) -> tuple[str, ...]:
        """One line a fault, as of a file."""
        told = [f"{file}: {f.path}: error: {f.message}" for f in self.faults[:FAULTS_TOLD]]
        more = len(self.faults) - len(told)
        return (*told, f"{file}: error: and {more:,} faults more") if more else tuple(told)

    def __reduce__(self) -> tuple[type[LoopError], tuple[str, tuple[Fault, ...]]]:
        return LoopError, (self.loop, self.faults)
