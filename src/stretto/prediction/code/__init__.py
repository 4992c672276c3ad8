"""Machine code of a kernel's loops, issued cycle by cycle: what the assembler made of a schedule.

    nvdisasm ──► listing   instructions with the stalls and barriers that the assembler gave them
                 steps     the steady loop of each agent, known by the waits and products in it
                 warps     one of an SM's four schedulers, with a warp of each group of four
                 pacing    cycles of a step, tiles coming as the machine's copies do

An agent's four warps lie on four schedulers and do the same there, so that one of them tells.
"""
