"""The paper's experiments: specs, a runner that can be interrupted, one store, tables and figures."""
