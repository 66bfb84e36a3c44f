"""Measures thinkwell beside other Python clients of the Agent Client Protocol: `python -m benchmarks`."""
