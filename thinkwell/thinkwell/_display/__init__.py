"""What displays say of a run, in words and pieces that any of them can draw. No terminal, no protocol."""
