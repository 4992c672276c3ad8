"""Kernels at launch, where neither Triton nor a GPU is: keys, store, reports, ready launches.

Triton is a stub that gives the TTIR of the examples; the emulator stands for the GPU.
"""

from __future__ import annotations

import gc
import importlib.util
import inspect
import json
import os
import py_compile
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest

import fake_gpu
import stretto.triton
from fake_gpu import Tensor, emulated_load
from fake_triton import Backend, FakeJit
from stretto import caching
from stretto.emission import Emitted
from stretto.errors import StrettoError
from stretto.frontends.triton import read_ttir
from stretto.kernel.lowering.conflicts import written
from stretto.launching import Asked, PipelineWarning, exactly
from stretto.launching.compiling import Compiled
from stretto.launching.loading import Tensor as HeldTensor
from stretto.launching.loading import held, load
from stretto.launching.storing import Store
from stretto.prediction.stock import Stock

ROOT = Path(__file__).parents[2]


def _valid(document: object, schema: str) -> None:
    text = (ROOT / "src/stretto" / schema).read_text(encoding="utf-8")
    jsonschema.validate(document, json.loads(text))


TTIR = Path(ROOT, "examples/triton/matmul_descriptors.ttir").read_text(encoding="utf-8")
TILES = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}


# Keys -------------------------------------------------------------------------------------


def test_a_key_is_of_content_machine_and_options() -> None:
    asked = Asked().on("cuda:90")
    others = [
        asked.key("kernel", b"another"),
        Asked(consumers=1).on("cuda:90").key("kernel", b"content"),
        Asked(depth=2).on("cuda:90").key("kernel", b"content"),
        Asked(mode="unspecialized").on("cuda:90").key("kernel", b"content"),
        Asked(machine="b200-pipes").on("cuda:90").key("kernel", b"content"),
    ]
    assert Asked(machine="h200").on("cuda:90").key("kernel", b"content") == asked.key(
        "kernel", b"content"
    )
    assert len({asked.key("kernel", b"content"), *others}) == 6


def test_a_key_is_of_the_name_and_the_compiler_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked().on("cuda:90")
    keys = [asked.key("kernel", b"content"), asked.key("other", b"content")]
    for name in ("triton 3.6.0, ptxas 12.8, []", "triton 3.6.0, ptxas 12.9, []"):
        monkeypatch.setattr("stretto.launching.asked.compiler_name", lambda name=name: name)
        keys.append(asked.key("kernel", b"content"))
    assert len(set(keys)) == 4


def test_a_target_without_a_machine_is_refused_with_those_that_are() -> None:
    with pytest.raises(StrettoError, match="no machine is known for cuda:100; there is h200 for"):
        Asked().on("cuda:100")


def test_a_launch_loads_nothing_that_emits() -> None:
    """What takes long to load is loaded by the process that makes kernels."""
    heavy = ("xdsl", "numpy", "ortools", "stretto.emission", "stretto.ir", "stretto.prediction")
    script = f"import sys, stretto.triton; print([m for m in {heavy} if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# The store --------------------------------------------------------------------------------


