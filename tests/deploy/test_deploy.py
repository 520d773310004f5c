"""The files of `deploy/`: what they name exists, and what they start is started and answers."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib

import click
import httpx
import pytest
import yaml

from omnigraph.cli.app import cli
from tests.support.program import ROOT, omnigraph_with
from tests.support.s3 import BUCKET, s3_server
from tests.support.serving import serving
from tests.support.sockets import free_port

DEPLOY = ROOT / "deploy"
INSTRUCTION = re.compile(r"^([A-Z]+) (.+)$")
REPORTED = {
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "RUN",
    "STOPSIGNAL",
    "USER",
    "WORKDIR",
}


def instructions():
    """Return the instructions of the Dockerfile with their arguments."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    matches = [INSTRUCTION.match(line) for line in lines if line.strip()]
    assert all(matches), "every line is an instruction"
    return [match.groups() for match in matches]


def last(name):
    return [argument for word, argument in instructions() if word == name][-1]


def parse(line):
    """Parse a command line of the program without running it; click raises if it is invalid."""
    words = shlex.split(line) if isinstance(line, str) else list(line)
    context, command = click.Context(cli, info_name="omnigraph"), cli
    while isinstance(command, click.Group):
        name, below, words = command.resolve_command(context, words)
        context = click.Context(below, info_name=name, parent=context)
        command = below
    command.make_context(context.info_name, words, parent=context.parent)


# --- the image ---------------------------------------------------------------------------------


def test_the_image_is_built_in_stages_from_pinned_images_and_files_that_exist():
    known, stages = {word for word, _ in instructions()}, []
    assert known <= REPORTED
    for word, argument in instructions():
        if word == "FROM":
            image, *name = argument.split()
            assert re.fullmatch(r"(node|python):\d[\w.-]+-slim|python:3\.\d+-slim-\w+", image)
            stages += name[1:]
        if word == "COPY":
            origin, *paths = argument.split()
            if origin.startswith("--from="):
                assert origin.removeprefix("--from=") in stages
                continue
            for path in [origin, *paths[:-1]]:
                assert (ROOT / path).exists(), path
    assert stages == ["studio", "wheel"]


def test_the_context_has_what_the_image_copies_and_no_more():
    allowed = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    copied = {
        path.rstrip("/").split("/")[0]
        for word, argument in instructions()
        if word == "COPY" and not argument.startswith("--from")
        for path in argument.split()[:-1]
    }
    assert copied == allowed


def test_the_build_of_studio_writes_where_the_image_copies_it_from():
    config = (ROOT / "ui" / "vite.config.ts").read_text(encoding="utf-8")
    [output] = re.findall(r"outDir: '([^']+)'", config)
    place = (ROOT / "ui" / output).resolve().relative_to(ROOT).as_posix()
    assert any(f"/source/{place}/" in argument for _, argument in instructions())


def test_the_image_runs_without_root_and_its_check_answers(tmp_path):
    assert int(last("USER")) > 0
    entry, command = json.loads(last("ENTRYPOINT")), json.loads(last("CMD"))
    assert entry == ["omnigraph"]
    variables = dict(pair.split("=", 1) for pair in last("ENV").split())
    graph = tmp_path / "graph"
    created = omnigraph_with(
        ["init", str(graph), "--schema", str(ROOT / "samples/crm/schema.pg")], os.environ, ROOT
    )
    assert created.code == 0, created.err
    metrics = free_port()
    environment = {
        **variables,
        "OMNIGRAPH_METRICS_ADDRESS": f"127.0.0.1:{metrics}",
        "OMNIGRAPH_STORE": str(graph),
        "OMNIGRAPH_UNAUTHENTICATED": "1",
    }
    check = json.loads(last("HEALTHCHECK").partition(" CMD ")[2])
    assert variables["OMNIGRAPH_BIND"].endswith(":8080")
    with serving(command=command, environment=environment) as server:
        here = [word.replace("http://127.0.0.1:8080", server.url) for word in check]
        assert here != check
        subprocess.run([shutil.which("python3"), *here[1:]], check=True)
        assert httpx.get(f"{server.url}/readyz").status_code == 200
        assert "omnigraph_requests_total" in httpx.get(f"http://127.0.0.1:{metrics}/metrics").text
    assert subprocess.run([shutil.which("python3"), *here[1:]], capture_output=True).returncode == 1


def has_docker():
    docker = shutil.which("docker")
    return docker and not subprocess.run([docker, "info"], capture_output=True).returncode


@pytest.mark.skipif(not has_docker(), reason="no Docker daemon runs")
def test_the_image_builds():
    run = ["docker", "build", "-f", "deploy/Dockerfile", "-t", "omnigraph-test", "."]
    subprocess.run(run, cwd=ROOT, check=True)
    version = ["docker", "run", "--rm", "omnigraph-test", "version"]
    subprocess.run(version, check=True)


