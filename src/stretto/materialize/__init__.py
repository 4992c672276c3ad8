"""From a finished analysis to a program: pipes, mutexes, expansion, agents. It never searches."""

from stretto.materialize.build import materialize
from stretto.materialize.errors import BarrierError, MaterializeError, RegionError, ShapeError
from stretto.materialize.instructions import Instruction, Stream
from stretto.materialize.persistent import Persistent, WorkTile
from stretto.materialize.region import region_faults
from stretto.materialize.types import (
    MODES,
    Agent,
    Consumer,
    Iterator,
    Mode,
    Mutex,
    Pipe,
    Program,
    Ring,
    Waiter,
)

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
