"""Questions that an agent asks, and who answers them."""
