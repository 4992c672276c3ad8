"""Programs of whole kernels as text, and back: what is read prints as what was written.

    func.func @matmul(...) { ... }                 the lowered kernel, as `stretto import` prints it
    "stretto.kernel_program"() ({ memory }, { descriptors }, { arguments }, { agents })

    %slot = "stretto.barrier"() {name = "a_full", index = "a_slot"} : () -> none
    %phase = "stretto.name"() {name = "a_phase"} : () -> none
    "stretto.consumer_wait"(%slot, %phase) {means = "mbarrier"} : (none, none) -> ()

An instruction is an operation: expressions, slots and barriers are its operands, bodies its
regions, all else are its attributes. Which is which follows from the types of its fields
(`fields.py`), so that an instruction that is new is written and read like the others. Waits and
arrivals have the names that pipes and mutexes give them, and `means` says by what they come about.
"""

from stretto.ir.kernel_programs.reading import read_kernel_program
from stretto.ir.kernel_programs.writing import kernel_program_text

__all__ = ["kernel_program_text", "read_kernel_program"]
