"""Machines as data: slots, capacities, pools, encodings, latencies, budgets."""

from stretto.machine.load import load_machine, machine_beside, machine_names, read_machine
from stretto.machine.machine import (
    Budget,
    Cell,
    Encoding,
    Family,
    Figure,
    Machine,
    Need,
    Pool,
    Slot,
    Tag,
    UseCost,
)
from stretto.ops.spaces import SPACES, Space

__all__ = [
    "SPACES",
    "Budget",
    "Cell",
    "Encoding",
    "Family",
    "Figure",
    "Machine",
    "Need",
    "Pool",
    "Slot",
    "Space",
    "Tag",
    "UseCost",
    "load_machine",
    "machine_beside",
    "machine_names",
    "read_machine",
]
