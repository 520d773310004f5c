"""The wire contract: a struct for every body, named as in OpenAPI.

Classes say which members may be absent (`UNSET`) and which are null (`None`): an answer always has
the latter and never the former unless they are set. Requests take null for whatever is optional.
"""

from omnigraph.service.wire.changes import *  # noqa: F403 - all structs of the contract
from omnigraph.service.wire.errors import *  # noqa: F403
from omnigraph.service.wire.explore import *  # noqa: F403
from omnigraph.service.wire.extensions import *  # noqa: F403
from omnigraph.service.wire.maintenance import *  # noqa: F403
from omnigraph.service.wire.parameters import NoRequest as NoRequest
from omnigraph.service.wire.pipelines import *  # noqa: F403
from omnigraph.service.wire.proposals import *  # noqa: F403
from omnigraph.service.wire.requests import *  # noqa: F403
from omnigraph.service.wire.responses import *  # noqa: F403
