"""Storage: the only package that imports Lance and the object store.

Locations, handles at exact versions, staged (detached) versions, small objects, and the translation
of storage exceptions into OmniErrors. Nothing here depends on the graph model.
"""

from omnigraph.storage.datasets import Datasets
from omnigraph.storage.location import Location, locate
from omnigraph.storage.object_store import ObjectInfo, ObjectStore

__all__ = ["Datasets", "Location", "ObjectInfo", "ObjectStore", "locate"]
