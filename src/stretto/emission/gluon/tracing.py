"""Clocks in emitted source: functions that read them, and the host's that leaves them in a file."""

from __future__ import annotations

from hashlib import sha256

from stretto.program.traces import BLOCKS, size

FUNCTIONS = '''
@gluon.jit
def clock():
    """Cycles of this SM."""
    return gl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l", [], gl.int64, is_pure=False, pack=1
    )


@gluon.jit
def nanoseconds():
    """Time of the whole GPU."""
    return gl.inline_asm_elementwise(
        "mov.u64 $0, %globaltimer;", "=l", [], gl.int64, is_pure=False, pack=1
    )


@gluon.jit
def block():
    """The number of this block in its grid."""
    inner = gl.program_id(1) + gl.num_programs(1) * gl.program_id(2)
    return gl.program_id(0) + gl.num_programs(0) * inner
'''

SCHEMA = "stretto.clocks/1"
"""Of the file in which a launch leaves its marks."""

_READ_BACK = '''

TRACED = "{digest}"
TRACE_BLOCK = {each}  # numbers of 64 bits, zero at first, that `trace` has for each block


def write_trace(trace, file):
    """Leave the clocks of a launch in a file, for `stretto predict --measured`."""
    import json

    clocks = [int(clock) for clock in trace.reshape(-1)[: {blocks} * TRACE_BLOCK].tolist()]
    with open(file, "w") as out:
        json.dump({{"schema": "{schema}", "traced": TRACED, "clocks": clocks}}, out)
'''


def read_back(text: str, agents: int) -> str:
    """The host's function that writes marks to a file, and the source's own name in it."""
    digest = sha256(text.encode()).hexdigest()[:32]
    each = agents * size("marks")
    return _READ_BACK.format(digest=digest, each=each, blocks=BLOCKS, schema=SCHEMA)


def traced(source: str) -> str:
    """The name that a source with marks has for itself; empty where it has none."""
    _, found, behind = source.partition('\nTRACED = "')
    return behind.partition('"')[0] if found else ""
