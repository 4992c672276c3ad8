"""`stretto.cutile.launch`: with a stub for cuTile and, where it is installed, with cuTile itself.

The stub gives the bytecode of the examples; the emulator stands for the GPU.
"""

# cuTile and Triton are not installed where most tests run.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pytest

import stretto.cutile
from fake_gpu import FakeGpu, Tensor, emulated_load
from stretto.errors import StrettoError
from stretto.launching import PipelineWarning

ROOT = Path(__file__).parents[2]
CONSTANTS = (128, 128, 64, 8)


class ConstantAnnotation:
    """As cuTile marks what is known when a kernel is compiled."""


Int = Annotated[int, ConstantAnnotation()]


def matmul(a: Any, b: Any, c: Any, m: Int, n: Int, k: Int, stripe: Int) -> None:
    """Never run: its bytecode is."""


class CuTile:
    """What stands for cuTile; its launches are counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.launched: list[Any] = []
        self.loaded: list[Any] = []
        self.exported: list[tuple[Any, ...]] = []
        self.data = (ROOT / "examples/cutile/matmul.tileirbc").read_bytes()
        kinds = ("float16", "float32", "int32", "bool_")
        tile = SimpleNamespace(launch=self.launch, **{kind: kind for kind in kinds})
        compilation = SimpleNamespace(
            ArrayConstraint=lambda *args, **more: SimpleNamespace(args=args, **more),
            ScalarConstraint=lambda kind: SimpleNamespace(kind=kind),
        )
        module = "stretto.cutile.launches"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(f"{module}.current_device", lambda: (0, ("cuda", 90)))
        monkeypatch.setattr(f"{module}.found_cutile", lambda: (tile, compilation))
        monkeypatch.setattr(f"{module}.bytecode", self.export)
        monkeypatch.setattr("stretto.launching.launcher.load", self.load)

    def launch(self, *args: Any) -> None:
        self.launched.append(args)

    def export(self, _: Any, kernel: Any, name: str, parameters: Any, target: str) -> bytes:
        del kernel
        self.exported.append((name, parameters, target))
        return self.data

    def load(self, entry: Any, key: str) -> Any:
        self.loaded.append(emulated_load(entry, key))
        return self.loaded[-1]


class Kernel:
    _pyfunc = staticmethod(matmul)


@pytest.fixture
def cutile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CuTile]:
    yield CuTile(monkeypatch, tmp_path)
    Tensor.memory.clear()


def matrices(m: int, n: int, k: int) -> tuple[Tensor, Tensor, Tensor]:
    rng = np.random.default_rng(k)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return Tensor(a), Tensor(b), Tensor(np.zeros((m, n), np.float16))


def check_product(a: Tensor, b: Tensor, c: Tensor) -> None:
    wanted = a.array.astype(np.float32) @ b.array.astype(np.float32)
    np.testing.assert_allclose(c.array.astype(np.float32), wanted, rtol=2e-3, atol=3e-2)


def test_kernels_that_differ_in_names_alone_are_not_mistaken_for_each_other(
    cutile: CuTile,
) -> None:
    """Bytecode has no names, and what is emitted takes its arguments by theirs."""

    class Swapped:
        @staticmethod
        def _pyfunc(b: Any, a: Any, c: Any, m: Int, n: Int, k: Int, stripe: Int) -> None:
            del b, a, c, m, n, k, stripe

    Swapped._pyfunc.__name__ = "matmul"
    for kernel in (Kernel(), Swapped()):
        a, b, c = matrices(128, 128, 128)
        stretto.cutile.launch(7, (1, 1, 1), kernel, (a, b, c, *CONSTANTS))
        check_product(a, b, c)
    assert (cutile.launched, len(cutile.loaded)) == ([], 2)


def test_a_kernel_is_launched_as_with_cutile_and_runs_as_gluon(cutile: CuTile) -> None:
    kernel, stream = Kernel(), SimpleNamespace(cuda_stream=7)
    for m, n, k in [(128, 128, 128), (128, 256, 64)]:
        a, b, c = matrices(m, n, k)
        for _ in range(2):  # the second is ready
            c.array[...] = 0
            grid = (m // 128 * n // 128, 1, 1)
            stretto.cutile.launch(stream, grid, kernel, (a, b, c, *CONSTANTS))
            check_product(a, b, c)
    assert cutile.launched == []
    (loaded,) = cutile.loaded
    assert loaded.kernel.streams == [7] * 4
    ((name, parameters, target),) = cutile.exported
    assert (name, target, parameters[3:]) == ("matmul", "sm_90", [128, 128, 64, 8])
    assert parameters[0].args == ("float16", 2)
    assert parameters[0].stride_constant == (None, 1)
    assert parameters[0].shape_divisible_by == (16, 16)


def test_the_same_address_in_another_shape_is_another_launch(cutile: CuTile) -> None:
    kernel = Kernel()
    a, b, c = matrices(128, 128, 128)
    stretto.cutile.launch(0, (1,), kernel, (a, b, c, *CONSTANTS))
    half_a, half_b = matrices(128, 128, 128)[:2]
    half_a.array, half_a.shape = np.ascontiguousarray(a.array[:, :64]), (128, 64)
    half_b.array, half_b.shape = np.ascontiguousarray(b.array[:64]), (64, 128)
    for short, whole in ((half_a, a), (half_b, b)):
        short.address = whole.address
        Tensor.memory[whole.address] = short.array
    stretto.cutile.launch(0, (1,), kernel, (half_a, half_b, c, *CONSTANTS))
    check_product(half_a, half_b, c)
    assert len(cutile.loaded) == 1


def test_what_cannot_be_done_runs_as_cutile_compiles_it(cutile: CuTile) -> None:
    kernel = Kernel()
    a, b, c = matrices(128, 128, 64)
    with pytest.warns(PipelineWarning, match=r"`b` is a list, no tensor and no number of 32 bits"):
        stretto.cutile.launch(0, (1,), kernel, (a, [b], c, *CONSTANTS))
    with pytest.warns(PipelineWarning, match=r"3 arguments are given, 7 are taken"):
        stretto.cutile.launch(0, (1,), kernel, (a, b, c))
    cutile.data = b"nonsense"
    with pytest.warns(PipelineWarning, match=r"matmul runs as cuTile compiles it: <matmul>"):
        stretto.cutile.launch(0, (1,), kernel, (a, b, c, *CONSTANTS))
    assert len(cutile.launched) == 3
    with pytest.raises(StrettoError):
        stretto.cutile.launch(0, (1,), kernel, (a, b, c, *CONSTANTS), strict=True)


def test_with_cutile_and_triton_themselves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Exported by cuTile, compiled for sm_90 by Triton, run in the emulator."""
    triton = pytest.importorskip("triton", reason="Triton is not installed: make test-gpu has it")
    tile = pytest.importorskip("cuda.tile", reason="cuTile is not installed: pip install cuda-tile")
    gpu = FakeGpu()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setattr("stretto.launching.device._TARGETS", {})
    monkeypatch.setattr(triton.runtime.driver, "_active", gpu)
    monkeypatch.setattr(sys, "path", [str(ROOT / "examples/cutile"), *sys.path])
    kernel = tile.kernel(__import__("matmul").matmul)
    for k in (64, 192):
        a, b, c = matrices(128, 128, k)
        stretto.cutile.launch(0, (1,), kernel, (a, b, c, *CONSTANTS), strict=True)
        check_product(a, b, c)
    assert gpu.launches == ["matmul_kernel"] * 2
