"""Show objects in notebooks: HTML and SVG without scripts, from the JSON form of each object.

Every text of a graph goes through `elements`, which escapes it, shows signs that hide or turn
other text by name, and cuts it. `style` is the visual language, which is that of Studio.
"""
