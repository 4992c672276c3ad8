"""Loops out of kernels and modules: operations, dependences and storages, with references back.

    kernel ──► lower ──► trees ──┐
                                 ├──► loops ──► wiring ──► RunnableKernel, whose loops are scheduled
    MLIR text ──► ir ────────────┘

There is one derivation (`flow`, `storages`, `body`, `nested`), which asks whatever it reads by the
questions of `source`.
"""
