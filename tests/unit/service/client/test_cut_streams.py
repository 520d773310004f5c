"""A stream of rows that ends too early is an error of ours, wherever it is cut."""

import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.query.result import ResultStream
from omnigraph.service.client import aconnect, connect
from omnigraph.types import PropertyType, Scalar
from tests.support.awaiting import run_async

QUERY = "match { $n: N } return { $n.i }"
TYPES = {"i": PropertyType(Scalar.I64)}
ROWS = pa.table({"i": range(50_000)})
PARTS = [ROWS.slice(start, 10_000) for start in range(0, ROWS.num_rows, 10_000)]
WHOLE = b"".join(ResultStream("q", TYPES, "c", len(ROWS), iter(PARTS)).arrow_chunks())


def length_of_first_batches():
    """Return how many bytes the schema and the first two batches take."""
    file = io.BytesIO(WHOLE)
    reader = pa.ipc.open_stream(file)
    reader.read_next_batch()
    reader.read_next_batch()
    return file.tell()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        cut, declared = self.server.cut
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.apache.arrow.stream")
        self.send_header("Omnigraph-Query-Name", "q")
        self.send_header("Omnigraph-Graph-Commit", "c")
        self.send_header("Omnigraph-Row-Count", str(len(ROWS)))
        self.send_header("Content-Length", str(declared))
        self.end_headers()
        self.wfile.write(WHOLE[:cut])
        self.close_connection = True

    def log_message(self, *_):
        """Keep quiet."""


@pytest.fixture(
    params=[
        pytest.param((len(WHOLE) // 2, len(WHOLE)), id="in a batch"),
        pytest.param((20, len(WHOLE)), id="in the schema"),
        pytest.param((len(WHOLE) // 2, len(WHOLE) // 2), id="in a batch, by a proxy"),
        pytest.param((length_of_first_batches(),) * 2, id="between batches, by a proxy"),
        pytest.param((0, 0), id="before everything"),
    ]
)
def url(request):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.cut = request.param
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/graphs/g"
    server.shutdown()
    server.server_close()


def test_rows_that_break_off_are_reported(url):
    with pytest.raises(og.OmniError) as caught:
        list(connect(url).stream(QUERY))
    assert (caught.value.code, caught.value.category) == ("server_unreachable", "unavailable")


def test_so_are_awaited_ones(url):
    async def story():
        async with await aconnect(url) as graph:
            return [row async for row in await graph.stream(QUERY)]

    with pytest.raises(og.OmniError) as caught:
        run_async(story())
    assert caught.value.code == "server_unreachable"


def test_so_is_a_whole_result(url):
    with pytest.raises(og.OmniError) as caught:
        connect(url).query(QUERY)
    assert caught.value.code == "server_unreachable"
