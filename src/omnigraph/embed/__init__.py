"""This room turns texts into vectors.

A name of a model and texts enter; unit vectors of the dimension asked for leave, or an error that
says which text and why. Providers are alike to everybody else: `Embedder` builds the one that an
environment or a profile asks for when the first text comes, and nothing is sent anywhere unless
that was asked for.
"""

from omnigraph.embed.embedder import Embedder
from omnigraph.embed.provider import Provider, Role

__all__ = ["Embedder", "Provider", "Role"]
