"""How long an emitted kernel takes, from what its machine's file says and nothing else.

    score         what its agents do, in order (written down while the source was written)
    blocks        arithmetic between two waits, as stretches of work
    instructions  what agents do, and what it costs
    engine        agents, tensor core, copies and barriers of one SM, event by event
    copying       where copies come from, and who shares them
    numbers       what a kernel's own numbers are in a block: trip counts, coordinates
    touching      what threads load and store themselves, and by how many blocks
    memory        how long such a load takes, and what caches keep
    threads       a block of such a kernel, and how many of them an SM has
    whole         prologue to epilogue, waves and tail over the SMs, time

No number here is fitted to a kernel that is predicted: all of them are figures of the machine,
which microbenchmarks measured.
"""
