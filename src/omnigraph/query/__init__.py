"""Reading: what a snapshot holds, under the names its schema gives."""
