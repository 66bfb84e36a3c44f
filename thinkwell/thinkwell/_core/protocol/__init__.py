"""Pure translation between the protocol's types and ours."""
