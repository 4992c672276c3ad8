"""Executes the sequential loop and the pipelined programs, cycle by cycle, and compares them."""

from stretto.simulation.domains import Domain, Symbolic, run_sequential
from stretto.simulation.outcome import VIOLATION_NAMES, Simulation
from stretto.simulation.simulator import simulate, simulate_program

__all__ = [
    "VIOLATION_NAMES",
    "Domain",
    "Simulation",
    "Symbolic",
    "run_sequential",
    "simulate",
    "simulate_program",
]