def test_what_was_put_is_found_by_its_key_only(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "er")
    assert store.get("k", "kernel") is None
    made = store.put("k", "kernel", "x = 1\n", "text\n", {"schema": "s"})
    found = Store(tmp_path / "deep" / "er").get("k", "kernel")
    assert found == made
    assert (made.source, made.text, made.document["schema"]) == ("x = 1\n", "text\n", "s")
    assert store.get("other", "kernel") is None
    assert [file.name for file in (tmp_path / "deep" / "er").iterdir()] == ["k"]


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody was told of any cache yet."""
    monkeypatch.setattr(caching, "_told", set[str]())


def changed(folder: Path, how: str, name: str) -> None:
    """Do to an entry what others could have done."""
    path = folder / name
    if how == "linked":
        path.rename(folder.parent / "elsewhere")
        path.symlink_to(folder.parent / "elsewhere")
    elif how == "rewritten":
        path.write_text(path.read_text().replace("1", "2").replace("c_ptr", "a_ptr"))
    else:
        path.chmod(int(how, 8))


@pytest.mark.usefixtures("untold")
@pytest.mark.parametrize(
    ("how", "name", "told"),
    [
        ("rewritten", "kernel.py", "is not as it was written"),
        ("rewritten", "kernel.json", "is not as it was written"),
        ("666", "kernel.py", "may be written by others"),
        ("660", "kernel.json", "may be written by others"),
        ("777", "", "may be written by others"),
        ("linked", "kernel.py", "is a symbolic link"),
        ("linked", "", "is a symbolic link"),
    ],
)
def test_an_entry_that_another_could_have_written_is_made_anew(
    how: str, name: str, told: str, tmp_path: Path
) -> None:
    entry = ("k", "kernel", "x = 1\n", "text\n", {"writes": ["c_ptr"]})
    made = Store(tmp_path).put(*entry)
    changed(tmp_path / "k", how, name)
    with pytest.warns(UserWarning, match=f"made anew: .*{told}.*STRETTO_CACHE"):
        assert Store(tmp_path).get("k", "kernel") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is told once
        assert Store(tmp_path).get("k", "kernel") is None
        assert Store(tmp_path).put(*entry) == made
        assert Store(tmp_path).get("k", "kernel") == made


def test_an_entry_of_another_key_or_name_is_none(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("k", "kernel", "x = 1\n", "text\n", {})
    (tmp_path / "k").rename(tmp_path / "other")
    with pytest.warns(UserWarning, match="is not as it was written"):
        assert store.get("other", "kernel") is None


@pytest.mark.usefixtures("untold")
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    store = Store(tmp_path)
    with pytest.warns(UserWarning, match=f"run `chmod go-w {tmp_path}`"):
        made = store.put("k", "kernel", "x = 1\n", "text\n", {})
    assert (made.source, made.file.read_text()) == ("x = 1\n", "x = 1\n")
    assert list(tmp_path.iterdir()) == []


SOURCE = """OPTIONS = {"num_warps": 4}


def arguments(a):
    return (a,)


def add_kernel():
    return "what was looked at"
"""


def test_what_was_looked_at_is_what_runs(tmp_path: Path) -> None:
    """No byte code is read, nor the file once more, whatever lies there."""
    store = Store(tmp_path)
    store.put("k", "add", SOURCE, "", {"entry": "add_kernel", "writes": []})
    entry = store.get("k", "add")
    assert entry is not None
    planted = SOURCE.replace("what was looked at", "what was planted")
    entry.file.write_text(planted)
    os.utime(entry.file, (1, 1))
    planned = importlib.util.cache_from_source(str(entry.file))
    py_compile.compile(str(entry.file), planned, doraise=True)
    found = load(entry, "k")
    assert found.kernel() == "what was looked at"
    assert "what was looked at" in inspect.getsource(found.kernel)


def test_a_file_where_the_folder_should_be_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    store = Store(tmp_path / "cache")
    assert store.get("k", "kernel") is None
    assert store.put("k", "kernel", "x = 1\n", "text\n", {}).source == "x = 1\n"


# Arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [((1,), (True,)), ((0.0,), (-0.0,)), ((1,), (1.0,)), ((1, 2), (2, 1)), (("a",), (None,))],
)
def test_launches_that_differ_have_different_keys(
    one: tuple[object, ...], other: tuple[object, ...]
) -> None:
    assert exactly(0, one, {}) == exactly(0, one, {})
    assert exactly(0, one, {}) != exactly(0, other, {})
    assert exactly(0, one, {}) != exactly(1, one, {})


def test_tensors_are_told_apart_by_address_and_type() -> None:
    ones, zeros = Tensor(np.ones(4, np.float16)), Tensor(np.zeros(4, np.float16))
    assert exactly(0, (ones,), {}) != exactly(0, (zeros,), {})
    assert exactly(0, (ones,), {}) == exactly(0, (ones,), {})
    assert exactly(0, ([1],), {}) is None


class Descriptor:
    def __init__(self, base: Tensor, padding: str = "zero") -> None:
        self.base, self.shape, self.strides = base, [4, 4], [4, 1]
        self.block_shape, self.padding = [2, 2], padding


def test_no_memory_is_held() -> None:
    tensor = Tensor(np.ones((4, 4), np.float16))
    kept = [held(tensor), held(Descriptor(tensor))]
    where, gone = tensor.data_ptr(), weakref.ref(tensor)
    del tensor
    gc.collect()
    assert gone() is None
    assert kept[0] == HeldTensor(where, fake_gpu.DTYPES["float16"], (4, 4), (4, 1))
    assert kept[1].base == kept[0]


def test_descriptors_of_the_users_differ_by_all_they_say() -> None:
    tensor = Tensor(np.ones((4, 4), np.float16))
    other = Descriptor(tensor)
    other.shape = [2, 4]
    keys = [exactly(0, (d,), {}) for d in (Descriptor(tensor), Descriptor(tensor), other)]
    assert keys[0] == keys[1] != keys[2]
    with pytest.raises(StrettoError, match="padded with nan, not with zeros"):
        held(Descriptor(tensor, "nan"))


# Launches ---------------------------------------------------------------------------------


class Jit(FakeJit):
    """The product, as Triton would compile it."""

    def __init__(self, stub: Stub | None = None) -> None:
        pointers = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16")
        ttir: Callable[[Any], str] = (lambda _: TTIR) if stub is None else stub.ttir
        super().__init__(ttir, {**pointers, **dict.fromkeys("MNK", "i32")}, TILES)
        self.target = ("cuda", 90) if stub is None else stub.target


class Stub:
    """What stands for Triton: how often it was asked, and what it answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.text, self.target, self.loaded = TTIR, ("cuda", 90), list[Any]()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("STRETTO_MAKERS", "0")
        monkeypatch.setattr("stretto.launching.launcher.INSIDE", ("stretto.", "fake_triton"))
        monkeypatch.setattr("stretto.triton.launched.found_triton", Backend)
        monkeypatch.setattr("stretto.triton.production.load", self.load)

    def ttir(self, given: Mapping[str, Any]) -> str:
        del given
        return self.text

    def load(self, entry: Any, key: str) -> Any:
        self.loaded.append(emulated_load(entry, key))
        return self.loaded[-1]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stub]:
    yield Stub(monkeypatch, tmp_path)
    Tensor.memory.clear()


