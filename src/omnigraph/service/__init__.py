"""Many graphs in one service: operations, wire contract, stored queries, the client."""
