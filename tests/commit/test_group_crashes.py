"""A process is killed while eight of its writers wait for each other, at any step of a commit."""

import signal

import pytest

import omnigraph.graph as og
from tests.commit.conftest import SOAK_SECONDS
from tests.support.children import drain, finish, start
from tests.support.group_writers import SCHEMA, change, check_writers, write_and_die

MOST_STEPS = 400
STRIDE = {"local": 1, "s3": 1} if SOAK_SECONDS else {"local": 5, "s3": 17}


@pytest.mark.parametrize("fresh_place", ["local", "s3"], indirect=True)
def test_acknowledged_commits_survive_and_no_other_is_half_there(fresh_place, request):
    stride = STRIDE[request.node.callspec.params["fresh_place"]]
    seen = set()
    for step in range(0, MOST_STEPS, stride):
        place = fresh_place()
        og.init(place.uri, SCHEMA, storage_options=place.options)
        process, connection = start(write_and_die, place, step)
        code = finish(process)
        reports = drain(connection)
        connection.close()
        assert code in (0, -signal.SIGKILL), reports
        graph = place.open()
        seen |= check_writers(graph, [report[1:] for report in reports if report[0] == "done"])
        assert change(graph, "later", 0) == graph.snapshot().commit_id
        if code == 0:
            break
    assert code == 0, "the last process was not killed, so there are no more steps"
    assert seen >= {"acknowledged", "absent"}
