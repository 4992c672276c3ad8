"""Where an address goes back to: through operations, round loops, and no farther than is known."""

from __future__ import annotations

from stretto.kernel.lowering.conflicts import alias_sets, conflicts
from stretto.kernel.tree import Operation, Region, Value, carried_from, root_of
from stretto.kernel.types import Scalar

I32 = Scalar("i32")


def loop_of(*inside: Operation, begins: Value, argument: Value, ends: Value) -> Operation:
    """A loop that carries one value."""
    lower, upper, step = (Value(I32) for _ in range(3))
    body = Region((*inside, Operation("scf.yield", (ends,), ())), (Value(I32), argument))
    return Operation("scf.for", (lower, upper, step, begins), (Value(I32),), regions=(body,))


def moved(address: Value) -> Operation:
    return Operation("tile.offset", (address, Value(I32)), (Value(I32),))


def first_operand(made: Operation, _: Value) -> Value | None:
    return made.operands[0] if made.name == "tile.offset" else None


def test_an_address_that_a_loop_carries_is_that_of_its_beginning() -> None:
    pointer, carried = Value(I32, "pointer"), Value(I32)
    on = moved(carried)
    loop = loop_of(on, begins=pointer, argument=carried, ends=on.result)
    begins = carried_from([loop])
    assert root_of(on.result, {on.result: on}, begins, first_operand) is pointer
    assert root_of(pointer, {}, begins, first_operand) is pointer


def test_what_is_made_of_a_number_leads_nowhere() -> None:
    number = Operation("tile.int_to_pointer", (Value(I32),), (Value(I32),))
    on = moved(number.result)
    makers = {number.result: number, on.result: on}
    assert root_of(on.result, makers, {}, first_operand) is None


def test_a_circle_leads_nowhere() -> None:
    one, other = Value(I32), Value(I32)
    assert root_of(one, {}, {one: other, other: one}, first_operand) is None


def anything(_: Operation) -> None:
    """Nobody knows which bytes an operation touches."""


def test_bytes_that_are_apart_are_in_nobodys_way() -> None:
    array = Value(I32, "array")
    load = Operation("tile.load", (array,), (Value(I32),))
    store = Operation("tile.store", (array, load.result), ())
    loop = loop_of(load, store, begins=array, argument=Value(I32), ends=array)
    makers = {load.result: load}
    assert not list(conflicts(loop, makers, {load: (0, 63), store: (64, 127)}.get))
    assert not list(conflicts(loop, makers, {load: (64, 127), store: (0, 63)}.get))
    assert list(conflicts(loop, makers, {load: (0, 64), store: (64, 127)}.get)) == [(load, store)]
    assert list(conflicts(loop, makers, {load: (0, 63)}.get)) == [(load, store)]


def test_a_loop_that_walks_two_arrays_reads_nothing_that_it_writes() -> None:
    read, written, carried = Value(I32, "read"), Value(I32, "written"), Value(I32)
    on = moved(carried)
    load = Operation("tile.load", (read,), (Value(I32),))
    store = Operation("tile.store", (carried, load.result), ())
    inside = (load, store, on)
    makers = {on.result: on, load.result: load}
    apart = loop_of(*inside, begins=written, argument=carried, ends=on.result)
    assert not list(conflicts(apart, makers, anything))
    same = loop_of(*inside, begins=read, argument=carried, ends=on.result)
    assert list(conflicts(same, makers, anything)) == [(load, store)]


def test_operations_that_pairs_lead_to_are_one_alias_set() -> None:
    a, b, c, d, e, f = (moved(Value(I32)) for _ in range(6))
    found = alias_sets([(a, b), (c, d), (b, d), (e, f)])
    assert found[a] == found[b] == found[c] == found[d] != found[e]
    assert found[e] == found[f]
    assert alias_sets([]) == {}
