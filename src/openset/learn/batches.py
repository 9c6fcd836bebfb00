"""Batches of rows for the network: selected and scaled without copying the data set; outputs of all heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from openset.learn.augment import CropFlip
from openset.learn.network import Network
from openset.learn.seeds import restore_stream, stream_state
from openset.stats.scaling import NO_SCALING, Scaling, channel_axis

Rows = NDArray[np.intp]

SCORING_BLOCK = 256
"""Every scoring product has this many rows, because rounding depends on the shape."""
ARRAY_BLOCK = 64
"""The same for rows that are arrays; smaller, because a padded block of images costs as much as a full one."""
SCALED_ONCE = 1 << 23
"""Data sets of up to this many numbers (32 MB) are scaled once; larger ones are scaled as they are read."""


@dataclass(frozen=True)
class ScaledRows:
    """An array of rows (may be memory-mapped; any float type or uint8) and the scaling applied on reading.

    Images of uint8 are read with their channels first, also if the array has them last.
    """

    array: NDArray[Any]
    scaling: Scaling

    def __len__(self) -> int:
        return len(self.array)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of a row as it is read."""
        shape = self.array.shape[1:]
        return (shape[-1], *shape[:-1]) if self._channels_last else shape

    @property
    def _channels_last(self) -> bool:
        return channel_axis(self.array) == 3

    def scaled_once(self) -> ScaledRows:
        """Return rows that are already scaled, if they are vectors in memory and few enough."""
        small = self.array.ndim == 2 and self.array.size <= SCALED_ONCE and self.array.dtype != np.uint8
        ready = self.array.dtype == np.float32 and self.scaling.rule == "none"
        if not small or ready or isinstance(self.array, np.memmap):
            return self
        scaled = np.empty(self.array.shape, np.float32)
        self.gather(np.arange(len(self)), scaled)
        return ScaledRows(scaled, NO_SCALING)

    def gather(self, rows: Rows, out: NDArray[np.float32]) -> None:
        """Write the given rows, scaled, into ``out``."""
        if self.array.dtype == np.float32:
            np.take(self.array, rows, axis=0, out=out, mode="clip")
            self.scaling.apply_in_place(out)
        elif self.array.dtype == np.uint8:
            taken = self.array[rows]
            out[...] = np.moveaxis(taken, -1, 1) if self._channels_last else taken
            self.scaling.apply_in_place(out)
        elif self.array.dtype == np.float16:  # torch converts more than ten times as fast as numpy
            torch.from_numpy(out).copy_(torch.from_numpy(np.take(self.array, rows, axis=0)))
            self.scaling.apply_in_place(out)
        else:  # scale in the data's own precision, so that huge values survive
            with np.errstate(over="ignore"):  # such rows get an infinite score, which the estimator reports
                out[...] = self.scaling.apply(self.array[rows])


class RowStream:
    """An endless sequence of rows: one random permutation after another, cut into batches.

    Every row comes equally often. A set smaller than a batch is used several times in one batch.
    """

    def __init__(self, rows: Rows, seed: np.random.SeedSequence) -> None:
        self._rows = rows
        self._stream = np.random.SFC64(seed)
        self._random = np.random.Generator(self._stream)
        self._waiting = rows[:0]

    def take(self, size: int) -> Rows:
        """Return the next ``size`` rows."""
        while len(self._waiting) < size:
            self._waiting = np.concatenate([self._waiting, self._random.permutation(self._rows)])
        taken, self._waiting = self._waiting[:size], self._waiting[size:]
        return taken

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state of the stream and the rest of the current permutation."""
        return {"stream": stream_state(self._stream), "waiting": self._waiting}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what ``state()`` returned."""
        restore_stream(self._stream, state["stream"])
        self._waiting = state["waiting"]


