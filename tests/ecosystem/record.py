"""Records what libraries launch, without a GPU: `python record.py [CASE ...]`.

    cases/liger.py: rms_norm() ──► liger_kernel's own host code ──► launches/liger.jsonl

A case calls a library's own function at the sizes of a real model. Autotuners take the middle one
of the configurations that they would try. A case that raises is told, and what it had launched
by then stays.
"""

import importlib
import sys
import traceback
from pathlib import Path

import absent
import device
import torch
from launches import TARGET, TUTORIALS, load, recorded, save, written
from triton.compiler.compiler import make_backend
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction, create_function_from_signature

import triton

HERE = Path(__file__).parent
LAUNCHES = HERE / "launches"
ABSENT = ("torchvision", "sentencepiece", "tvm_ffi", "pynvml")
"""What host code imports and no function that is called needs."""
MOST = 2
"""Launches of one kernel that are kept of a case, where they compile to different code."""
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")


INDICES = ("int32", "int64", "uint32")
SHORT = 300


def _held(tensor):
    """What a tensor of integers holds, as it is kept."""
    tensor = tensor.to(torch.int64)
    if tensor.numel() <= SHORT:
        return tensor.flatten().tolist()
    return {"least": int(tensor.min()), "greatest": int(tensor.max())}


class Recorder:
    """Stands where Triton would compile and launch."""

    def __init__(self):
        self.case = ""
        self.found = []
        self.refused = []
        self._backend = make_backend(TARGET)

    def run(self, function, *args, grid, warmup=False, **more):  # noqa: ARG002
        """A launch, as `JITFunction.run` gets it."""
        mine = [
            one for one in self.found if one.case == self.case and one.name == function.__name__
        ]
        if len(mine) >= MOST:
            return
        bind = create_function_from_signature(function.signature, function.params, self._backend)
        given, special, options = bind(*args, **more)
        if callable(grid):
            grid = grid(dict(given))
        told = {k: written(v) for k, v in options.items() if k in OPTIONS}
        numbers, tensors, integers = {}, {}, {}
        for name, value in given.items():
            if isinstance(value, torch.Tensor):
                tensors[name] = [list(value.shape), list(value.stride()), str(value.dtype)[6:]]
                if tensors[name][2] in INDICES and value.numel():
                    integers[name] = _held(value)
            elif isinstance(value, bool | int | float):
                numbers[name] = value
        where = [int(n) for n in grid]
        try:
            one = recorded(
                self.case, function, (given, special), told, where, numbers, tensors, integers,
                self._backend,
            )  # fmt: skip
        except TypeError as error:
            self.refused.append((self.case, function.__name__, str(error)))
            return
        if all(one.key != other.key for other in self.found):
            self.found.append(one)

    def tuned(self, tuner, *args, **more):
        """As `Autotuner.run`, with the middle configuration and nothing timed."""
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        try:
            configurations = tuner.prune_configs(more) or tuner.configs
        except Exception:
            configurations = tuner.configs
        tuner.best_config = best = configurations[len(configurations) // 2]
        if best.pre_hook is not None:
            best.pre_hook({**tuner.nargs, **more, **best.all_kwargs()})
        return tuner.fn.run(*args, **{**more, **best.all_kwargs()})


def main(asked):
    """How many cases raised."""
    absent.stand_in(*ABSENT)
    device.pretend()
    recorder = Recorder()

    def run(function, *args, **more):
        return recorder.run(function, *args, **more)

    def tuned(tuner, *args, **more):
        return recorder.tuned(tuner, *args, **more)

    JITFunction.run, Autotuner.run = run, tuned
    LAUNCHES.mkdir(exist_ok=True)
    failed = 0
    for file in sorted((HERE / "cases").glob("*.py")):
        if asked and not any(one.split(".")[0] == file.stem for one in asked):
            continue
        if file.stem == "tutorials" and not TUTORIALS:
            print("Triton's tutorials are not there; what was recorded of them stays")
            continue
        recorder.found = []
        module = importlib.import_module(f"cases.{file.stem}")
        for name, case in vars(module).items():
            whole = f"{file.stem}.{name}"
            if name.startswith("_") or getattr(case, "__module__", "") != module.__name__:
                continue
            if asked and not any(one in (file.stem, whole) for one in asked):
                continue
            recorder.case = whole
            torch.manual_seed(0)
            try:
                case()
            except Exception as error:
                failed += 1
                last = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{last.filename}:{last.lineno}"
                print(f"{whole}: {type(error).__name__}: {str(error)[:300]} ({where})")
            names = [one.name for one in recorder.found if one.case == whole]
            print(f"{whole}: {', '.join(names) or 'nothing'}", flush=True)
        target = LAUNCHES / f"{file.stem}.jsonl"
        kept = recorder.found
        if any("." in one for one in asked) and target.exists():
            mine = {one.case for one in kept}
            kept = [one for one in load(target) if one.case not in mine] + kept
        save(target, kept)
    for case, kernel, why in recorder.refused:
        print(f"{case}: {kernel}: {why}")
    print(f"Triton {triton.__version__}, torch {torch.__version__}; {failed} cases raised")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
