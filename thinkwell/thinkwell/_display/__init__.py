"""The texts and parts of a run that every display draws. No terminal, no protocol."""
