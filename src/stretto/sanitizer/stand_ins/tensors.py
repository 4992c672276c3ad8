"""What the host code of a kernel file needs of torch: arrays, and a few functions on them.

torch.randn(8192, 8192, dtype=torch.float16) ─► Tensor, raw bits in NumPy
torch.testing.assert_close                   ─► compares where everything was run
"""

# Arrays are NumPy's.
# pyright: basic

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np

from stretto.sanitizer.pointers import Storage
from stretto.sanitizer.values import BFLOAT16, DTYPES, FLOAT16, FLOAT32, INT32, INT64, Dtype

_RANDOM: list[Any] = [np.random.default_rng(0)]
PROCESSORS = 4
"""Multiprocessors of the device that host code sees: few, so that persistent kernels go round."""
PARTIAL: list[str] = []
"""Why results are not compared: what was not run."""


class Tensor:
    """An array of the host: a view of a storage."""

    is_cuda = True
    requires_grad = False
    grad = None

    def __init__(self, raw: Any, dtype: Dtype, storage: Storage | None = None) -> None:
        self.raw, self.dtype = raw, dtype
        self.storage_ = storage or Storage(_flat(raw), "an array")

    @property
    def shape(self) -> Any:
        """Sizes."""
        return Size(self.raw.shape)

    def size(self, axis: Any = None) -> Any:
        """Sizes, or one of them."""
        return self.shape if axis is None else self.raw.shape[axis]

    def stride(self, axis: Any = None) -> Any:
        """Strides in elements, or one of them."""
        strides = tuple(s // self.raw.itemsize for s in self.raw.strides)
        return strides if axis is None else strides[axis]

    @property
    def ndim(self) -> int:
        """Axes."""
        return self.raw.ndim

    dim = lambda self: self.raw.ndim  # noqa: E731
    device = "cuda"

    @property
    def offset(self) -> int:
        """Of its first element in its storage."""
        start = self.raw.__array_interface__["data"][0]
        base = self.storage_.raw.__array_interface__["data"][0]
        return (start - base) // self.raw.itemsize

    def data_ptr(self) -> int:
        """An address; aligned."""
        return 4096 + self.offset * self.raw.itemsize

    def numel(self) -> int:
        """Elements."""
        return int(self.raw.size)

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.raw.itemsize

    itemsize = property(element_size)
    nbytes = property(lambda self: self.raw.nbytes)

    def _like(self, raw: Any, dtype: Dtype | None = None) -> Tensor:
        same = dtype is None or dtype.raw == self.dtype.raw
        of = dtype or self.dtype
        shared = same and raw.size and np.shares_memory(raw, self.storage_.raw)
        return Tensor(raw, of, self.storage_ if shared else None)

    def numbers(self) -> Any:
        """As NumPy computes with them."""
        return self.dtype.decode(self.raw)

    def numpy(self) -> Any:
        """As an array."""
        return self.numbers()

    # Changes of form ----------------------------------------------------------------------------

    def to(self, *given: Any, **named: Any) -> Tensor:
        """Cast; a device is ignored."""
        dtype = named.get("dtype")
        for one in given:
            dtype = one if isinstance(one, Dtype) else dtype
        if dtype is None or dtype == self.dtype:
            return self
        return tensor_of(self.numbers(), dtype)

    def type(self, dtype: Any) -> Tensor:
        """Cast."""
        return self.to(dtype)

    def view(self, *shape: Any) -> Tensor:
        """Another shape, or the same bits as another type."""
        if len(shape) == 1 and isinstance(shape[0], Dtype):
            raw = self.raw.view(shape[0].raw)
            return Tensor(raw, shape[0])
        return self.reshape(*shape)

    def reshape(self, *shape: Any) -> Tensor:
        """Another shape."""
        return self._like(self.raw.reshape(_shape(shape)))

    def contiguous(self) -> Tensor:
        """In rows."""
        if self.raw.flags.c_contiguous:
            return self
        return Tensor(np.ascontiguousarray(self.raw), self.dtype)

    def is_contiguous(self) -> bool:
        """Whether it is in rows."""
        return bool(self.raw.flags.c_contiguous)

    def clone(self) -> Tensor:
        """A copy."""
        return Tensor(self.raw.copy(), self.dtype)

    def permute(self, *order: Any) -> Tensor:
        """Axes in another order."""
        return self._like(self.raw.transpose(_shape(order)))

    def transpose(self, a: int, b: int) -> Tensor:
        """Two axes exchanged."""
        return self._like(self.raw.swapaxes(a, b))

    def t(self) -> Tensor:
        """Transposed."""
        return self._like(self.raw.T)

    T = property(t)
    mT = property(lambda self: self.transpose(-2, -1))  # noqa: N815 - torch's name

    def unsqueeze(self, axis: int) -> Tensor:
        """One more axis."""
        return self._like(np.expand_dims(self.raw, axis))

    def squeeze(self, *axis: int) -> Tensor:
        """Without axes of one element."""
        return self._like(np.squeeze(self.raw, *axis))

    def expand(self, *shape: Any) -> Tensor:
        """Repeated."""
        return self._like(np.broadcast_to(self.raw, _shape(shape)))

    def flatten(self, *_: Any) -> Tensor:
        """One axis."""
        return self.reshape(-1)

    def __getitem__(self, index: Any) -> Tensor:
        return self._like(self.raw[_index(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        data = value.numbers() if isinstance(value, Tensor) else value
        self.raw[_index(index)] = self.dtype.encode(self.dtype.cast(data))

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Any:
        return (self[n] for n in range(len(self)))

    # Values -------------------------------------------------------------------------------------

    def copy_(self, other: Any) -> Tensor:
        """Take another's values."""
        self[...] = other
        return self

    def normal_(self, mean: Any = 0.0, std: Any = 1.0, **_: Any) -> Tensor:
        """Random numbers."""
        self[...] = _RANDOM[0].standard_normal(self.raw.shape, dtype=np.float32) * std + mean
        return self

    def uniform_(self, low: Any = 0.0, high: Any = 1.0, **_: Any) -> Tensor:
        """Random numbers between two."""
        self[...] = _RANDOM[0].random(self.raw.shape, dtype=np.float32) * (high - low) + low
        return self

    def flip(self, *axes: Any) -> Tensor:
        """The other way round."""
        return Tensor(np.ascontiguousarray(np.flip(self.raw, _shape(axes))), self.dtype)

    def repeat_interleave(self, times: int, dim: int = 0, **_: Any) -> Tensor:
        """Each part along an axis, several times."""
        return Tensor(np.repeat(self.raw, times, dim), self.dtype)

    def repeat(self, *times: Any) -> Tensor:
        """Itself, several times."""
        return Tensor(np.tile(self.raw, _shape(times)), self.dtype)

    def zero_(self) -> Tensor:
        """Nothing."""
        self.raw[...] = 0
        return self

    def fill_(self, value: Any) -> Tensor:
        """One value."""
        self[...] = value
        return self

    def item(self) -> Any:
        """The one number."""
        return self.numbers().reshape(-1)[0].item()

    def tolist(self) -> Any:
        """As lists."""
        return self.numbers().tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self.item())

    def _with(self, other: Any, change: Any, mirrored: bool = False) -> Tensor:
        a = self.numbers()
        b = other.numbers() if isinstance(other, Tensor) else other
        dtype = self.dtype
        if isinstance(other, Tensor) and other.dtype != dtype:
            from stretto.sanitizer.values import joined  # noqa: PLC0415 - rarely

            dtype = joined(dtype, other.dtype)
        made = change(b, a) if mirrored else change(a, b)
        return tensor_of(made, DTYPES["int1"] if made.dtype == np.bool_ else dtype)

    def __matmul__(self, other: Any) -> Tensor:
        return matmul(self, other)

    def __neg__(self) -> Tensor:
        return tensor_of(-self.numbers(), self.dtype)

    def __hash__(self) -> int:
        return id(self)

    cuda = cpu = detach = lambda self, *_, **__: self
    requires_grad_ = lambda self, *_: self  # noqa: E731
    float = lambda self: self.to(FLOAT32)  # noqa: E731
    half = lambda self: self.to(FLOAT16)  # noqa: E731
    bfloat16 = lambda self: self.to(BFLOAT16)  # noqa: E731
    int = lambda self: self.to(INT32)  # noqa: E731
    long = lambda self: self.to(INT64)  # noqa: E731


def _operator(name: str, change: Any) -> None:
    def run(self: Tensor, other: Any) -> Tensor:
        return self._with(other, change)

    def mirrored(self: Tensor, other: Any) -> Tensor:
        return self._with(other, change, True)

    setattr(Tensor, f"__{name}__", run)
    setattr(Tensor, f"__r{name}__", mirrored)


for _name, _change in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.mod, "pow": np.power, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}.items():  # fmt: skip
    _operator(_name, _change)


def _reduce(name: str, how: Any) -> None:
    def run(self: Tensor, dim: Any = None, keepdim: bool = False, **_: Any) -> Tensor:
        made = np.asarray(how(self.numbers(), axis=dim, keepdims=keepdim))
        return tensor_of(made, DTYPES["int1"] if made.dtype == np.bool_ else self.dtype)

    setattr(Tensor, name, run)


for _name, _how in {
    "sum": np.sum, "mean": np.mean, "amax": np.max, "max": np.max, "min": np.min, "any": np.any,
    "all": np.all,
}.items():  # fmt: skip
    _reduce(_name, _how)


def _unary(name: str, how: Any) -> None:
    def run(self: Tensor, *_: Any, **__: Any) -> Tensor:
        return tensor_of(how(self.numbers()), self.dtype)

    setattr(Tensor, name, run)


for _name, _how in {
    "abs": np.abs, "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2,
    "sqrt": np.sqrt, "relu": lambda x: np.maximum(x, 0), "round": np.round,
}.items():  # fmt: skip
    _unary(_name, _how)


class Size(tuple[int, ...]):
    """Sizes of an array."""

    def numel(self) -> int:
        """Elements."""
        return math.prod(self)


def _flat(raw: Any) -> Any:
    base = raw
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base.flags.c_contiguous and base.dtype == raw.dtype:
        return base.reshape(-1)
    strided = np.lib.stride_tricks.as_strided
    last = sum((n - 1) * s for n, s in zip(raw.shape, raw.strides, strict=True)) // raw.itemsize
    return strided(raw, (last + 1,), (raw.itemsize,))


def _index(index: Any) -> Any:
    if isinstance(index, Tensor):
        return index.numbers()
    if isinstance(index, tuple):
        return tuple(_index(i) for i in index)
    return index


def _shape(given: Any) -> tuple[int, ...]:
    if len(given) == 1 and isinstance(given[0], list | tuple):
        given = given[0]
    return tuple(int(n) for n in given)


def tensor_of(values: Any, dtype: Dtype) -> Tensor:
    """Numbers as a tensor of a type."""
    with np.errstate(all="ignore"):
        rounded = values if dtype.packed else dtype.cast(values)
        return Tensor(np.ascontiguousarray(dtype.encode(rounded)), dtype)


def from_numpy(array: Any) -> Tensor:
    """An array that is shared with the tensor."""
    known = _OF_ARRAYS.get(id(array))
    if known is None or known[0] is not array:
        from stretto.sanitizer.values import dtype_of  # noqa: PLC0415 - rarely

        plain = array.view(np.ndarray)
        known = _OF_ARRAYS[id(array)] = (array, Tensor(plain, dtype_of(plain)))
        while len(_OF_ARRAYS) > 64:
            del _OF_ARRAYS[next(iter(_OF_ARRAYS))]
    return known[1]


_OF_ARRAYS: dict[int, tuple[Any, Tensor]] = {}
"""Of arrays that were handed over: one tensor each, which knows who wrote what."""


REPEATED = 1_000_003
"""Random numbers after which a large array begins anew; a prime, so that no two rows are alike."""


def _random(kind: str) -> Any:
    def make(*shape: Any, dtype: Any = FLOAT32, **_: Any) -> Tensor:
        sizes = _shape(shape)
        rng = _RANDOM[0]
        few = min(math.prod(sizes), REPEATED)
        if kind == "normal":
            made = rng.standard_normal(few, dtype=np.float32)
        else:
            made = rng.random(few, dtype=np.float32)
        raw = tensor_of(made, dtype).raw
        return Tensor(np.resize(raw, sizes) if few else raw.reshape(sizes), dtype)

    return make


def random_integers(low: Any, high: Any, size: Any, dtype: Dtype) -> Tensor:
    """Whole numbers, the last of them excluded."""
    few = min(math.prod(size), REPEATED)
    made = _RANDOM[0].integers(int(low), int(high), size=few)
    return Tensor(np.resize(dtype.encode(dtype.cast(made)), tuple(size)), dtype)


def _filled(value: float) -> Any:
    def make(*shape: Any, dtype: Any = FLOAT32, **_: Any) -> Tensor:
        made = np.zeros(_shape(shape), dtype.raw)
        if value:
            made[...] = dtype.encode(dtype.cast(value))
        return Tensor(made, dtype)

    return make


TOO_LARGE = 1 << 31
"""Multiplications of a reference that nobody wants to wait for."""


def matmul(a: Any, b: Any) -> Tensor:
    """A product; where it is larger than anybody wants to wait for, nothing."""
    size = math.prod(a.shape) * b.shape[-1]
    if size > TOO_LARGE:
        PARTIAL.append("a reference product that is too large was not computed")
        return tensor_of(np.zeros((*a.shape[:-1], b.shape[-1])), a.dtype)
    left, right = (np.asarray(x.numbers(), np.float32) for x in (a, b))
    return tensor_of(left @ right, a.dtype)


class MismatchError(AssertionError):
    """Results differ."""


def assert_close(
    actual: Any, expected: Any, *, atol: Any = None, rtol: Any = None, **_: Any
) -> None:
    """Compare, where everything was run."""
    if PARTIAL:
        return
    a, b = (
        np.asarray(x.numbers() if isinstance(x, Tensor) else x, np.float64)
        for x in (actual, expected)
    )
    # Host code that does not say how near it wants to be: as near as its type allows.
    coarse = isinstance(actual, Tensor) and actual.dtype.primitive_bitwidth < 32
    near, part = atol if atol is not None else 2e-2, rtol if rtol is not None else 2e-2
    if coarse:
        near, part = max(near, 2e-2), max(part, 2e-2)
    if a.shape != b.shape or not np.allclose(
        a, b, atol=max(near, 1e-5), rtol=max(part, 1e-5), equal_nan=True
    ):
        far = np.max(np.abs(a - b)) if a.shape == b.shape else float("nan")
        raise MismatchError(f"results differ from the host's reference by up to {far:.3g}")


def module() -> tuple[types.ModuleType, dict[str, types.ModuleType]]:  # noqa: PLR0915 - a list
    """`torch` and the modules in it."""
    torch: Any = types.ModuleType("torch")
    dtypes = {
        "float16": FLOAT16, "half": FLOAT16, "bfloat16": BFLOAT16, "float32": FLOAT32,
        "float": FLOAT32, "float64": DTYPES["float64"], "double": DTYPES["float64"],
        "int8": DTYPES["int8"], "int16": DTYPES["int16"], "int32": INT32, "int64": INT64,
        "int": INT32, "long": INT64, "uint8": DTYPES["uint8"], "uint16": DTYPES["uint16"],
        "uint32": DTYPES["uint32"], "bool": DTYPES["int1"], "float8_e4m3fn": DTYPES["float8e4nv"],
        "float8_e5m2": DTYPES["float8e5"],
    }  # fmt: skip
    torch.__dict__.update(dtypes)
    torch.Tensor, torch.dtype, torch.Size = Tensor, Dtype, Size
    torch.device = lambda name, *_: name
    torch.randn, torch.rand = _random("normal"), _random("uniform")
    torch.empty = torch.zeros = _filled(0)
    torch.ones = _filled(1)
    torch.full = lambda shape, value, **more: _filled(value)(*_shape((shape,)), **more)
    torch.empty_like = torch.zeros_like = lambda x, dtype=None, **_: Tensor(
        np.zeros(x.raw.shape, (dtype or x.dtype).raw), dtype or x.dtype
    )
    torch.full_like = lambda x, value, **more: _filled(value)(
        *x.shape, **{"dtype": x.dtype, **more}
    )
    torch.ones_like = lambda x, **_: _filled(1)(*x.shape, dtype=x.dtype)
    torch.randn_like = lambda x, **_: _random("normal")(*x.shape, dtype=x.dtype)
    torch.empty_strided = _strided
    torch.arange = lambda *a, dtype=None, **_: tensor_of(
        np.arange(*a), dtype or (INT64 if all(isinstance(x, int) for x in a) else FLOAT32)
    )
    torch.linspace = lambda a, b, n, dtype=FLOAT32, **_: tensor_of(np.linspace(a, b, n), dtype)
    torch.tensor = _tensor
    torch.as_tensor, torch.from_numpy = _tensor, from_numpy
    torch.randint = lambda low, high=None, size=None, dtype=INT64, **_: random_integers(
        *((low, high) if size is not None else (0, low)), size or high, dtype
    )
    torch.randperm = lambda n, dtype=INT64, **_: tensor_of(_RANDOM[0].permutation(n), dtype)
    torch.manual_seed = _seed
    torch.matmul = torch.mm = torch.bmm = matmul
    torch.where = lambda c, a, b: tensor_of(
        np.where(c.numbers(), *(x.numbers() if isinstance(x, Tensor) else x for x in (a, b))),
        next((x.dtype for x in (a, b) if isinstance(x, Tensor)), FLOAT32),
    )
    torch.cat = lambda xs, dim=0: Tensor(np.concatenate([x.raw for x in xs], dim), xs[0].dtype)
    torch.stack = lambda xs, dim=0: Tensor(np.stack([x.raw for x in xs], dim), xs[0].dtype)
    torch.equal = lambda a, b: bool(PARTIAL) or np.array_equal(a.raw, b.raw)
    torch.allclose = lambda a, b, **_: (
        bool(PARTIAL) or np.allclose(a.numbers(), b.numbers(), atol=1e-2)
    )
    torch.softmax = _softmax
    torch.exp, torch.abs = lambda x: x.exp(), lambda x: x.abs()  # type: ignore[attr-defined]
    torch.sum = lambda x, *a, **k: x.sum(*a, **k)
    torch.no_grad = torch.inference_mode = _Quiet
    torch.compile = lambda f=None, **_: f or (lambda g: g)
    cuda: Any = types.ModuleType("torch.cuda")
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    cuda.synchronize = cuda.empty_cache = cuda.set_device = lambda *_: None
    cuda.get_device_capability = lambda *_: CAPABILITY[0]
    cuda.get_device_name = lambda *_: "stand-in"
    cuda.get_device_properties = lambda *_: types.SimpleNamespace(
        multi_processor_count=PROCESSORS, major=CAPABILITY[0][0], minor=CAPABILITY[0][1],
        shared_memory_per_block_optin=232_448, name="stand-in", L2_cache_size=50 << 20,
    )  # fmt: skip
    cuda.Stream = cuda.stream = cuda.device = _Quiet
    testing: Any = types.ModuleType("torch.testing")
    testing.assert_close = assert_close
    nn: Any = types.ModuleType("torch.nn")
    functional: Any = types.ModuleType("torch.nn.functional")
    functional.softmax = _softmax
    functional.scaled_dot_product_attention = _attention
    functional.conv2d = _convolved
    functional.pad = _padded
    nn.functional = functional
    torch.cuda, torch.testing, torch.nn = cuda, testing, nn
    torch.version = types.SimpleNamespace(hip=None, cuda="13.0")
    torch.backends = types.SimpleNamespace(
        cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=False)),
        cudnn=types.SimpleNamespace(allow_tf32=False),
    )
    torch.__version__ = "2.11.0"
    return torch, {
        "torch": torch, "torch.cuda": cuda, "torch.testing": testing, "torch.nn": nn,
        "torch.nn.functional": functional,
    }  # fmt: skip


