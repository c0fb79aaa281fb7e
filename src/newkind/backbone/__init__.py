"""Images to tokens or features: the frozen trunk, the tuned blocks, the token cache and the weights."""
