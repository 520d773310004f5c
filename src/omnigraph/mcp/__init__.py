"""Tools and resources for agents, by the Model Context Protocol.

Tool calls enter, answers of `service` leave as JSON, never more than an agent can take in. What a
caller may not do is not listed and not there. `tools` is the table of tools, `offers` decides who
gets which, `protocol` speaks with the SDK, `stdio` and `http` carry it. It is the only importer of
the SDK.
"""
