"""Sources of shipped kernels are the golden ones, byte for byte: `tests/gpu/golden`.

Here are those that are emitted within a second; all of them are compared by
`python tests/gpu/compile.py --golden`.
"""

import importlib.util
from pathlib import Path

import pytest

GPU = Path(__file__).parents[1] / "gpu"
_SPEC = importlib.util.spec_from_file_location("golden_kernels", GPU / "compile.py")
assert _SPEC is not None
assert _SPEC.loader is not None
golden = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(golden)

QUICK = (
    "atomics-loop", "atomics-split-k", "b200-matmul_bias_silu", "b200-matmul_descriptors",
    "b200-matmul_fused", "b200-matmul_persistent", "b200-matmul_pointers", "cutile-layer_norm",
    "cutile-matmul", "cutile-matmul_bias_silu", "cutile-matmul_persistent", "cutile-softmax",
    "exchange-batched", "exchange-turned", "ordinary-carried", "ordinary-dropped",
    "ordinary-folded", "ordinary-grouped", "ordinary-halves", "ordinary-heads", "ordinary-layers",
    "ordinary-marked", "ordinary-pairs", "ordinary-strips", "triton-matmul_descriptors",
    "triton-matmul_fused", "triton-matmul_persistent", "triton-softmax",
)  # fmt: skip


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[object, ...]]:
    return {one[0]: one for one in golden.asked(tmp_path_factory.mktemp("kernels"))}


@pytest.mark.parametrize("name", QUICK)
def test_a_source_is_the_golden_one(
    kernels: dict[str, tuple[object, ...]], name: str, tmp_path: Path
) -> None:
    _, diff = golden.compared(False, tmp_path, kernels[name])
    assert not diff, diff


def test_every_golden_file_is_of_a_kernel(kernels: dict[str, tuple[object, ...]]) -> None:
    assert {file.stem for file in golden.GOLDEN.glob("*.gluon")} == set(kernels)
