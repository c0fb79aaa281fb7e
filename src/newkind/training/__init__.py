"""The training loop and what it needs: network, optimizer, checkpoints, inference."""
