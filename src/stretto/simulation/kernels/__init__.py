"""Whole kernels on real values: every block of the grid, loops as they stand or pipelined.

    run_kernel(kernel, {"a_ptr": a, "M": 256, ...}, grid=(2, 2))       one step after the other
    run_kernel(..., pipelined={loop: (program, wiring)})               each loop by its program

Addresses, masks, bounds of loops and what sums begin with are computed from the text. NumPy is
loaded with this package, which nothing else imports before it is asked for.
"""

from stretto.simulation.kernels.interpreter import Pipelined, run_kernel

__all__ = ["Pipelined", "run_kernel"]
