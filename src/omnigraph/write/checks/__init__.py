"""The rules of the schema, one module each, checked on the rows of a change."""
