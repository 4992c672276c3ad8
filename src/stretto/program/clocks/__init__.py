"""Whether a program is right whatever its timing: its instructions, run by clocks.

orders    what has happened before what: accesses of memory, barriers
agents    instructions of one agent, run
checking  every trip count that matters
"""

from stretto.program.clocks.checking import Covered, check_program
from stretto.program.clocks.orders import FaultError

__all__ = ["Covered", "FaultError", "check_program"]
