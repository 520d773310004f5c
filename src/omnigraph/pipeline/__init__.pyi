from omnigraph.pipeline.errors import SparkUnavailable as SparkUnavailable
from omnigraph.pipeline.sessions import close as close
from omnigraph.pipeline.sessions import session as session
