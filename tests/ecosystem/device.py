"""A GPU that is not there: what libraries ask of torch.cuda and of Triton's driver, answered.

library's own function ──► torch.cuda, triton.runtime.driver ──► an H200, always idle
                           torch.empty(device="cuda") ──► memory of this machine
"""

import os
from contextlib import nullcontext
from types import SimpleNamespace

import torch
import triton.testing
from torch.overrides import TorchFunctionMode
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

import triton

TARGET = GPUTarget("cuda", 90, 32)
GPU = torch.device("cuda", 0)
PROPERTIES = SimpleNamespace(
    name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, warp_size=32,
    total_memory=141 << 30, max_threads_per_multi_processor=2048, max_threads_per_block=1024,
    shared_memory_per_block_optin=232448, shared_memory_per_multiprocessor=233472,
    regs_per_multiprocessor=65536, L2_cache_size=50 << 20, gcnArchName="", uuid="", is_integrated=0,
)  # fmt: skip
UTILITIES = {
    "multiprocessor_count": 132, "max_shared_mem": 232448, "max_num_regs": 65536, "warpSize": 32,
    "sm_clock_rate": 1_980_000, "mem_clock_rate": 3_201_000, "mem_bus_width": 6144,
}  # fmt: skip


EMPTY = (torch.empty, torch.empty_like, torch.Tensor.new_empty)


class _Event:
    def __init__(self, **_):
        pass

    def record(self, *_):
        pass

    def elapsed_time(self, _):
        return 1.0

    synchronize = wait = record


class _Device(nullcontext):
    """torch.cuda.device: any of them is the one there is."""

    def __init__(self, *_):
        super().__init__()
        self.idx = self.prev_idx = 0


class _Driver:
    """Triton's, for a GPU on which nothing is launched."""

    utils = SimpleNamespace(
        get_device_properties=lambda _: UTILITIES,
        load_binary=lambda *_: (None, None, 0, 0, 1024),
    )
    launcher_cls = staticmethod(lambda *_: lambda *_, **__: None)

    def get_current_target(self):
        return TARGET

    def get_current_device(self):
        return 0

    def get_current_stream(self, *_):
        return 0

    def set_current_device(self, *_):
        pass

    def get_device_interface(self):
        return torch.cuda

    def get_active_torch_device(self):
        return GPU

    def get_empty_cache_for_benchmark(self):
        return torch.empty(1)

    def clear_cache(self, _):
        pass

    def get_benchmarker(self):
        return lambda *_, **__: [1.0, 1.0, 1.0]


def _is_cuda(said):
    return isinstance(said, str | torch.device) and str(said).startswith("cuda")


class _OnThisMachine(TorchFunctionMode):
    """Whatever is asked for on the GPU is made here, and says that it lies there."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function == torch.Tensor.device.__get__:
            return GPU
        if function == torch.Tensor.is_cuda.__get__:
            return True
        if function is torch.Tensor.cuda:
            return args[0]
        if function is torch.Tensor.get_device:
            return 0
        if _is_cuda(kwargs.get("device")):
            kwargs["device"] = "cpu"
        if function is torch.Tensor.to:
            args = tuple("cpu" if _is_cuda(said) else said for said in args)
        made = function(*args, **kwargs)
        if function in EMPTY and made.device.type == "cpu":
            made.zero_()  # what kernels would have written is read as nothing
        return made


def pretend():
    """From here on there is a GPU."""
    os.environ.setdefault("GEMS_VENDOR", "nvidia")
    cuda = torch.cuda
    answers = {
        "is_available": True, "is_initialized": True, "current_device": 0, "device_count": 1,
        "get_device_properties": PROPERTIES, "get_device_capability": (9, 0),
        "get_device_name": PROPERTIES.name, "synchronize": None, "set_device": None,
        "is_current_stream_capturing": False, "empty_cache": None, "init": None,
        "_lazy_init": None, "is_bf16_supported": True, "memory_allocated": 0,
        "max_memory_allocated": 0, "mem_get_info": (141 << 30, 141 << 30),
        "current_stream": SimpleNamespace(cuda_stream=0, device=None, wait_stream=lambda _: None),
    }  # fmt: skip
    for name, answer in answers.items():
        setattr(cuda, name, lambda *_, answer=answer, **__: answer)
    cuda.Event, cuda.device, cuda.device_of = _Event, _Device, _Device
    torch._C._cuda_getCurrentRawStream = lambda _: 0
    cuda.stream = lambda *_: nullcontext()
    torch.accelerator.current_accelerator = lambda *_, **__: GPU
    torch.version.cuda = "12.8"
    torch.allclose = lambda *_, **__: True  # of what no kernel has written
    torch.testing.assert_close = lambda *_, **__: None
    triton.testing.Mark.run = lambda *_, **__: None
    triton.testing.do_bench = lambda *_, **__: 1.0
    torch.compile = lambda function=None, **_: function or (lambda inner: inner)
    driver.set_active(_Driver())
    _OnThisMachine().__enter__()
