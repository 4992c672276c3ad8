"""Who claims a bank of tensor memory or a named barrier, and which operations that takes.

    s_acc   tmem, qk writes, load_s reads          a buffer: a bank, from qk's issue on
    k_tile  smem, load_k writes, qk reads          a pipe: a barrier, until qk is done
    %it     producer_acquire ... consumer_release  a pipe that is written down: a barrier

A loop that says nothing of its banks has one for each buffer of tensor memory, and one that says
nothing of its pipes has one for each ring that is handed on. A buffer is one claimant: who waits
for a bank waits at its barrier. Nothing here depends on an II or a start.
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.loop import Loop, Op
from stretto.ops.spaces import STAGING, TENSOR
from stretto.problem.holds import Reader, Room

PRODUCERS, CONSUMERS = "async.pipeline.producer_", "async.pipeline.consumer_"


def claimants(loop: Loop) -> tuple[Room, ...]:
    """All of them: buffers, then stated pipes, then operations that state a bank of their own."""
    return (*_buffers(loop), *_pipes(loop), *_stated(loop))


def _buffers(loop: Loop) -> Iterator[Room]:
    """Buffers of tensor memory, and rings of shared memory that one operation hands another."""
    for storage in loop.storages:
        writers = [loop.index[op.name] for op in loop.storage_writers[storage.name]]
        readers = [(loop.index[op.name], d) for op, d in loop.storage_readers[storage.name]]
        if storage.fixed:  # one copy: who reads the last iteration's reads this one as well
            readers = [(op, 0) for op, _ in readers]
        handed_on = bool(writers) and any(op not in writers for op, _ in readers)
        pipe = storage.space == STAGING and not storage.fixed and handed_on
        if storage.space == TENSOR or pipe:
            yield _claim(storage.name, storage.space, writers, readers)


def _pipes(loop: Loop) -> Iterator[Room]:
    """What the producers and the consumers at one iterator hand over."""
    makers: dict[tuple[str, int], list[int]] = {}
    takers: dict[tuple[str, int], list[int]] = {}
    for i, op in enumerate(loop.ops):
        for prefix, sides in ((PRODUCERS, makers), (CONSUMERS, takers)):
            if op.kind.startswith(prefix) and op.operands:
                at = op.operands[0]
                sides.setdefault((at.value, at.distance), []).append(i)
    for at, writers in makers.items():
        if at in takers:
            yield _claim(at[0], "pipe", writers, [(op, 0) for op in takers[at]])


def _stated(loop: Loop) -> Iterator[Room]:
    """Operations on a bank of tensor memory that they state, of no buffer that the loop knows."""
    for i, op in enumerate(loop.ops):
        stated = op.facts.bank is not None and op.facts.buffer == TENSOR
        if stated and not _touches(loop, op):
            yield _claim(op.name, TENSOR, [i], [])


def _touches(loop: Loop, op: Op) -> bool:
    """Whether an operation reads or writes a storage."""
    return bool(op.writes or loop.reads[op.name])


def _claim(name: str, space: str, writers: list[int], readers: list[Reader]) -> Room:
    """A claim begins with its first writer; one that nothing writes, with its first reader."""
    begins = writers or [op for op, _ in readers]
    return Room.of(name, space, 0, tuple(dict.fromkeys(begins)), tuple(dict.fromkeys(readers)))
