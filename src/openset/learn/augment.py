"""Random crops and flips of training images, drawn for every image from one stream per member."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from openset.learn.seeds import StreamState, restore_stream, stream_state

PADDING = 4
"""An image moves by at most this many pixels in each direction, as is usual for CIFAR."""


def crop_flip(
    images: NDArray[np.float32], shifts: NDArray[np.intp], flips: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Return images (n, C, H, W) moved by ``shifts`` − 4 pixels (n, 2); those in ``flips`` (n,) are mirrored.

    Empty pixels become zero, which is the mean colour of standardised images.

    >>> image = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    >>> crop_flip(image, np.array([[4, 4]]), np.array([True]))[0, 0]
    array([[1., 0.],
           [3., 2.]], dtype=float32)
    """
    margin = ((0, 0), (0, 0), (PADDING, PADDING), (PADDING, PADDING))
    windows = sliding_window_view(np.pad(images, margin), images.shape[2:], axis=(2, 3))
    # two index arrays around a slice put the rows first: (n, C, H, W)
    moved: NDArray[np.float32] = windows[np.arange(len(images)), :, shifts[:, 0], shifts[:, 1]]
    moved[flips] = moved[flips, ..., ::-1]
    return moved


class CropFlip:
    """One member's stream of crops and flips."""

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self._stream = np.random.SFC64(seed)
        self._random = np.random.Generator(self._stream)

    def apply_in_place(self, images: NDArray[np.float32]) -> None:
        """Replace every image by a random crop of it, padded by 4 pixels; half of the crops are mirrored."""
        shifts = self._random.integers(2 * PADDING + 1, size=(len(images), 2))
        flips = self._random.random(len(images)) < 0.5
        images[...] = crop_flip(images, shifts, flips)

    def state(self) -> StreamState:
        """Return the state of the stream."""
        return stream_state(self._stream)

    def restore(self, state: StreamState) -> None:
        """Restore what ``state()`` returned."""
        restore_stream(self._stream, state)


AUGMENTATIONS = {"crop_flip": CropFlip}
