"""What is true of an opcode and of a memory space: one table each, one row a thing.

    opcodes   async.tcgen05_mma   issued by the MMA agent   adds to operand 2   fills operand 3
    spaces    smem                shared memory             bytes of a budget   !nv_tileas.smem_ref

Whoever wants to know asks the row; nothing is told by a word in a name.
"""