def pipelined(jit: Any, **options: Any) -> Any:
    """A kernel whose launches are ours, untimed: no GPU is there to time them."""
    given: dict[str, Any] = {"trial": False, **options}
    return stretto.triton.pipeline(**given)(jit)


def matrices(k: int = 128) -> tuple[Tensor, Tensor, Tensor]:
    rng = np.random.default_rng(k)
    a = rng.standard_normal((128, k)).astype(np.float16)
    b = rng.standard_normal((k, 128)).astype(np.float16)
    return Tensor(a), Tensor(b), Tensor(np.zeros((128, 128), np.float16))


def check_product(a: Tensor, b: Tensor, c: Tensor) -> None:
    wanted = a.array.astype(np.float32) @ b.array.astype(np.float32)
    np.testing.assert_allclose(c.array.astype(np.float32), wanted, rtol=2e-3, atol=2e-2)


UNHEARD = "module {\n  tt.func public @f() {\n    tt.unheard\n    scf.for\n    tt.return\n  }\n}\n"


def _grid(meta: dict[str, int]) -> tuple[int, int]:
    return 128 // meta["BLOCK_M"], 128 // meta["BLOCK_N"]


def test_a_launch_computes_what_the_kernel_says(stub: Stub) -> None:
    jit = Jit(stub)
    kernel = pipelined(jit)
    for k in (128, 192):
        a, b, c = matrices(k)
        kernel[_grid](a, b, c, 128, 128, k, BLOCK_K=64)
        check_product(a, b, c)
    assert (jit.compiled, len(stub.loaded), jit.launched) == (1, 1, [])


