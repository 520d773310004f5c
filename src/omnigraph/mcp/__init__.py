"""The front for agents: tools over the Model Context Protocol."""
