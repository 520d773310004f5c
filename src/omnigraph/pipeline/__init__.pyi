from omnigraph.pipeline.errors import SparkUnavailable as SparkUnavailable
from omnigraph.pipeline.load import load_frames as load_frames
from omnigraph.pipeline.load import load_sources as load_sources
from omnigraph.pipeline.sessions import close as close
from omnigraph.pipeline.sessions import session as session
