"""`stretto predict`: how fast kernels will be, and which of several configurations is fastest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stretto.cli.commands import Reply
from stretto.errors import StrettoError

if TYPE_CHECKING:
    from stretto.api.predicting import Given, KernelPrediction, KernelRanking
    from stretto.compile.choice import Assemble
    from stretto.emission import Emitted
    from stretto.prediction.running import Assembled


def run(arguments: argparse.Namespace) -> Reply:
    """One kernel in its best configuration; with several, or a what-if, all ranked."""
    from stretto.api.predicting import DEPTHS, predict, rank

    given = dict(arguments.argument)
    grids: Sequence[tuple[int, ...]] = arguments.grids
    kernels: Sequence[str] = arguments.kernels
    if len(grids) not in (1, len(kernels)):
        told = f"{len(kernels)} kernels and {len(grids)} grids; give one for all, or one for each"
        raise StrettoError(told)
    if arguments.measured and (len(kernels) > 1 or arguments.what_if):
        raise StrettoError("--measured is of one kernel, in one configuration; not of a ranking")
    if arguments.measured and arguments.assembled:
        raise StrettoError("--measured sets waits beside those of tiles; leave --assembled out")
    assemble = _assembler() if arguments.assembled else None
    if len(kernels) == 1 and not arguments.what_if:
        found = predict(
            kernels[0],
            arguments.machine,
            grid=grids[0],
            arguments=given,
            clock=arguments.clock,
            mode=arguments.mode,
            consumers=arguments.consumers,
            depth=arguments.depth,
            seed=arguments.seed,
            measured=arguments.measured,
            assemble=assemble,
        )
        if assemble is not None:
            found = _beside_stock(kernels[0], found, given, arguments.clock)
        return _reply(arguments, found, found)
    each = grids if len(grids) > 1 else [*grids] * len(kernels)
    ranked = rank(
        list(zip(kernels, each, strict=True)),
        arguments.machine,
        arguments=given,
        clock=arguments.clock,
        mode=arguments.mode,
        consumers=[arguments.consumers] if arguments.consumers else None,
        depths=DEPTHS if arguments.what_if and not arguments.depth else [arguments.depth],
        assemble=assemble,
    )
    return _reply(arguments, ranked, ranked.best)


def _beside_stock(
    file: str, found: KernelPrediction, given: Given, clock: float | None
) -> KernelPrediction:
    """With the kernel as Triton compiles it from the same TTIR, where it does."""
    from stretto.api.kernels import kernels_of
    from stretto.api.predicting import beside_stock
    from stretto.api.read_write import read_input
    from stretto.launching.compiling import compile_stock

    if not file.endswith(".ttir"):
        return found
    _, text = read_input(file)
    (kernel,) = kernels_of(file, text)
    try:
        stock = compile_stock(str(text), kernel.warps or 4, kernel.stages or 3)
    except Exception:  # Triton's own, of any kind: there is no such kernel
        return found
    return beside_stock(found, stock, arguments=given, clock=clock)


def _assembler() -> Assemble:
    from stretto.launching.compiling import can_compile, compile_emitted

    if not can_compile():
        raise StrettoError("--assembled needs Triton, but no GPU: pip install stretto[gpu]")

    def assemble(emitted: Emitted) -> Assembled:
        try:
            return compile_emitted(emitted)
        except Exception as error:  # Triton's own, of any kind
            said = " ".join(str(error).split())[:200] or type(error).__name__
            raise StrettoError(f"Triton does not compile `{emitted.name}`: {said}") from error

    return assemble


def _reply(
    arguments: argparse.Namespace,
    found: KernelPrediction | KernelRanking,
    best: KernelPrediction,
) -> Reply:
    """What was found; as a page, with the schedules of the first."""
    document = found.to_document if arguments.format == "html" else found.to_json
    return Reply(document, found.to_text, list(best.made.notes))
