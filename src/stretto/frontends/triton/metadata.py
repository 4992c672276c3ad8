"""What the text of a kernel lacks: the .json that Triton writes beside it.

{"num_warps": 4, "num_stages": 3, "target": {"backend": "cuda", "arch": 90, "warp_size": 32}, ...}
"""

from __future__ import annotations

from dataclasses import replace

from stretto.document import Cursor, parse_json
from stretto.kernel import Kernel


def with_options(kernel: Kernel, file: str, text: str) -> Kernel:
    """The kernel with the options it was compiled with; DocumentError where they are none."""
    top = parse_json(file, text)
    return replace(
        kernel,
        warps=top.opt("num_warps", Cursor.positive, None),
        stages=top.opt("num_stages", Cursor.natural, None),
        target=top.opt("target", _target, ""),
    )


def _target(cursor: Cursor) -> str:
    if isinstance(cursor.value, str):
        return cursor.text()
    backend = cursor.opt("backend", Cursor.text, "")
    arch = cursor.opt("arch", lambda c: str(c.value), "")
    return f"{backend}:{arch}" if arch else backend
