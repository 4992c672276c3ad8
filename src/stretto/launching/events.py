"""Events of the GPU: recorded on the user's stream, queried later, never waited for.

    begin = events.record(stream)   kernel   end = events.record(stream)
    events.elapsed(begin, end)      microseconds, or None while the kernel still runs

They are the driver's own (libcuda), so that neither torch nor another framework is needed. While
any thread captures a CUDA graph, most calls of the driver would break that capture; each call here
stands in the mode that does not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Protocol

from stretto.errors import StrettoError

NOT_READY = 600
"""CUDA_ERROR_NOT_READY"""
INVALID_CONTEXT = 201
RELAXED = 2
"""CU_STREAM_CAPTURE_MODE_RELAXED"""
STICKY = {700, 702, 709, 714, 715, 716, 717, 718, 719}
"""Errors after which nothing runs in a process any more: a kernel has failed."""


class DeviceError(StrettoError):
    """The driver's answer to a call, where it is none of success."""

    def __init__(self, code: int, name: str) -> None:
        super().__init__(name)
        self.code = code

    @property
    def fatal(self) -> bool:
        """Whether a kernel has failed, and with it all that the process has on the GPU."""
        return self.code in STICKY

    def __reduce__(self) -> tuple[type[DeviceError], tuple[int, str]]:
        return DeviceError, (self.code, str(self))


class Events(Protocol):
    """What a trial needs of a GPU."""

    def capturing(self, stream: int) -> bool:
        """Whether what is launched on a stream is captured into a graph, and does not run."""
        ...

    def record(self, stream: int) -> Any:
        """An event, after all that the stream has so far."""
        ...

    def elapsed(self, begin: Any, end: Any) -> float | None:
        """Microseconds between two events; None while the second is still to come."""
        ...

    def release(self, *events: Any) -> None:
        """Events that nobody asks any more."""
        ...

    def failure(self, stream: int) -> DeviceError | None:
        """Why nothing runs on the GPU any more, where that is so."""
        ...

    @property
    def gpu(self) -> str:
        """The name of the GPU at hand."""
        ...


class CudaEvents:
    """Events of NVIDIA's driver."""

    def __init__(self, library: Any) -> None:
        self._cuda = library
        self._free: list[ctypes.c_void_p] = []

    def _call(self, name: str, *args: Any) -> int:
        code: int = getattr(self._cuda, name)(*args)
        if code not in (0, NOT_READY):
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorName(code, ctypes.byref(text))
            raise DeviceError(code, (text.value or b"CUDA error %d" % code).decode())
        return code

    @contextmanager
    def _beside_captures(self) -> Generator[None]:
        mode = ctypes.c_int(RELAXED)
        self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        try:
            yield
        finally:
            with suppress(DeviceError):
                self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))

    def capturing(self, stream: int) -> bool:
        """Whether what is launched on a stream is captured into a graph, and does not run."""
        status = ctypes.c_int()
        try:
            self._call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        except DeviceError as error:
            if error.fatal:
                raise
            return True  # the legacy stream, while another one is captured
        return status.value != 0

    def record(self, stream: int) -> Any:
        """An event, after all that the stream has so far."""
        with self._beside_captures():
            event = self._free.pop() if self._free else ctypes.c_void_p()
            if not event.value:
                self._call("cuEventCreate", ctypes.byref(event), 0)
            self._call("cuEventRecord", event, ctypes.c_void_p(stream))
        return event

    def elapsed(self, begin: Any, end: Any) -> float | None:
        """Microseconds between two events; None while the second is still to come."""
        with self._beside_captures():
            if self._call("cuEventQuery", end) == NOT_READY:
                return None
            milliseconds = ctypes.c_float()
            code = self._call("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
        return None if code == NOT_READY else milliseconds.value * 1000

    def release(self, *events: Any) -> None:
        """Events that nobody asks any more."""
        self._free.extend(events)

    def failure(self, stream: int) -> DeviceError | None:
        """Why nothing runs on the GPU any more, where that is so."""
        try:
            with self._beside_captures():
                self._call("cuStreamQuery", ctypes.c_void_p(stream))
        except DeviceError as error:
            return error if error.fatal else None
        return None

    @property
    def gpu(self) -> str:
        """The name of the GPU at hand."""
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        self._call("cuCtxGetDevice", ctypes.byref(device))
        self._call("cuDeviceGetName", name, 256, device)
        return name.value.decode()


@cache
def _library() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def device_events() -> Events | None:
    """Those of the GPU at hand, or nothing where there is no driver of NVIDIA's.

    An event belongs to the GPU on which it was made: who has several GPUs asks for each.
    """
    try:
        return CudaEvents(_library())
    except OSError:
        return None
