"""NVIDIA's own assembler for the shipped cuTile attention, beside our kernels from the same source.

    python benchmarks/gpu/tileiras.py export FOLDER    bytecode and cubins for sm_90, without a GPU;
                                                        needs `pip install cuda-tile[tileiras]`
    python benchmarks/gpu/tileiras.py measure KERNELS -o results.json    as measure.py, with them

The cubins are launched through the driver by the documented convention: an array is its address,
its sizes and its strides; blocks are of one thread.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "cutile")]
CUBINS = HERE.parent.parent / "build" / "gpu" / "cubins"
TILES = ((64, 64), (64, 128), (128, 64), (128, 128))
HINTS = ({}, {"occupancy": 2}, {"num_worker_warps": 8}, {"num_worker_warps": 8, "occupancy": 2})


def named(d, m, n, hints):
    """What a cubin is called."""
    return f"attention_d{d}_{m}x{n}" + "".join(f"_{key}{value}" for key, value in hints.items())


def export(folder):
    """Every setting as a cubin; what our kernels are made from as bytecode."""
    import cuda.tile as ct
    from cuda.tile.compilation import (
        ArrayConstraint,
        CallingConvention,
        KernelSignature,
        ScalarConstraint,
        export_kernel,
    )

    import attention_forward

    folder.mkdir(parents=True, exist_ok=True)
    array = ArrayConstraint(
        ct.float16,
        3,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=(None, None, 1),
        stride_divisible_by=(16, 16, 1),
        shape_divisible_by=(1, 16, 16),
        base_addr_divisible_by=16,
    )
    for d, (m, n), hints in itertools.product((128,), TILES, HINTS):
        name = named(d, m, n, hints)
        kernel = ct.kernel(attention_forward.attention_forward, **hints)
        given = [*[array] * 4, ScalarConstraint(ct.float32), m, n, d, False]
        signature = KernelSignature(given, CallingConvention.cutile_python_v1(), symbol=name)
        try:
            export_kernel(
                kernel, [signature], f"{folder}/{name}.cubin", gpu_code="sm_90",
                output_format="cubin",
            )  # fmt: skip
            if not hints and m == 128:
                export_kernel(
                    kernel, [signature], f"{folder}/{name}.tileirbc", gpu_code="sm_90",
                    output_format="tileir_bytecode",
                )  # fmt: skip
            print(name, flush=True)
        except Exception as failed:
            print(f"left out {name}: {str(failed)[:120]}", flush=True)


def launches(problem):
    """The cubins on a problem, by name."""
    if problem.causal or problem.d != 128 or not CUBINS.exists():
        return {}
    import torch

    driver = ctypes.CDLL("libcuda.so.1")
    found = {}
    tensors = [problem.heads_of(t) for t in (problem.q, problem.k, problem.v, problem.o)]
    for file in sorted(CUBINS.glob("*.cubin")):
        rows = int(file.stem.split("_")[2].split("x")[0])
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        image = file.read_bytes()
        if driver.cuModuleLoadData(ctypes.byref(module), image):
            continue
        if driver.cuModuleGetFunction(ctypes.byref(function), module, file.stem.encode()):
            continue
        args = []
        for tensor in tensors:
            args.append(ctypes.c_void_p(tensor.data_ptr()))
            args += [ctypes.c_int32(size) for size in (*tensor.shape, *tensor.stride())]
        args.append(ctypes.c_float(problem.scale))
        pointers = (ctypes.c_void_p * len(args))(
            *[ctypes.cast(ctypes.byref(arg), ctypes.c_void_p) for arg in args]
        )
        grid = [ctypes.c_uint(n) for n in (problem.length // rows, problem.heads, 1)]

        def go(function=function, grid=grid, pointers=pointers, args=args, image=image):
            del args, image
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            block = [ctypes.c_uint(1)] * 3
            failed = driver.cuLaunchKernel(
                function, *grid, *block, ctypes.c_uint(0), stream, pointers, None
            )
            if failed:
                raise RuntimeError(f"cuLaunchKernel: {failed}")

        found[f"tileiras {file.stem.removeprefix('attention_')}"] = go
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["export"]:
        export(Path(sys.argv[2]))
    else:
        import measure

        measure.__file__ = str(HERE / "measure.py")
        del sys.argv[1]
        measure.main(launches)
