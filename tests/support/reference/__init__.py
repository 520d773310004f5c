"""A naive interpreter of read queries, written from the language page: plain dicts and loops."""