# --- compose -----------------------------------------------------------------------------------


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def test_services_are_pinned_start_in_order_and_mount_files_that_exist():
    services = compose()["services"]
    order = list(services)
    for name, service in services.items():
        image = service.get("image", "")
        assert image == "omnigraph" or re.fullmatch(r"[\w/]+:RELEASE\.[\w-]+", image), name
        assert all(
            order.index(other) < order.index(name) for other in service.get("depends_on", {})
        )
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in compose()["volumes"] or (DEPLOY / source).exists()
    parse(services["server"]["command"])


def test_the_graph_is_created_once_and_served_from_a_bucket(tmp_path):
    services = compose()["services"]
    [script] = services["create"]["command"]
    look, _, create = script.partition(" || ")
    with s3_server() as store:
        environment = {**services["create"]["environment"], **store.environment}
        assert environment["AWS_ALLOW_HTTP"] == "true"
        environment = {**os.environ, **{name: str(v) for name, v in environment.items()}}

        def run(line):
            line = line.replace("s3://graphs", f"s3://{BUCKET}").replace(">/dev/null", "")
            line = line.replace("/etc/omnigraph/schema.pg", str(ROOT / "samples/crm/schema.pg"))
            return omnigraph_with(shlex.split(line)[1:], environment, ROOT)

        assert run(look).code != 0
        assert run(create).code == 0
        assert run(look).code == 0
        words = services["server"]["command"]
        arguments = [word.replace("s3://graphs", f"s3://{BUCKET}") for word in words]
        tokens = services["server"]["environment"]["OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"]
        tokens = re.sub(r"\$\{\w+:-([^{}]+)\}", r"\1", tokens)
        [token] = json.loads(tokens).values()
        environment["OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"] = tokens
        with (
            serving(*arguments[1:], command=arguments[:1], environment=environment) as server,
            server.client(token) as client,
        ):
            assert client.get("/readyz").json()["status"] == "ready"
            query = "match { $p: Person } return { count($p) as n }"
            answer = client.post("/graphs/main/query", json={"query": query})
            assert answer.json()["rows"] == [{"n": 0}]
            assert httpx.get(f"{server.url}/graphs/main/branches").status_code == 401


# --- systemd, Kubernetes, Railway ---------------------------------------------------------------


def unit():
    """Return the settings of the unit; one may be given several times."""
    found = {}
    for line in (DEPLOY / "omnigraph.service").read_text(encoding="utf-8").splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_starts_a_valid_command_without_root():
    [start] = unit()["ExecStart"]
    parse(shlex.split(start)[1:])
    assert unit()["DynamicUser"] == ["yes"]
    assert int(unit()["TimeoutStopSec"][0]) > 30


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path):
    text = (DEPLOY / "omnigraph.service").read_text(encoding="utf-8")
    path = tmp_path / "omnigraph.service"
    # It also checks that the program exists.
    path.write_text(text.replace("/opt/omnigraph/bin/omnigraph", shutil.which("true")))
    run = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True
    )
    ours = [line for line in run.stderr.splitlines() if "omnigraph.service" in line]
    assert ours == []


def objects():
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    return {item["kind"]: item for item in yaml.safe_load_all(text)}


def test_the_objects_of_kubernetes_fit_together():
    found = objects()
    deployment = found["Deployment"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"].items() <= labels.items()
    assert found["Service"]["spec"]["selector"].items() <= labels.items()
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    pod = deployment["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == int(last("USER"))
    [container] = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": 8080, "metrics": 9090}
    probes = {name: container[name]["httpGet"] for name in container if name.endswith("Probe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
        "startupProbe": "/healthz",
    }
    assert all(probe["port"] in ports for probe in probes.values())
    assert found["Service"]["spec"]["ports"][0]["targetPort"] in ports
    values = found["ConfigMap"]["data"]
    parse([re.sub(r"\$\((\w+)\)", lambda m: values[m[1]], word) for word in container["args"]])


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_reads_the_objects(tmp_path):
    shutil.copy(DEPLOY / "kubernetes.yaml", tmp_path)
    (tmp_path / "kustomization.yaml").write_text("resources: [kubernetes.yaml]\n")
    run = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    kinds = {item["kind"] for item in yaml.safe_load_all(run.stdout)}
    assert kinds == set(objects())


def test_railway_builds_the_image_and_starts_a_valid_command():
    settings = tomllib.loads((DEPLOY / "railway.toml").read_text(encoding="utf-8"))
    assert (ROOT / settings["build"]["dockerfilePath"]).is_file()
    assert settings["deploy"]["healthcheckPath"] == "/healthz"
    _, _, script = shlex.split(settings["deploy"]["startCommand"])
    words = shlex.split(script.replace("$PORT", "8080"))
    assert words[:2] == ["exec", "omnigraph"]
    parse(words[2:])
