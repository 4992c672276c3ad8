"""Kernels at launch: what Triton or cuTile read for the arguments at hand, as Gluon, launched.

content (TTIR, bytecode) ──► Store ──► Gluon in a file ──► Loaded ──► Bound ──► kernel[grid](…)
                              │ not there yet: read, schedule, emit
                              └──► STRETTO_REPORT

asked      what the user asked for, which machine it means, and the key of it all
storing    what was made, on disk by content
reporting  what was made, for people: schedules, source, JSON
making     from content to a stored entry
loading    an entry as a module; arguments that hold no memory of the user's
launcher   one kernel: its variants, its ready launches, what it could not do and said so
"""

from stretto.launching.asked import Asked
from stretto.launching.device import current_device
from stretto.launching.exact import exactly
from stretto.launching.launcher import Launcher, PipelineWarning, Refused
from stretto.launching.loading import Bound, Tensor

__all__ = [
    "Asked",
    "Bound",
    "Launcher",
    "PipelineWarning",
    "Refused",
    "Tensor",
    "current_device",
    "exactly",
]
