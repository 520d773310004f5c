"""One type at one version of its dataset, under logical column names.

The only package that knows which stored column holds a property.
"""

from omnigraph.dataset_view.reshape import needs_reshaping, reshape_dataset
from omnigraph.dataset_view.version_reader import (
    DatasetView,
    StagedView,
    VersionReader,
    blob_properties,
    logical_schema,
    system_columns,
)

__all__ = [
    "DatasetView",
    "StagedView",
    "VersionReader",
    "blob_properties",
    "logical_schema",
    "needs_reshaping",
    "reshape_dataset",
    "system_columns",
]