CAPABILITY: list[tuple[int, int]] = [(9, 0)]
"""Of the device that host code sees."""


def _seed(seed: int = 0) -> None:
    _RANDOM[0] = np.random.default_rng(seed)


def _tensor(values: Any, dtype: Any = None, **_: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values if dtype is None else values.to(dtype)
    array = np.asarray(values)
    kind = {"f": FLOAT32, "i": INT64, "u": INT64, "b": DTYPES["int1"]}[array.dtype.kind]
    return tensor_of(array, dtype or kind)


def _strided(shape: Any, strides: Any, dtype: Any = FLOAT32, **_: Any) -> Tensor:
    last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    flat = np.zeros(last + 1, dtype.raw)
    item = flat.itemsize
    raw = np.lib.stride_tricks.as_strided(flat, shape, [s * item for s in strides])
    return Tensor(raw, dtype, Storage(flat))


def _softmax(x: Any, dim: int = -1, **_: Any) -> Tensor:
    value = np.asarray(x.numbers(), np.float32)
    power = np.exp(value - value.max(axis=dim, keepdims=True))
    return tensor_of(power / power.sum(axis=dim, keepdims=True), x.dtype)


def _attention(
    q: Any, k: Any, v: Any, is_causal: bool = False, scale: Any = None, **_: Any
) -> Tensor:
    a, b, c = (np.asarray(x.numbers(), np.float32) for x in (q, k, v))
    scores = a @ b.swapaxes(-1, -2) * (scale or 1 / math.sqrt(a.shape[-1]))
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    power = np.exp(scores - scores.max(-1, keepdims=True))
    return tensor_of((power / power.sum(-1, keepdims=True)) @ c, q.dtype)


def _convolved(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, **_: Any
) -> Tensor:
    """Images by channels, rows and columns."""
    down, right = stride if isinstance(stride, tuple | list) else (stride, stride)
    rows, columns = padding if isinstance(padding, tuple | list) else (padding, padding)
    images, inner, height, width = x.shape
    outer, _, tall, wide = weight.shape
    high = (height + 2 * rows - tall) // down + 1
    broad = (width + 2 * columns - wide) // right + 1
    if images * inner * high * broad * outer * tall * wide > TOO_LARGE:
        PARTIAL.append("a reference convolution that is too large was not computed")
        return Tensor(np.zeros((images, outer, high, broad), x.dtype.raw), x.dtype)
    given, held = (np.asarray(t.numbers(), np.float32) for t in (x, weight))
    given = np.pad(given, ((0, 0), (0, 0), (rows, rows), (columns, columns)))
    seen = np.lib.stride_tricks.sliding_window_view(given, held.shape[2:], (2, 3))
    seen = seen[:, :, ::down, ::right]
    made = np.einsum("nchwrs,ocrs->nohw", seen, held, optimize=True)
    if bias is not None:
        made = made + bias.numbers()[:, None, None]
    return tensor_of(made, x.dtype)


def _padded(x: Any, sizes: Any, mode: str = "constant", value: Any = 0, **_: Any) -> Tensor:
    """Rows and columns around, the last axis first."""
    del mode
    pairs = [(int(a), int(b)) for a, b in zip(sizes[::2], sizes[1::2], strict=True)][::-1]
    before = [(0, 0)] * (x.raw.ndim - len(pairs))
    return Tensor(np.pad(x.raw, [*before, *pairs], constant_values=value or 0), x.dtype)


class _Quiet:
    """A context or decorator that does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function
