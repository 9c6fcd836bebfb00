"""One method a file, all under the contract of :mod:`openset.base`."""
