"""Row words: the published footprints, round trips, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.loop import Demand, ResourceVector, Use
from stretto.machine import Machine, Slot
from stretto.resources import decode_rows, encode_rows

IDS = {"tc_and_mma": 11, "tma": 12, "tp_smem_rd": 15, "tp_smem_wr": 16, "tp_mma": 19}
MACHINE = Machine(
    "five", "the slots of four operations", tuple(Slot(i, n, 1) for n, i in IDS.items())
)

FOOTPRINTS = {
    "tma_load": ((Use("tma", 8), Use("tp_smem_wr", 8)), (0x8800,) * 8),
    "wgmma": ((Use("tc_and_mma", 8), Use("tp_mma", 8)), (0x40400,) * 8),
    "smem_write": ((Use("tp_smem_wr", 7),), (0x8000,) * 7),
    "smem_read": ((Use("tp_smem_rd", 7),), (0x4000,) * 7),
}


@pytest.mark.parametrize("name", FOOTPRINTS)
def test_published_footprints(name: str) -> None:
    uses, rows = FOOTPRINTS[name]
    assert encode_rows(ResourceVector(uses), MACHINE) == rows
    assert decode_rows(rows, MACHINE) == uses


def test_offsets_and_gaps() -> None:
    vector = ResourceVector(
        (Use("tp_smem_wr", 1, offset=3), Use("tma", 2), Use("tma", 1, offset=3))
    )
    assert encode_rows(vector, MACHINE) == (0x800, 0x800, 0, 0x8800)


def test_what_holds_nothing_has_no_rows() -> None:
    uses = (Use("tma", 0, offset=5), Use("tma", 4, occupancy=0))
    assert encode_rows(ResourceVector(uses, (Demand("p", 3),)), MACHINE) == ()
    assert decode_rows((), MACHINE) == ()
    assert decode_rows((0, 0), MACHINE) == ()


def test_meeting_and_overlapping_uses_decode_as_one_run() -> None:
    vector = ResourceVector((Use("tma", 2), Use("tma", 3, offset=2), Use("tma", 3, offset=4)))
    assert decode_rows(encode_rows(vector, MACHINE), MACHINE) == (Use("tma", 7),)


def test_the_last_bit_of_the_word() -> None:
    machine = Machine("wide", "64 slots", tuple(Slot(i, f"s{i}", 1) for i in range(1, 65)))
    vector = ResourceVector((Use("s1", 1), Use("s64", 2)))
    assert encode_rows(vector, machine) == (1 << 63 | 1, 1 << 63)
    assert decode_rows((1 << 63,), machine) == (Use("s64", 1),)


def test_machines_beyond_the_word_are_refused() -> None:
    machine = Machine("wider", "one too many", (Slot(1, "a", 1), Slot(65, "b", 1)))
    expected = r"machine `wider`.*slot `b` has id 65.*64 bits \(1 of 2 slots"
    with pytest.raises(StrettoError, match=expected):
        encode_rows(ResourceVector(), machine)
    with pytest.raises(StrettoError, match=expected):
        decode_rows((), machine)


def test_unknown_slots_and_bits_are_refused() -> None:
    with pytest.raises(StrettoError, match="`five` has no slot `nope`"):
        encode_rows(ResourceVector((Use("nope", 1),)), MACHINE)
    with pytest.raises(StrettoError, match="row 1 is 0x1: machine `five` has no slot of id 1"):
        decode_rows((0x800, 0x1), MACHINE)
    with pytest.raises(StrettoError, match="row 0 is 0x10000000000000000, not a word of 64 bits"):
        decode_rows((1 << 64,), MACHINE)


WORDS = st.lists(st.sets(st.sampled_from(sorted(IDS.values()))), max_size=12).map(
    lambda rows: tuple(sum(1 << (i - 1) for i in row) for row in rows)
)


@given(WORDS)
def test_rows_round_trip(rows: tuple[int, ...]) -> None:
    uses = decode_rows(rows, MACHINE)
    again = encode_rows(ResourceVector(uses), MACHINE)
    assert again + (0,) * (len(rows) - len(again)) == rows
    assert [(IDS[u.slot], u.offset) for u in uses] == sorted((IDS[u.slot], u.offset) for u in uses)
    for a in uses:
        assert not any(b.slot == a.slot and b.offset == a.end for b in uses), "a run is maximal"


USE = st.builds(
    Use, st.sampled_from(sorted(IDS)), st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)
)


@given(st.lists(USE, max_size=5).map(tuple))
def test_a_bit_is_set_exactly_where_a_slot_is_held(uses: tuple[Use, ...]) -> None:
    rows = encode_rows(ResourceVector(uses), MACHINE)
    assert not rows or rows[-1], "no empty rows at the end"
    for k in range(14):
        word = rows[k] if k < len(rows) else 0
        for name, slot_id in IDS.items():
            held = any(u.slot == name and u.offset <= k < u.end and u.occupancy for u in uses)
            assert bool(word >> (slot_id - 1) & 1) == held
