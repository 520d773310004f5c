"""Storage: the only room that knows Lance and the object store.

Addresses, handles at exact versions, staged (detached) versions, small objects, and the
translation of what storage raises into our errors. Nothing here knows what a graph is.
"""

from omnigraph.storage.datasets import Datasets
from omnigraph.storage.location import Location, locate
from omnigraph.storage.object_store import ObjectInfo, ObjectStore

__all__ = ["Datasets", "Location", "ObjectInfo", "ObjectStore", "locate"]
