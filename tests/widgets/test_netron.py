"""NetronView against the pinned netron, on a real Jupyter server under a base URL."""

from __future__ import annotations

import http.client
import os
import random
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import lite_widgets as lw
import pytest

from tests.widgets import host_page
from tests.widgets.browser import settle

pytestmark = pytest.mark.browser
pytest.importorskip("netron", reason="pip install netron==9.3.3")
pytest.importorskip("jupyter_server", reason="pip install jupyter_server")
BASE = "/user/NAME/"
EXTENSION = "lite_widgets.netron_view.extension"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    """The root URL of a Jupyter server that has the extension."""
    home = tmp_path_factory.mktemp("jupyter")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    widgets = str(Path(lw.__file__).parents[1])
    path = os.pathsep.join(filter(None, [widgets, os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "HOME": str(home), "JUPYTER_CONFIG_DIR": str(home), "PYTHONPATH": path}
    arguments = [
        f"--port={port}", "--ServerApp.port_retries=0", "--ip=127.0.0.1", "--no-browser",
        "--allow-root", f"--ServerApp.base_url={BASE}", "--IdentityProvider.token=t",
        f"--ServerApp.root_dir={home}", f"--ServerApp.jpserver_extensions={EXTENSION}=True",
    ]  # fmt: skip
    log = (home / "log").open("w")
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", *arguments], env=env, stdout=log, stderr=log
    )
    url = f"http://127.0.0.1:{port}{BASE}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{url}api", timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, (home / "log").read_text()
                time.sleep(0.25)
        yield url
    finally:
        process.terminate()
        process.wait(15)
        log.close()


def model() -> bytes:
    """A small ONNX file whose nodes have names."""
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu_0"),
        helper.make_node("Sigmoid", ["a"], ["b"], name="sigmoid_1"),
        helper.make_node("Add", ["a", "b"], ["y"], name="add_2"),
    ]
    graph = helper.make_graph(nodes, "g", [value("x", kind, [1, 4])], [value("y", kind, [1, 4])])
    return helper.make_model(graph).SerializeToString()


def status(url: str) -> int:
    """The status of a plain GET, without following a redirect to the login page."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *args):
            return None

    try:
        with urllib.request.build_opener(Stay).open(url, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_nothing_is_served_without_login_and_only_assets_with_it(server):
    for name in ("embed.html", "lite-bridge.js", "index.js", "view.js"):
        assert status(f"{server}lite/netron/{name}") in (302, 403), name
        assert status(f"{server}lite/netron/{name}?token=t") == 200, name
    for name in ("server.py", "__init__.py", "..%2Fsetup.py", "%2e%2e/x.js", "nothing.js"):
        assert status(f"{server}lite/netron/{name}?token=t") in (302, 403, 404), name


def test_what_its_page_may_do(server: str) -> None:
    """The browser lets nothing of netron's leave this origin, and nobody else frames it."""
    with urllib.request.urlopen(f"{server}lite/netron/embed.html?token=t", timeout=5) as answer:
        policy = answer.headers["Content-Security-Policy"]
    told = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert told["frame-ancestors"] == "'self'" and told["img-src"] == "'self' blob: data:"
    assert told["form-action"] == told["object-src"] == "'none'"
    assert "http" not in told["connect-src"]
    assert status(f"{server}lite/netron/{'a' * 5000}.js?token=t") == 404


@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.hours)])
def test_hostile_routes(count: int, server: str) -> None:
    """Any name, any method: no error of the server, nothing but netron's own files."""
    rng = random.Random(count)
    good = ["embed.html", "index.js", "view.js", "lite-bridge.js"]
    pieces = [*good, "..", ".", "%2e%2e", "%2f", "%5c", "%00", "%0d%0a", "~", "server.py", "/",
              "//", "etc", "passwd", "C:", "a" * 300, "%F0%9F%98%80", "%ff", ";", "?", "&",
              "token=t", "#", "__init__.py", "__pycache__", "\\", "%252e"]  # fmt: skip
    host, port = re.match(r"http://([^:/]+):(\d+)", server).groups()
    seen: Counter[int] = Counter()
    for _ in range(count):
        name = "".join(rng.choices(pieces, k=rng.randrange(1, 5)))
        method = rng.choice(("GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "X"))
        client = http.client.HTTPConnection(host, int(port), timeout=10)
        path = f"{BASE}lite/netron/{name}"
        client.request(method, path + ("&" if "?" in path else "?") + "token=t")
        answer = client.getresponse()
        body = answer.read()
        client.close()
        seen[answer.status] += 1
        assert answer.status < 500, (method, path)
        assert b"root:" not in body and b"import http" not in body, (method, path)
    assert len(seen) > 3 and status(f"{server}lite/netron/embed.html?token=t") == 200, seen


def test_model_opens_from_bytes_and_selection_goes_both_ways(server, chromium):
    view = lw.NetronView(
        model=model(), name="m.onnx", sources={"fused/relu": ["relu_0", "sigmoid_1"]},
        colours={"relu_0": "#d55e00"},
    )  # fmt: skip
    page = chromium.new_page(viewport={"width": 1000, "height": 700})
    page.set_default_timeout(60_000)
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url) if r.url.startswith("http") else None)
    page.goto(f"{server}login?token=t")
    page.set_content(host_page.page([view], base_url=BASE, width=900))
    page.wait_for_function("() => window.models && window.models[0].get('nodes') === 3")
    # netron takes eval away from its page, so its document is looked at from ours
    page.wait_for_function(
        "() => document.querySelector('iframe').contentDocument"
        ".querySelector('#node-name-relu_0 .node-item path').style.fill !== ''"
    )
    frame = page.frame_locator("iframe")
    page.evaluate("() => models[0].set('selected', ['fused/relu'])")
    frame.locator("#node-name-relu_0.select").wait_for()
    assert frame.locator(".node.select").count() == 2
    frame.locator("#node-name-add_2").click()
    page.wait_for_function("() => JSON.stringify(models[0].get('selected')) === '[\"add_2\"]'")
    page.evaluate("() => document.body.setAttribute('data-jp-theme-light', 'false')")
    settle(page, 300)
    assert page.evaluate("() => window.errors") == []
    host = server.split("/user/")[0]
    assert [url for url in asked if not url.startswith(host)] == []
    page.close()


def test_a_server_without_the_extension_says_how_to_enable_it(server, chromium):
    page = chromium.new_page()
    page.goto(f"{server}login?token=t")
    page.set_content(host_page.page([lw.NetronView(model=b"x")], base_url="/user/NAME/none/"))
    page.wait_for_selector(".note")
    assert "jupyter server extension enable" in page.locator(".note").inner_text()
    page.close()
