"""Every operation of the product, declared once beside its function.

HTTP routes, the OpenAPI document, the MCP tools, the remote client and the reference page are made
from the declarations; see `operation.py` for what one says, and `table.py` for the list.
"""

from omnigraph.service.operations.operation import Access, Operation, Tool, operation
from omnigraph.service.operations.table import OPERATIONS, AnyOperation

__all__ = ["OPERATIONS", "Access", "AnyOperation", "Operation", "Tool", "operation"]
