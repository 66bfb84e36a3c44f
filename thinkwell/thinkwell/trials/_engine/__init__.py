"""The engine of trials: the store, the workers, and what hands trials out to them."""
