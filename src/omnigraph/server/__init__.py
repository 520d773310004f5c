"""HTTP server of graphs: authenticate, admit, call `service`, encode.

`app` puts the routes together, `routes` lists them, `handlers` read requests and write answers;
`run` is one process, `supervisor` several on one socket. It is the only importer of Starlette,
uvicorn and the Prometheus client.
"""
