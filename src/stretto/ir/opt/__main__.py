"""`python -m stretto.ir.opt` is `stretto-opt`."""

from stretto.ir.opt.main import run

run()
