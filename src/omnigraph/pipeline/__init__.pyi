from omnigraph.pipeline.errors import SparkUnavailable as SparkUnavailable
from omnigraph.pipeline.load import abort_run as abort_run
from omnigraph.pipeline.planning import plan_pipeline as plan_pipeline
from omnigraph.pipeline.runner import Running as Running
from omnigraph.pipeline.runner import resume_pipeline as resume_pipeline
from omnigraph.pipeline.runner import run_pipeline as run_pipeline
from omnigraph.pipeline.sessions import close as close
from omnigraph.pipeline.sessions import session as session
