"""Embed texts as unit vectors of a requested dimension.

An error names the text and the reason. All providers have the same interface: `Embedder` builds the
one that the environment or a profile configures at the first text, and texts are sent to a service
only if one is configured.
"""

from omnigraph.embed.embedder import Embedder
from omnigraph.embed.provider import Provider, Role

__all__ = ["Embedder", "Provider", "Role"]
