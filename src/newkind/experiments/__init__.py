"""Experiments of many runs: tuning on held-out classes, and the tables and figures of the paper."""
