"""The run folder: its files, categories, assignments, model and metrics."""
