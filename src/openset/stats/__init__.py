"""Pure numpy and scipy: metrics, thresholds, proportions and head selection. No torch here."""