@dataclass(frozen=True)
class Batch:
    """For every member, source rows followed by as many target rows."""

    x: Tensor
    """(members, source rows + target rows, ...)"""
    y: Tensor
    """(members, source rows): class indices"""
    target_rows: Tensor
    """(members, target rows): their indices in the target array; (members, 0) without a target"""

    def source(self, values: Tensor) -> Tensor:
        """Return the values of source rows."""
        return values[:, : self.y.shape[1]]

    def target(self, values: Tensor) -> Tensor:
        """Return the values of target rows."""
        return values[:, self.y.shape[1] :]


class Batches:
    """Batches for all members, drawn from each member's own training rows by its own streams."""

    def __init__(
        self,
        source: ScaledRows,
        y: NDArray[np.intp],
        target: ScaledRows | None,
        source_streams: Sequence[RowStream],
        target_streams: Sequence[RowStream],
        size: int,
        device: str,
        augment: Sequence[CropFlip] = (),
    ) -> None:
        self._source, self._y, self._target = source, y, target
        self._source_streams, self._target_streams = source_streams, target_streams
        self._size, self._device, self._augment = size, device, augment
        members, width = len(source_streams), size if target is None else 2 * size
        self._x = np.empty((members, width, *source.row_shape), np.float32)
        self._labels = np.empty((members, size), np.int64)
        self._target_rows = np.empty((members, 0 if target is None else size), np.int64)

    def next(self) -> Batch:
        """Return the next batch; it reuses one buffer, so use it before the next call."""
        for member, stream in enumerate(self._source_streams):
            rows = stream.take(self._size)
            self._source.gather(rows, self._x[member, : self._size])
            self._labels[member] = self._y[rows]
        if self._target is not None:
            for member, stream in enumerate(self._target_streams):
                rows = stream.take(self._size)
                self._target.gather(rows, self._x[member, self._size :])
                self._target_rows[member] = rows
        for member, augmentation in enumerate(self._augment):
            augmentation.apply_in_place(self._x[member])
        parts = (self._x, self._labels, self._target_rows)
        return Batch(*(torch.from_numpy(part).to(self._device) for part in parts))

    def state(self) -> list[Any]:
        """Return the states of all streams."""
        return [stream.state() for stream in self._streams()]

    def restore(self, state: Sequence[Any]) -> None:
        """Restore what ``state()`` returned."""
        for stream, stored in zip(self._streams(), state, strict=True):
            stream.restore(stored)

    def _streams(self) -> list[Any]:
        return [*self._source_streams, *self._target_streams, *self._augment]


def head_outputs(
    network: Network, rows: ScaledRows, chosen: Rows | None = None, *, representation: bool = False
) -> dict[str, NDArray[np.float32]]:
    """Return the outputs of every head for the chosen rows, (members, rows, width).

    ``representation`` adds the output of each body, (members, rows, hidden), under the body's name. Rows are
    scored in blocks of one fixed shape, the last one padded, so that a row's result does not depend on the rows
    that it is scored with (see :data:`openset.learn.kernels.NARROW` for an exception).
    """
    device = next(network.parameters()).device
    members = network.architecture.members
    parts: dict[str, list[NDArray[np.float32]]] = {}
    for block, size in _blocks(rows, chosen):
        x = torch.from_numpy(block).to(device).expand(members, *block.shape)
        with torch.inference_mode():
            for body in network.architecture.bodies:
                z = network.represent(x, body)
                outputs = {**network.heads[body](z), **({body: z} if representation else {})}
                for name, values in outputs.items():
                    parts.setdefault(name, []).append(values[:, :size].cpu().numpy())
    return {name: np.concatenate(blocks, axis=1) for name, blocks in parts.items()}


def _blocks(rows: ScaledRows, chosen: Rows | None) -> Iterator[tuple[NDArray[np.float32], int]]:
    wanted = np.arange(len(rows)) if chosen is None else chosen
    size = SCORING_BLOCK if len(rows.row_shape) == 1 else ARRAY_BLOCK
    block = np.zeros((size, *rows.row_shape), np.float32)
    for start in range(0, max(len(wanted), 1), size):
        part = wanted[start : start + size]
        block[len(part) :] = 0
        rows.gather(part, block[: len(part)])
        yield block, len(part)
