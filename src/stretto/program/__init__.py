"""The whole emitted kernel as data: what is printed, timed and run.

expressions      what instructions compute with
instructions     what an agent does
kernel_program   the whole: memory, arguments, agents
layouts          which thread holds which element
"""

from stretto.program.kernel_program import AgentProgram, KernelProgram

__all__ = ["AgentProgram", "KernelProgram"]
