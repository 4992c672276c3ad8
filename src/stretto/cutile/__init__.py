"""cuTile kernels from Python. cuTile is needed: `pip install cuda-tile`.

stretto.cutile.launch(stream, grid, matmul, (a, b, c, 128, 128, 64))    as ct.launch, pipelined
stretto.cutile.read(matmul, [array, array, array, 128, 128, 64])        a kernel
"""

from __future__ import annotations

from typing import Any

from stretto.cutile.reading import read


def launch(
    stream: Any, grid: tuple[int, ...], kernel: Any, kernel_args: tuple[Any, ...], **options: Any
) -> None:
    """`cuda.tile.launch` for a kernel that Stretto pipelines; Triton is needed for it.

    Options are those of `stretto.triton.pipeline`. What cannot be done runs as cuTile compiles it,
    with one PipelineWarning a kernel and reason.
    """
    # Reading a kernel needs none of what launching one does.
    from stretto.cutile.launches import launch_pipelined  # noqa: PLC0415

    launch_pipelined(stream, grid, kernel, kernel_args, options)


__all__ = ["launch", "read"]
