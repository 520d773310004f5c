"""The rules of the schema, one module each, over the images of a change."""
