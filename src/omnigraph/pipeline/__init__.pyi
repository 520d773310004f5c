from omnigraph.pipeline.errors import SparkUnavailable as SparkUnavailable
from omnigraph.pipeline.frames import read as read
from omnigraph.pipeline.frames import write as write
from omnigraph.pipeline.sessions import close as close
from omnigraph.pipeline.sessions import session as session
from omnigraph.pipeline.source import register as register
from omnigraph.pipeline.warmup import warm_up as warm_up
