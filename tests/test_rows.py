"""Row words of a reservation table: the published footprints, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.loop import Demand, ResourceVector, Use
from stretto.machine import Machine, Pool, Slot
from stretto.resources.table import ReservationTable

IDS = {"tc_and_mma": 11, "tma": 12, "tp_smem_rd": 15, "tp_smem_wr": 16, "tp_mma": 19}
MACHINE = Machine(
    "five",
    "the slots of four operations",
    tuple(Slot(i, n, 100) for n, i in IDS.items()),
    (Pool("p", 3),),
)
END = 12
"""No use of these tests ends later."""


def rows(*uses: Use, machine: Machine = MACHINE, demands: tuple[Demand, ...] = ()) -> list[int]:
    """The words of a table in which one operation stands, up to the last that has a bit."""
    table = ReservationTable(machine, END)
    table.commit("op", ResourceVector(uses, demands), 0)
    words = list(table.rows())
    while words and not words[-1]:
        words.pop()
    return words


@pytest.mark.parametrize(
    ("uses", "words"),
    [
        ((Use("tma", 8), Use("tp_smem_wr", 8)), [0x8800] * 8),
        ((Use("tc_and_mma", 8), Use("tp_mma", 8)), [0x40400] * 8),
        ((Use("tp_smem_wr", 7),), [0x8000] * 7),
        ((Use("tp_smem_rd", 7),), [0x4000] * 7),
    ],
    ids=["tma_load", "wgmma", "smem_write", "smem_read"],
)
def test_published_footprints(uses: tuple[Use, ...], words: list[int]) -> None:
    assert rows(*uses) == words


def test_offsets_and_gaps() -> None:
    found = rows(Use("tp_smem_wr", 1, offset=3), Use("tma", 2), Use("tma", 1, offset=3))
    assert found == [0x800, 0x800, 0, 0x8800]


def test_what_holds_nothing_has_no_rows() -> None:
    assert rows(Use("tma", 0, offset=5), Use("tma", 4, occupancy=0)) == []
    assert rows(Use("tma", 1), demands=(Demand("p", 3),)) == [0x800]


def test_the_last_bit_of_the_word() -> None:
    machine = Machine("wide", "64 slots", tuple(Slot(i, f"s{i}", 1) for i in range(1, 65)))
    assert rows(Use("s1", 1), Use("s64", 2), machine=machine) == [1 << 63 | 1, 1 << 63]


def test_machines_beyond_the_word_are_refused() -> None:
    machine = Machine("wider", "one too many", (Slot(1, "a", 1), Slot(65, "b", 1)))
    expected = r"machine `wider`.*slot `b` has id 65.*64 bits \(1 of 2 slots"
    with pytest.raises(StrettoError, match=expected):
        ReservationTable(machine, END).row(0)
    with pytest.raises(StrettoError, match=expected):
        ReservationTable(machine, END).rows()


USE = st.builds(
    Use, st.sampled_from(sorted(IDS)), st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)
)


@given(st.lists(USE, max_size=5).map(tuple))
def test_a_bit_is_set_exactly_where_a_slot_is_held(uses: tuple[Use, ...]) -> None:
    found = rows(*uses)
    for k in range(END):
        held = {IDS[u.slot] for u in uses if u.occupancy and u.offset <= k < u.end}
        word = found[k] if k < len(found) else 0
        assert word == sum(1 << (i - 1) for i in held)
