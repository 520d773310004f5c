"""The interactive shell of `omnigraph shell`: statements, commands, completion and line input."""
