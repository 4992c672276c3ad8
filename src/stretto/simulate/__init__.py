"""Executes the sequential loop and the pipelined programs, cycle by cycle, and compares them."""

from stretto.simulate.outcome import VIOLATION_NAMES, Blocked, Issued, Simulation, Violation
from stretto.simulate.simulator import simulate, simulate_program
from stretto.simulate.values import Domain, Symbolic, Trace, run_sequential

__all__ = [
    "VIOLATION_NAMES",
    "Blocked",
    "Domain",
    "Issued",
    "Simulation",
    "Symbolic",
    "Trace",
    "Violation",
    "run_sequential",
    "simulate",
    "simulate_program",
]
