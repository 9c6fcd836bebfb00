"""Statistics in numpy and scipy, without torch: metrics, thresholds, shares, novelty, diagnostics, selection."""
