"""Executes the sequential loop and the pipelined programs, cycle by cycle, and compares them."""

from stretto.simulate.domains import Domain, Symbolic, run_sequential
from stretto.simulate.outcome import VIOLATION_NAMES, Simulation
from stretto.simulate.simulator import simulate, simulate_program

__all__ = [
    "VIOLATION_NAMES",
    "Domain",
    "Simulation",
    "Symbolic",
    "run_sequential",
    "simulate",
    "simulate_program",
]
