"""Many graphs behind one door: wire shapes, stored queries, operations, and the client."""
