"""The one training loop, and what it needs: optimiser, checkpoint, evaluation pass."""
