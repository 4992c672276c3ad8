"""The reservation table: against its naive twin, and by example."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_table import NaiveTable
from stretto.errors import StrettoError
from stretto.loop import Demand, ResourceVector, Use
from stretto.machine import Machine, Pool, Slot
from stretto.resources.table import ConflictError, Counters, ReservationTable

# Against the naive twin -----------------------------------------------------------------------

NAMES = tuple(f"op{i}" for i in range(20))


@dataclass(frozen=True)
class Action:
    """One step: `what` is probe, commit, seat (at the earliest start from `at`) or release."""

    what: str
    op: str
    vector: ResourceVector
    at: int
    width: int


@dataclass(frozen=True)
class Play:
    machine: Machine
    ii: int
    actions: tuple[Action, ...]


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    capacities = st.sampled_from([1, 1, 1, 2, 3, 4, 5, None, 1000])
    first = draw(st.sampled_from([1, 1, 1, 60, 64]))  # from 64 on, some machines have no row words
    slots = tuple(
        Slot(id=first + i, name=f"s{i}", capacity=draw(capacities))
        for i in range(draw(st.integers(1, 3)))
    )
    caps = st.one_of(st.integers(1, 8), st.integers(1, 2048), st.just(2048))
    # A pool may be called as a slot is.
    names = ("s0", "p1")[: draw(st.integers(0, 2))]
    pools = tuple(Pool(name, draw(caps)) for name in names)
    return Machine("drawn", "a drawn machine", slots, pools)


def _amount(draw: st.DrawFn, limit: int | None) -> int:
    """Mostly what fits, seldom nothing or a little too much."""
    most = 3 if limit is None else limit
    few = draw(st.integers(0, 7)) > 0
    return draw(st.integers(1, max(1, most // 2)) if few else st.integers(0, most + 1))


@st.composite
def vectors(draw: st.DrawFn, machine: Machine, ii: int) -> ResourceVector:
    short = st.integers(0, max(1, ii // 2))
    wild = draw(st.integers(0, 2)) == 0  # long holds and repeated slots, which often never fit
    durations = st.integers(0, 3 * ii) if wild else short
    offsets = st.one_of(st.just(0), short, st.integers(0, 3 * ii))
    slots = st.lists(st.sampled_from(machine.slots), max_size=4, unique=not wild)
    uses = tuple(
        Use(slot.name, draw(durations), draw(offsets), _amount(draw, slot.capacity))
        for slot in draw(slots)
    )
    demands = ()
    if machine.pools:
        demands = tuple(
            Demand(pool.name, _amount(draw, pool.cap))
            for pool in draw(st.lists(st.sampled_from(machine.pools), max_size=2))
        )
    return ResourceVector(uses, demands)


@st.composite
def plays(draw: st.DrawFn, iis: st.SearchStrategy[int], most: int) -> Play:
    machine = draw(machines())
    ii = draw(iis)
    known = draw(st.lists(vectors(machine, ii), min_size=1, max_size=6))
    actions = st.builds(
        Action,
        st.sampled_from(["probe", "commit", "seat", "seat", "seat", "release"]),
        st.sampled_from(NAMES),
        st.sampled_from(known),
        st.integers(0, 4 * ii),
        st.one_of(st.integers(-1, ii), st.integers(-1, 3 * ii)),
    )
    return Play(machine, ii, tuple(draw(st.lists(actions, min_size=most // 2, max_size=most))))


def bits(mask: int) -> set[int]:
    return {t for t in range(mask.bit_length()) if mask >> t & 1}


def compare_views(table: ReservationTable, naive: NaiveTable, cycles: range) -> None:
    assert dict(table.placed) == naive.placed
    assert list(table.placed) == list(naive.placed)
    for slot in table.machine.slots:
        assert bits(table.column(slot.name)) == naive.column(slot.name)
        for t in cycles:
            assert table.occupancy(slot.name, t) == naive.occupancy(slot.name, t)
    for pool in table.machine.pools:
        for t in cycles:
            assert table.pool_load(pool.name, t) == naive.pool_load(pool.name, t)
    for slot in table.machine.slots:
        for t in cycles[:: max(1, len(cycles) // 5)]:
            assert table.holders(slot.name, t) == naive.holders(slot.name, t)
    if naive.words:
        assert table.rows() == naive.rows()
        assert table.row(cycles[-1] + table.ii) == naive.row(cycles[-1])


def compare_probes(
    table: ReservationTable, naive: NaiveTable, action: Action, every_start: bool
) -> None:
    vector, low, high = action.vector, action.at, action.at + action.width
    assert table.earliest(vector, low, high) == naive.earliest(vector, low, high)
    assert table.latest(vector, low, high) == naive.latest(vector, low, high)
    assert table.fits(vector, low) == naive.fits(vector, low)
    expected = naive.conflict(vector, low)
    assert table.conflict(vector, low) == expected
    assert (expected is None) == table.fits(vector, low)
    legal, illegal = table.legal_starts(vector), table.illegal_starts(vector)
    assert legal & illegal == 0
    assert legal | illegal == (1 << table.ii) - 1
    assert bool(legal >> low % table.ii & 1) == table.fits(vector, low)
    if every_start:
        assert bits(legal) == naive.legal_starts(vector)


def commit(table: ReservationTable | NaiveTable, op: str, vector: ResourceVector, at: int) -> str:
    """How a commitment ends."""
    try:
        table.commit(op, vector, at)
    except ConflictError as error:
        return str(error)
    except ValueError:
        return "twice"
    return "seated"


def release(table: ReservationTable | NaiveTable, op: str) -> str:
    try:
        table.release(op)
    except ValueError:
        return "not seated"
    return "released"


def perform(play: Play, every_cycle: bool) -> None:
    table, naive = ReservationTable(play.machine, play.ii), NaiveTable(play.machine, play.ii)
    for action in play.actions:
        compare_probes(table, naive, action, every_cycle)
        if action.what == "release":
            op = (list(naive.placed) or [action.op])[action.at % max(1, len(naive.placed))]
            assert release(table, op) == release(naive, op)
        elif action.what != "probe":
            at: int | None = action.at
            if action.what == "seat":
                at = table.earliest(action.vector, action.at, action.at + play.ii)
            if at is not None:
                ended = commit(table, action.op, action.vector, at)
                assert ended == commit(naive, action.op, action.vector, at)
                assert ended in ("seated", "twice") or action.what == "commit"
        step = 1 if every_cycle else max(1, play.ii // 37)
        compare_views(table, naive, range(0, play.ii, step))
    for op in list(naive.placed):
        table.release(op)
    assert not table.placed
    for slot in play.machine.slots:
        assert table.column(slot.name) == 0
    for pool in play.machine.pools:
        assert all(table.pool_load(pool.name, t) == 0 for t in range(play.ii))


@given(plays(st.integers(1, 20), 40))
def test_twin_at_small_intervals(play: Play) -> None:
    perform(play, every_cycle=True)


@given(plays(st.one_of(st.integers(60, 70), st.integers(100, 2000)), 12))
def test_twin_at_large_intervals(play: Play) -> None:
    perform(play, every_cycle=False)


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 3000), st.booleans()), max_size=12),
    st.integers(-2, 9000),
)
def test_counters_count(cycles: int, changes: list[tuple[int, int, bool]], limit: int) -> None:
    counters, counts = Counters(cycles), [0] * cycles
    undo: list[tuple[int, int]] = []
    for drawn, amount, back in changes:
        mask = drawn & counters.full
        counters.add(mask, amount)
        undo.append((mask, amount))
        if back:
            counters.subtract(*undo.pop(0))
    for mask, amount in undo:
        for t in bits(mask):
            counts[t] += amount
    assert [counters.count(t) for t in range(cycles)] == counts
    for level in {limit, *counts, *(c - 1 for c in counts)}:
        assert bits(counters.above(level)) == {t for t in range(cycles) if counts[t] > level}
    assert counters.planes == max(counts).bit_length(), "no plane more than the counts need"


# By example -----------------------------------------------------------------------------------

IDS = {"tc_and_mma": 11, "tma": 12, "tp_smem_rd": 15, "tp_smem_wr": 16, "tp_mma": 19}
FIVE = Machine("five", "the slots of four operations", tuple(Slot(i, n, 1) for n, i in IDS.items()))
LOAD = ResourceVector((Use("tma", 8), Use("tp_smem_wr", 8)))
WRITE = ResourceVector((Use("tp_smem_wr", 7),))
WGMMA = ResourceVector((Use("tc_and_mma", 8), Use("tp_mma", 8)))
READ = ResourceVector((Use("tp_smem_rd", 7),))

SMALL = Machine(
    "small",
    "one slot of each sort",
    (Slot(1, "one", 1), Slot(2, "four", 4), Slot(3, "free", None)),
    (Pool("bank", 8),),
)


def test_four_operations_fit_at_15() -> None:
    table = ReservationTable(FIVE, 15)
    table.commit("load", LOAD, 0)
    assert table.earliest(WRITE, 0, 100) == 8
    assert table.legal_starts(WRITE) == 1 << 8
    table.commit("write", WRITE, 8)
    table.commit("wgmma", WGMMA, 0)
    table.commit("read", READ, 8)
    assert table.column("tp_smem_wr") == (1 << 15) - 1
    assert table.rows() == (0x48C00,) * 8 + (0xC000,) * 7
    assert table.holders("tp_smem_wr", 7) == ("load",)
    assert table.holders("tp_smem_wr", 8 + 15) == ("write",)
    assert table.placed == {"load": 0, "write": 8, "wgmma": 0, "read": 8}


def test_four_operations_are_refused_at_14() -> None:
    table = ReservationTable(FIVE, 14)
    table.commit("load", LOAD, 0)
    assert table.earliest(WRITE, 0, 100) is None
    assert table.latest(WRITE, 0, 100) is None
    before = table.rows()
    with pytest.raises(ConflictError) as caught:
        table.commit("write", WRITE, 8)
    conflict = caught.value.conflict
    assert str(conflict) == (
        "`write` wants tp_smem_wr at cycle 0 (start 8 + 6, II 14): held by `load` (1 of 1)"
    )
    assert str(caught.value) == str(conflict)
    assert conflict.use == Use("tp_smem_wr", 7)
    assert (conflict.cycle, conflict.row, conflict.holders) == (0, 0x8800, ("load",))
    assert pickle.loads(pickle.dumps(caught.value)).conflict == conflict
    assert table.rows() == before
    assert table.placed == {"load": 0}


def test_sentence_of_a_shared_slot() -> None:
    table = ReservationTable(SMALL, 6)
    table.commit("a", ResourceVector((Use("four", 4, occupancy=2),)), 3)
    table.commit("b", ResourceVector((Use("four", 1),)), 12)
    two = ResourceVector((Use("four", 3, offset=1, occupancy=2),))
    assert str(table.conflict(two, 16)) == (
        "the operation wants 2 of four at cycle 0 (start 16 + 2, II 6): held by `a`, `b` (3 of 4)"
    )


def test_sentence_of_a_pool() -> None:
    table = ReservationTable(SMALL, 6)
    table.commit("a", ResourceVector((Use("free", 2),), (Demand("bank", 5),)), 2)
    conflict = table.conflict(ResourceVector((Use("free", 4),), (Demand("bank", 4),)), 0, "b")
    assert conflict is not None
    assert (conflict.pool, conflict.use, conflict.load, conflict.limit) == ("bank", None, 5, 8)
    assert str(conflict) == (
        "`b` draws 4 from bank at cycle 2 (start 0 + 2, II 6): drawn by `a` (5 of 8)"
    )


def test_sentence_of_an_operation_that_never_fits() -> None:
    table = ReservationTable(SMALL, 5)
    assert str(table.conflict(ResourceVector((Use("one", 7),)), 4, "x")) == (
        "`x` wants 2 of one at cycle 4 (start 4 + 0, II 5): it takes 2 of 1 by itself"
    )


@pytest.mark.parametrize(("ii", "legal"), [(4, True), (3, False), (5, True), (1, False)], ids=str)
def test_an_exclusive_hold_longer_than_the_interval_never_fits(ii: int, legal: bool) -> None:
    table = ReservationTable(SMALL, ii)
    expected = (1 << ii) - 1 if legal else 0
    assert table.legal_starts(ResourceVector((Use("one", 4),))) == expected


def test_a_long_hold_counts_once_a_turn_and_once_more_in_the_rest() -> None:
    table = ReservationTable(SMALL, 5)
    table.commit("x", ResourceVector((Use("four", 2 * 5 + 3),)), 4)
    assert [table.occupancy("four", t) for t in range(5)] == [3, 3, 2, 2, 3]
    assert table.legal_starts(ResourceVector((Use("four", 5 + 2),))) == 1 << 2
    table.commit("y", ResourceVector((Use("four", 5 + 2),)), 2)
    assert [table.occupancy("four", t) for t in range(5)] == [4, 4, 4, 4, 4]
    table.release("x")
    assert [table.occupancy("four", t) for t in range(5)] == [1, 1, 2, 2, 1]


def test_uses_of_one_slot_that_meet_modulo_the_interval() -> None:
    apart = ResourceVector((Use("one", 2), Use("one", 2, offset=6)))
    assert ReservationTable(SMALL, 8).legal_starts(apart) == 0xFF
    assert ReservationTable(SMALL, 5).legal_starts(apart) == 0  # 6 and 7 are 1 and 2 of 5
    conflict = ReservationTable(SMALL, 5).conflict(apart, 0)
    assert conflict is not None
    assert (conflict.use, conflict.offset, conflict.wanted) == (Use("one", 2), 1, 2)


def test_an_unlimited_slot_never_refuses_and_is_still_seen() -> None:
    table = ReservationTable(SMALL, 3)
    many = ResourceVector((Use("free", 1_000_000, occupancy=9),))
    for i in range(50):
        table.commit(f"op{i}", many, i)
    assert sum(table.occupancy("free", t) for t in range(3)) == 50 * 9 * 1_000_000
    assert table.column("free") == 0b111


def test_what_holds_nothing_always_fits() -> None:
    table = ReservationTable(SMALL, 1)
    table.commit("full", ResourceVector((Use("one", 1),), (Demand("bank", 8),)), 0)
    idle = ResourceVector(
        (Use("one", 0, offset=3), Use("one", 5, occupancy=0), Use("four", 0, occupancy=99)),
        (Demand("bank", 0),),
    )
    table.commit("idle", idle, 7)
    assert table.holders("one", 0) == ("full",)
    assert table.legal_starts(ResourceVector()) == 1


def test_a_slot_of_no_capacity_refuses_all_that_hold_it() -> None:
    table = ReservationTable(SMALL.with_capacity("one", 0), 3)
    assert table.legal_starts(ResourceVector((Use("one", 1),))) == 0
    assert table.legal_starts(ResourceVector((Use("four", 1),))) == 0b111


def test_large_capacities_take_few_planes() -> None:
    machine = SMALL.with_capacity("four", 1_000_000).with_cap("bank", 2048)
    table = ReservationTable(machine, 10)
    table.commit(
        "a", ResourceVector((Use("four", 5, occupancy=600_000),), (Demand("bank", 2048),)), 0
    )
    more = ResourceVector((Use("four", 2, occupancy=400_001),))
    assert table.legal_starts(more) == 0b01111_00000
    assert table.legal_starts(ResourceVector((Use("four", 2, occupancy=400_000),))) == 0x3FF
    assert table.pool_load("bank", 4) == 2048


def test_windows() -> None:
    table = ReservationTable(SMALL, 10)
    table.commit("a", ResourceVector((Use("one", 4),)), 3)
    two = ResourceVector((Use("one", 2),))
    assert table.earliest(two, 2, 6) is None
    assert table.earliest(two, 2, 7) == 7
    assert table.earliest(two, 1000, 1000) == 1000
    assert table.earliest(two, 1002, 5000) == 1007
    assert table.earliest(two, 7, 6) is None
    assert table.latest(two, 2, 6) is None
    assert table.latest(two, 1, 6) == 1
    assert table.latest(two, 0, 5006) == 5001
    assert table.latest(two, 8, 7) is None


def test_rows_are_refused_beyond_the_word_and_the_planes_still_decide() -> None:
    machine = Machine("wide", "70 slots", tuple(Slot(i, f"s{i}", 1) for i in range(1, 71)))
    table = ReservationTable(machine, 4)
    last = ResourceVector((Use("s70", 3),))
    table.commit("a", last, 0)
    conflict = table.conflict(last, 1)
    assert conflict is not None
    assert conflict.row is None
    with pytest.raises(StrettoError, match="`s70` has id 70"):
        table.row(0)
    with pytest.raises(StrettoError, match="6 of 70 slots"):
        table.rows()


def test_misuse_is_refused() -> None:
    table = ReservationTable(SMALL, 4)
    one = ResourceVector((Use("one", 1),))
    table.commit("a", one, 5)
    with pytest.raises(ValueError, match="`a` is already seated at 5"):
        table.commit("a", one, 2)
    with pytest.raises(ValueError, match="`b` is not seated"):
        table.release("b")
    with pytest.raises(ValueError, match="at least 0, not -1"):
        table.fits(one, -1)
    with pytest.raises(ValueError, match="at least 0, not -3"):
        table.earliest(one, -3, 5)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        ReservationTable(SMALL, 0)
    with pytest.raises(StrettoError, match="`small` has no slot `nope`"):
        table.fits(ResourceVector((Use("nope", 1),)), 0)
    with pytest.raises(StrettoError, match="`small` has no pool `nope`"):
        table.fits(ResourceVector((Use("one", 1),), (Demand("nope", 1),)), 0)
    assert table.placed == {"a": 5}
