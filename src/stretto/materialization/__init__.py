"""From a finished analysis to a program: pipes, mutexes, expansion, agents. It never searches."""

from stretto.errors import MaterializeError
from stretto.materialization.build import BarrierError, materialize
from stretto.materialization.persistent import Persistent, ShapeError, WorkTile
from stretto.materialization.program import (
    MODES,
    Agent,
    Consumer,
    Instruction,
    Iterator,
    Mode,
    Mutex,
    Pipe,
    Program,
    Ring,
    Stream,
    Waiter,
)
from stretto.materialization.region import RegionError, region_faults

__all__ = [
    "MODES",
    "Agent",
    "BarrierError",
    "Consumer",
    "Instruction",
    "Iterator",
    "MaterializeError",
    "Mode",
    "Mutex",
    "Persistent",
    "Pipe",
    "Program",
    "RegionError",
    "Ring",
    "ShapeError",
    "Stream",
    "Waiter",
    "WorkTile",
    "materialize",
    "region_faults",
]
