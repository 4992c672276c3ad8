"""Writes the bytecode beside the kernels, without a GPU.

    pip install cuda-tile==1.7.0
    python examples/cutile/export.py [VERSION [FOLDER]]

From the project's folder: the paths in the bytecode's locations are relative to it.
"""

# cuda-tile is no part of the project's own environment.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import sys
from pathlib import Path

import cuda.tile as ct
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    KernelSignature,
    ScalarConstraint,
    export_kernel,
)

HERE = "examples/cutile"
F16, BF16, F32 = ct.float16, ct.bfloat16, ct.float32
NUMBER = ScalarConstraint(F32)


def array(dtype, rank):
    """Row-major; addresses, sizes and strides are divisible by 16."""
    outer = rank - 1
    return ArrayConstraint(
        dtype,
        rank,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=(None,) * outer + (1,),
        stride_divisible_by=(16,) * outer + (1,),
        shape_divisible_by=(16,) * rank,
        base_addr_divisible_by=16,
    )


def attention(d, causal):
    """A kernel of heads of length d."""
    return [*[array(BF16, 3)] * 4, NUMBER, 128, 64, d, causal]


GRADIENTS = [*[array(BF16, 3)] * 4, *[array(F32, 2)] * 2]
KERNELS = {
    "matmul": ("matmul", [*[array(F16, 2)] * 3, 128, 128, 64, 8]),
    "matmul_persistent": ("matmul_persistent", [*[array(F16, 2)] * 3, 128, 128, 64]),
    "matmul_bias_silu": (
        "matmul_bias_silu",
        [array(F16, 2), array(F16, 2), array(F16, 1), array(F16, 2), 128, 128, 64],
    ),
    "attention_forward_d64": ("attention_forward", attention(64, False)),
    "attention_forward_d128": ("attention_forward", attention(128, False)),
    "attention_forward_d64_causal": ("attention_forward", attention(64, True)),
    "attention_forward_d128_causal": ("attention_forward", attention(128, True)),
    "attention_backward": (
        "attention_backward",
        [*GRADIENTS, *[array(BF16, 3)] * 2, NUMBER, NUMBER, 64, 128, 128],
    ),
    "attention_backward_dq": (
        "attention_backward_dq",
        [*GRADIENTS, array(BF16, 3), NUMBER, NUMBER, 128, 64, 128],
    ),
    "layer_norm": (
        "layer_norm",
        [
            array(F16, 2),
            array(F16, 1),
            array(F16, 1),
            array(F16, 2),
            ScalarConstraint(ct.int32),
            NUMBER,
            1024,
        ],
    ),
    "softmax": ("softmax", [array(F16, 2), array(F16, 2), 4, 1024]),
}


def load(name):
    """The kernel of a file, which calls itself by a path relative to the project's folder."""
    path = f"{HERE}/{name}.py"
    found = {"__name__": name}
    exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"), found)
    return found[name]


def export(name, version, folder):
    """One kernel into folder/name.tileirbc."""
    module, parameters = KERNELS[name]
    signature = KernelSignature(parameters, CallingConvention.cutile_python_v1(), symbol=name)
    export_kernel(
        ct.kernel(load(module)),
        [signature],
        f"{folder}/{name}.tileirbc",
        gpu_code="sm_100",
        output_format="tileir_bytecode",
        bytecode_version=version,
    )


def main(version="13.3", folder=HERE):
    """All of them."""
    Path(folder).mkdir(exist_ok=True)
    for name in KERNELS:
        export(name, version, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
