"""ResNet18 with the stem for small images, as a body: images in, one vector an image out."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def resnet18(width: int = 64, channels: int = 3) -> nn.Module:
    """He et al. (2016) with the CIFAR stem: one 3×3 convolution of stride 1 and no pooling before the blocks.

    ``width`` is the number of channels of the first stage, 64 as published; vectors have 8 · width numbers.

    >>> import torch
    >>> resnet18(width=8)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    """
    return ResNet18(width, channels)


class ResNet18(nn.Module):
    """Stem, four stages of two residual blocks each, and the mean over what is left of the image."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.stem = _convolution(channels, width)
        self.norm = nn.BatchNorm2d(width)
        blocks: list[nn.Module] = []
        width_in = width
        for stage in range(4):
            width_out = width << stage
            blocks += [Block(width_in, width_out, 1 if stage == 0 else 2), Block(width_out, width_out, 1)]
            width_in = width_out
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        """Images (n, C, H, W) to vectors (n, 8 · width)."""
        # channels last in memory is the faster layout of convolutions; weights stay as they are saved
        x = x.contiguous(memory_format=torch.channels_last)
        features: Tensor = self.blocks(F.relu(self.norm(self.stem(x))))
        return features.mean(dim=(2, 3))


class Block(nn.Module):
    """Two 3×3 convolutions beside a shortcut, which is a 1×1 convolution where the shape changes."""

    def __init__(self, width_in: int, width_out: int, stride: int) -> None:
        super().__init__()
        self.first, self.first_norm = _convolution(width_in, width_out, stride), nn.BatchNorm2d(width_out)
        self.second, self.second_norm = _convolution(width_out, width_out), nn.BatchNorm2d(width_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width_in != width_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(width_in, width_out, 1, bias=False), nn.BatchNorm2d(width_out)
            )
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """ReLU(convolutions(x) + shortcut(x))."""
        z = F.relu(self.first_norm(self.first(x)))
        # a 1×1 convolution of that stride, which itself writes past its memory in oneDNN (its issue 6035)
        strided = x[:, :, :: self.stride, :: self.stride]
        return F.relu(self.second_norm(self.second(z)) + self.shortcut(strided))


def _convolution(width_in: int, width_out: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(width_in, width_out, 3, stride, padding=1, bias=False)
