"""Torch: the network with its members axis, the primal–dual step, and the one training loop."""
