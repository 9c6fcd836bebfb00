"""The paper's experiments: specs, sweeps that can be interrupted, one store of results, tables and figures."""
