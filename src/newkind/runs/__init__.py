"""The run folder: its files, assignments, model and metrics."""
