"""Replicas of an agent: what more of a slot asks for."""

from __future__ import annotations

import pytest

from stretto.machine import load_machine
from stretto.machine.replicas import more_of


@pytest.mark.parametrize(
    ("machine", "slot", "after", "asks"),
    [
        ("h200", "compute", 2, "by `emit --consumers 2`"),
        ("h200", "compute", 4, "by `emit --consumers 4`"),
        ("h200", "compute", 5, "with more warps"),
        ("h200", "compute.1", 2, "with more warps"),
        ("h200", "copy", 2, "with more warps"),
        ("h200", "TC", 2, "on other hardware"),
        ("b200", "compute", 2, "with more warps"),
        ("blackwell", "tp_smem_wr", 2, "on other hardware"),
    ],
)
def test_more_of_a_slot_asks_for(machine: str, slot: str, after: int, asks: str) -> None:
    told, hardware = more_of(load_machine(machine), slot, 1, after)
    assert (told, hardware) == (asks, asks == "on other hardware")
