"""Runs other people's Gluon kernels without a GPU, and finds what is wrong with their pipelines.

    kernel.py ─► stand-ins for Triton and torch ─► programs of its launches, under several orders
              ─► vector clocks, barriers, proxies, budgets ─► findings, and what was not covered

It knows nothing of how Stretto makes or emits kernels: it is a second opinion on those as well.
"""
