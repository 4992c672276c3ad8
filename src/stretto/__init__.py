"""Stretto: software pipelining for GPU tile loops.

    import stretto

    (loop,) = stretto.read("examples/gemm.json")  # or stretto.build(...)
    stretto.bounds(loop)  # what the II cannot be below, and why
    found = stretto.schedule(loop, "b200-pipes")  # the best schedule found, verified
    print(found.ii, found.starts, found.report())
    stretto.explain(loop)  # why not a smaller II
    stretto.simulate(loop, found).equal  # the program computes what the loop does
    stretto.write(found, "gemm.schedule.json")

Loops are given as they are, machines by name or by the path of a TOML file. The parts of loops
(`Op`, `Value`, `Storage`, ...) are in `stretto.loop`, those of machines in `stretto.machine`.
Names are loaded when first used, so that importing the package costs nothing.
"""

TYPE_CHECKING = False  # typing takes a while to load, and a command starts here
if TYPE_CHECKING:
    from typing import Any

    from stretto.api.assigning import AssignResult, assign
    from stretto.api.bounding import BoundsResult, bounds
    from stretto.api.checking import VerifyResult, verify
    from stretto.api.comparing import compare
    from stretto.api.converting import Conversion, convert
    from stretto.api.emitting import emit
    from stretto.api.explaining import ExplainResult, explain
    from stretto.api.kernels import KernelSimulation, import_kernel, simulate_kernel
    from stretto.api.pipelined import MaterializeResult, SimulateResult, materialize, simulate
    from stretto.api.predicting import KernelPrediction, KernelRanking, predict, rank
    from stretto.api.read_write import read, write
    from stretto.api.solving import ScheduleResult, schedule
    from stretto.deadline import OverdueError
    from stretto.errors import DocumentError, InfeasibleError, MachineError, StrettoError
    from stretto.frontends import Source
    from stretto.frontends.builder import LoopBuilder, build
    from stretto.frontends.random_loops import generate_loops
    from stretto.generate.outside import GeneratorTask, register_generator
    from stretto.kernel import Kernel, KernelError
    from stretto.loop import Loop, LoopError
    from stretto.machine import Machine, load_machine, machine_names
    from stretto.many.batch import batch
    from stretto.many.bench import bench
    from stretto.many.sweep import sweep
    from stretto.materialization import MaterializeError, Program
    from stretto.report.comparison import Comparison
    from stretto.resources.prepare import Prepared, prepare
    from stretto.solution import Bounds, Schedule, ScheduleAnalysis
    from stretto.solve import IllegalScheduleError, StoppedError

__version__ = "0.4.0.dev0"

_HOMES = {
    "stretto.api.assigning": ("AssignResult", "assign"),
    "stretto.api.bounding": ("BoundsResult", "bounds"),
    "stretto.api.checking": ("VerifyResult", "verify"),
    "stretto.api.comparing": ("compare",),
    "stretto.api.converting": ("Conversion", "convert"),
    "stretto.api.emitting": ("emit",),
    "stretto.api.explaining": ("ExplainResult", "explain"),
    "stretto.api.kernels": ("KernelSimulation", "import_kernel", "simulate_kernel"),
    "stretto.api.predicting": ("KernelPrediction", "KernelRanking", "predict", "rank"),
    "stretto.api.pipelined": ("MaterializeResult", "SimulateResult", "materialize", "simulate"),
    "stretto.api.read_write": ("read", "write"),
    "stretto.api.solving": ("ScheduleResult", "schedule"),
    "stretto.deadline": ("OverdueError",),
    "stretto.errors": ("DocumentError", "InfeasibleError", "MachineError", "StrettoError"),
    "stretto.frontends": ("Source",),
    "stretto.frontends.builder": ("LoopBuilder", "build"),
    "stretto.frontends.random_loops": ("generate_loops",),
    "stretto.generate.outside": ("GeneratorTask", "register_generator"),
    "stretto.kernel": ("Kernel", "KernelError"),
    "stretto.loop": ("Loop", "LoopError"),
    "stretto.machine": ("Machine", "load_machine", "machine_names"),
    "stretto.many.batch": ("batch",),
    "stretto.many.bench": ("bench",),
    "stretto.many.sweep": ("sweep",),
    "stretto.materialization": ("MaterializeError", "Program"),
    "stretto.report.comparison": ("Comparison",),
    "stretto.resources.prepare": ("Prepared", "prepare"),
    "stretto.solution": ("Bounds", "Schedule", "ScheduleAnalysis"),
    "stretto.solve": ("IllegalScheduleError", "StoppedError"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AssignResult",
    "Bounds",
    "BoundsResult",
    "Comparison",
    "Conversion",
    "DocumentError",
    "ExplainResult",
    "GeneratorTask",
    "IllegalScheduleError",
    "InfeasibleError",
    "Kernel",
    "KernelError",
    "KernelPrediction",
    "KernelRanking",
    "KernelSimulation",
    "Loop",
    "LoopBuilder",
    "LoopError",
    "Machine",
    "MachineError",
    "MaterializeError",
    "MaterializeResult",
    "OverdueError",
    "Prepared",
    "Program",
    "Schedule",
    "ScheduleAnalysis",
    "ScheduleResult",
    "SimulateResult",
    "Source",
    "StoppedError",
    "StrettoError",
    "VerifyResult",
    "assign",
    "batch",
    "bench",
    "bounds",
    "build",
    "compare",
    "convert",
    "emit",
    "explain",
    "generate_loops",
    "import_kernel",
    "load_machine",
    "machine_names",
    "materialize",
    "predict",
    "prepare",
    "rank",
    "read",
    "register_generator",
    "schedule",
    "simulate",
    "simulate_kernel",
    "sweep",
    "verify",
    "write",
]


def __getattr__(name: str) -> "Any":
    if name in _HOME:
        from importlib import import_module  # noqa: PLC0415

        found = getattr(import_module(_HOME[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'stretto' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
