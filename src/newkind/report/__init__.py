"""Results a person can look at: one self-contained page about a run, and a table for the terminal."""
