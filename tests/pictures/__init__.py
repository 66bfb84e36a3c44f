"""Pictures for the documentation, made from recorded runs: see ``__main__.py``."""