def test_a_launch_on_the_same_addresses_asks_nothing_any_more(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = pipelined(Jit(stub))
    a, b, c = matrices()
    compiled = kernel[(1, 1)](a, b, c, 128, 128, 128, **TILES)
    monkeypatch.setattr("stretto.launching.loading.Loaded.bind", None)
    c.array[...] = 0
    assert kernel[(1,)](a, b, c, 128, 128, 128, **TILES) is compiled
    check_product(a, b, c)
    assert stub.loaded[0].kernel.grids == [(1, 1, 1), (1, 1, 1)]


def test_another_process_finds_what_was_made(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = matrices()
    pipelined(Jit(stub))[(1, 1)](a, b, c, 128, 128, 128, **TILES)
    monkeypatch.setattr("stretto.api.emitting.emit", None)
    c.array[...] = 0
    pipelined(Jit(stub))[(1, 1)](a, b, c, 128, 128, 128, **TILES)
    check_product(a, b, c)


@pytest.mark.usefixtures("untold")
def test_a_cache_that_others_may_write_to_costs_the_work_and_a_warning(
    stub: Stub, tmp_path: Path
) -> None:
    a, b, c = matrices()
    pipelined(Jit(stub))[(1, 1)](a, b, c, 128, 128, 128, **TILES)
    (tmp_path / "cache/stretto/kernels").chmod(0o770)
    messages = list[str]()
    for _ in range(2):
        c.array[...] = 0
        kernel = pipelined(jit := Jit(stub))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            kernel[(1, 1)](a, b, c, 128, 128, 128, **TILES)
        check_product(a, b, c)
        messages += [str(one.message) for one in told]
        assert jit.launched == []
    (once,) = messages
    assert "kernels may be written by others; run `chmod go-w " in once


def test_what_cannot_be_done_runs_as_stock_and_says_so_once(stub: Stub, tmp_path: Path) -> None:
    stub.text = UNHEARD
    jit = Jit(stub)
    kernel = pipelined(jit)
    a, b, c = matrices()
    with pytest.warns(PipelineWarning) as told:
        _ = [kernel[(n,)](a, b, c, 128, 128, 128, **TILES) for n in (1, 2, 3)]
    (warning,) = told
    assert "matmul_descriptors runs as Triton compiles it: " in str(warning.message)
    assert "tt.unheard" in str(warning.message)
    assert warning.filename == __file__
    assert jit.launched == [(1, 1, 1), (2, 1, 1), (3, 1, 1)]
    assert not list(tmp_path.rglob("*.py"))


def test_a_target_that_has_no_machine_runs_as_stock(stub: Stub) -> None:
    stub.target = ("cuda", 100)
    jit = Jit(stub)
    with pytest.warns(PipelineWarning, match="no machine is known for cuda:100"):
        pipelined(jit)[(1,)](*matrices(), 128, 128, 128, **TILES)
    assert jit.launched == [(1, 1, 1)]


def test_arguments_that_do_not_fit_run_as_stock_and_others_as_ours(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they come first or later: another launch of the same variant is ours."""
    load = stub.load

    def picky(entry: Any, key: str) -> Any:
        loaded = load(entry, key)

        def arguments(*given: Any) -> Any:
            assert given[5] != 50, "strides must be 16-byte aligned"
            return loaded.arguments(*given)

        return replace(loaded, arguments=arguments)

    monkeypatch.setattr("stretto.triton.production.load", picky)
    jit = Jit(stub)
    kernel = pipelined(jit)
    a, b, c = matrices()
    for _ in range(2):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            kernel[(2,)](a, b, c, 128, 128, 50, **TILES)
        c.array[...] = 0
        kernel[(1, 1)](a, b, c, 128, 128, 128, **TILES)
        check_product(a, b, c)
        assert [w.category for w in told] == ([PipelineWarning] if len(jit.launched) == 1 else [])
    assert jit.launched == [(2, 1, 1), (2, 1, 1)]
    assert len(stub.loaded) == 1


def test_a_tensor_that_is_written_must_not_overlap_another(stub: Stub) -> None:
    """A schedule reads ahead; what is only read may overlap."""
    jit = Jit(stub)
    kernel = pipelined(jit)
    a, b, c = matrices()
    kernel[(1, 1)](a, a, c, 128, 128, 128, **TILES)
    check_product(a, a, c)
    with pytest.warns(PipelineWarning, match="`c_ptr` is written and overlaps `a_ptr`"):
        kernel[(1, 1)](a, b, a, 128, 128, 128, **TILES)
    inside = Tensor(c.array)
    inside.address = a.data_ptr() + 64 * 128 * 2
    with pytest.warns(PipelineWarning, match="overlaps `a_ptr`"):
        pipelined(other := Jit(stub))[(1, 1)](a, b, inside, 128, 128, 128, **TILES)
    assert (jit.launched, other.launched) == ([(1, 1, 1)], [(1, 1, 1)])
    assert stub.loaded[0].written == {"c_ptr"}


@pytest.mark.parametrize(
    ("file", "writes"),
    [
        ("attention_forward_d64_causal", {"o_ptr", "lse_ptr"}),
        ("attention_backward_kv", {"dk_ptr", "dv_ptr"}),
        ("matmul_pointers", {"c_ptr"}),
        ("matmul_persistent", {"c_desc"}),
        ("softmax", {"y_ptr"}),
    ],
)
def test_what_a_kernel_writes_is_known(file: str, writes: set[str]) -> None:
    (kernel,) = read_ttir(file, (ROOT / f"examples/triton/{file}.ttir").read_text("utf-8"))
    assert set(written(kernel)) == writes


def test_a_kernel_that_triton_does_not_compile_runs_as_stock(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("PassManager::run failed")

    monkeypatch.setattr("fake_gpu.EmulatedKernel.warmup", refusing)
    jit = Jit(stub)
    with pytest.warns(PipelineWarning, match="RuntimeError: PassManager::run failed"):
        pipelined(jit)[(1, 1)](*matrices(), 128, 128, 128, **TILES)
    assert jit.launched == [(1, 1, 1)]
    assert stub.loaded[0].kernel.grids == []


# What the compiler makes of candidates ---------------------------------------------------------

ROOM = 232_448


class Compiler:
    """Gives candidates, in the order in which they come, what they take; then the last again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *said: Compiled, own: int = 0) -> None:
        self.said, self.asked, self.own, self.theirs = said, list[Emitted](), own, 0
        monkeypatch.setattr("stretto.launching.compiling.can_compile", lambda: True)
        monkeypatch.setattr("stretto.launching.compiling.compile_emitted", self.compiled)
        monkeypatch.setattr("stretto.launching.compiling.stock_of", self.stock_of)

    def compiled(self, emitted: Emitted) -> Compiled:
        self.asked.append(emitted)
        return self.said[min(len(self.asked), len(self.said)) - 1]

    def stock_of(self, ptx: str, cubin: bytes, warps: int, stages: int, smem: int) -> Stock:
        assert (ptx, cubin, warps, stages, smem) == ("of Triton's own", b"machine code", 4, 3, 0)
        self.theirs += 1
        return Stock("", warps, stages, 168, smem, self.own)


def _candidate(spilled: int, smem: int = ROOM, wrong: bool = False) -> Compiled:
    return Compiled(spilled, (), smem, 168, overwritten=wrong)


def launch(jit: Jit) -> tuple[Tensor, Tensor, Tensor]:
    given = matrices()
    pipelined(jit, consumers=2)[(1, 1)](*given, 128, 128, 128, **TILES)
    return given


def test_a_candidate_that_does_not_fit_is_never_taken(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, wrong = _candidate(0, ROOM + 1), _candidate(0, wrong=True)
    compiler = Compiler(monkeypatch, large, wrong, _candidate(8), own=8)
    check_product(*launch(Jit(stub)))
    assert len(compiler.asked) == 3
    assert stub.loaded[0].kernel.source == compiler.asked[2].source


def test_where_no_candidate_fits_the_kernel_runs_as_stock(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    Compiler(monkeypatch, _candidate(0, 262_368))
    jit = Jit(stub)
    told = "takes 262,368 bytes of shared memory once compiled, h200 has 232,448"
    with pytest.warns(PipelineWarning, match=told):
        launch(jit)
    assert (jit.launched, stub.loaded) == ([(1, 1, 1)], [])


def test_of_candidates_that_spill_the_one_with_the_fewest_bytes_is_taken(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [_candidate(n) for n in (1428, 700, 252, 900)]
    compiler = Compiler(monkeypatch, *said, own=252)
    check_product(*launch(jit := Jit(stub)))
    assert stub.loaded[0].kernel.source == compiler.asked[2].source
    assert (compiler.theirs, jit.launched) == (1, [])  # Triton's own spills no less


def test_a_kernel_that_spills_more_than_tritons_own_runs_as_stock(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    Compiler(monkeypatch, _candidate(252), own=248)
    jit = Jit(stub)
    with pytest.warns(PipelineWarning, match=r"spills 252 bytes .* Triton's own kernel 248"):
        launch(jit)
    assert (jit.launched, stub.loaded) == ([(1, 1, 1)], [])


def test_a_candidate_that_does_not_spill_is_taken_whatever_tritons_own_does(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = Compiler(monkeypatch, _candidate(8), _candidate(0), own=0)
    check_product(*launch(jit := Jit(stub)))
    assert (len(compiler.asked), jit.launched) == (2, [])
    assert stub.loaded[0].kernel.source == compiler.asked[1].source


def test_strict_kernels_raise_instead(stub: Stub) -> None:
    stub.text = "nonsense scf.for"
    kernel = pipelined(Jit(stub), strict=True)
    with pytest.raises(StrettoError, match="<matmul_descriptors>"):
        kernel[(1,)](*matrices(), 128, 128, 128, **TILES)


def test_options_reach_the_emitter(stub: Stub) -> None:
    kernel = pipelined(Jit(stub), consumers=1, depth=2)
    a, b, c = matrices()
    kernel[(1, 1)](a, b, c, 128, 128, 128, **TILES)
    check_product(a, b, c)
    source = stub.loaded[0].kernel.source
    assert "1 consumer." in source
    pipelined(Jit(stub), depth=5)[(1, 1)](a, b, c, 128, 128, 128, **TILES)
    pipelined(Jit(stub))[(1, 1)](a, b, c, 128, 128, 128, **TILES)
    shallow, plain = (loaded.kernel.source for loaded in stub.loaded[1:])
    assert "gl.allocate_shared_memory(gl.float16, [5, 64, 64]" in shallow
    assert "gl.allocate_shared_memory(gl.float16, [5, 64, 64]" not in plain


def test_warming_up_is_tritons(stub: Stub) -> None:
    kernel = pipelined(jit := Jit(stub))
    kernel.run(*matrices(), 128, 128, 128, grid=(1,), warmup=True)
    assert (jit.launched, stub.loaded, jit.compiled) == ([], [], 1)


def test_a_kernel_stays_the_object_that_it_was(stub: Stub) -> None:
    """An autotuner, another kernel that calls it and torch.compile see what they know."""
    jit = Jit(stub)
    assert pipelined(jit) is jit
    above = SimpleNamespace(fn=SimpleNamespace(fn=jit))
    assert stretto.triton.pipeline(above) is above
    with pytest.raises(StrettoError, match=r"above @triton.jit, not above a function"):
        stretto.triton.pipeline(lambda: None)
    with pytest.raises(StrettoError, match="check='last' is not known"):
        stretto.triton.pipeline(check="last")  # pyright: ignore[reportCallIssue, reportArgumentType]


# Reports ----------------------------------------------------------------------------------


def test_a_report_has_schedules_source_and_json(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRETTO_REPORT", str(tmp_path / "reports"))
    pipelined(Jit(stub))[(1, 1)](*matrices(), 128, 128, 128, **TILES)
    files = {file.suffix: file for file in (tmp_path / "reports").iterdir()}
    assert sorted(files) == [".json", ".py", ".txt"]
    assert files[".py"].read_text() == stub.loaded[0].kernel.source
    assert "matmul_descriptors on h200: specialized, 2 consumers" in files[".txt"].read_text()
    document = json.loads(files[".json"].read_text())
    _valid(document, "report/schemas/pipeline.schema.json")
    schedules = {"schema": "stretto.schedule/1", "success": True, "loops": document["loops"]}
    _valid(schedules, "solution/schedule.schema.json")
    assert document["loops"][0]["ii"] == 512
    assert "II 512" in files[".txt"].read_text()
    # What lies in the cache is reported too.
    for file in files.values():
        file.unlink()
    pipelined(Jit(stub))[(1, 1)](*matrices(), 128, 128, 128, **TILES)
    assert json.loads(files[".json"].read_text()) == document


def test_a_report_says_why_nothing_was_made(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRETTO_REPORT", str(tmp_path / "reports"))
    stub.text = "nonsense scf.for"
    with pytest.warns(PipelineWarning):
        pipelined(Jit(stub))[(1,)](*matrices(), 128, 128, 128, **TILES)
    files = {file.suffix: file for file in (tmp_path / "reports").iterdir()}
    assert sorted(files) == [".json", ".txt"]
    document = json.loads(files[".json"].read_text())
    _valid(document, "report/schemas/pipeline.schema.json")
    assert document["reason"] in files[".txt"].read_text()
    assert not document["success"]


def test_a_report_that_cannot_be_written_stops_nothing(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reports").write_text("in the way")
    monkeypatch.setenv("STRETTO_REPORT", str(tmp_path / "reports"))
    a, b, c = matrices()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pipelined(Jit(stub))[(1, 1)](a, b, c, 128, 128, 128, **TILES)
    assert [str(w.message)[:36] for w in told] == ["STRETTO_REPORT: cannot write in " + "/tmp"]
    check_product(a, b, c)
    assert len(stub.loaded) == 1
