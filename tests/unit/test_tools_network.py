"""Tools that use the network, against a scripted server on this machine, and without a network."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from jarvis.services.toolbox import page_text
from jarvis.tools import ToolContext, ToolError
from jarvis.tools import weather as weather_module
from jarvis.tools.network import MAX_BYTES, Web
from jarvis.tools.weather import weather
from jarvis.tools.web import fetch_page, web_search

NOW = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


@dataclass
class Server:
    """Answers by path; notes what was asked."""

    address: str
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    posted: list[str] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            made.posted.append(self.rfile.read(length).decode())
            self.do_GET()

        def do_GET(self) -> None:
            made.asked.append(self.path)
            status, headers, body = made.answers.get(urlsplit(self.path).path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        made = Server(f"http://127.0.0.1:{http.server_address[1]}")
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield made
        http.shutdown()


HTML = {"Content-Type": "text/html; charset=utf-8"}


def open_web() -> ToolContext:
    return ToolContext(now=NOW, web=Web(page_text, timeout=5, public_only=False))


def fetch(url: str) -> str:
    return fetch_page.call({"url": url}, open_web())


def test_a_page_becomes_text(server: Server) -> None:
    page = (
        "<html><head><title>Ferries</title><script>track()</script></head><body><nav>Home</nav>"
        "<main><h1>Times</h1><p>The ferry leaves at 9&nbsp;am &mdash; Ørsta.</p></main></body>"
    )
    server.answers["/ferry"] = (200, HTML, page.encode())
    text = fetch(f"{server.address}/ferry")
    assert "The ferry leaves at 9" in text
    assert "Ørsta" in text
    assert "track()" not in text
    assert text.startswith(server.address)


def test_redirects_are_followed_a_few_times(server: Server) -> None:
    server.answers["/a"] = (302, {"Location": "/b"}, b"")
    server.answers["/b"] = (200, {"Content-Type": "text/plain"}, b"arrived")
    server.answers["/loop"] = (302, {"Location": "/loop"}, b"")
    assert "arrived" in fetch(f"{server.address}/a")
    with pytest.raises(ToolError, match="redirects more than"):
        fetch(f"{server.address}/loop")
    assert server.asked.count("/loop") <= 6


def test_a_page_is_bounded(server: Server) -> None:
    server.answers["/big"] = (200, {"Content-Type": "text/plain"}, b"word " * (MAX_BYTES // 2))
    text = fetch(f"{server.address}/big")
    assert len(text) <= MAX_BYTES + 100
    assert text.endswith("[… the page goes on]")


def test_a_page_that_unpacks_to_far_more_is_bounded_too(server: Server) -> None:
    packed = gzip.compress(b"word " * (MAX_BYTES * 8))
    headers = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
    server.answers["/bomb"] = (200, headers, packed)
    assert len(fetch(f"{server.address}/bomb")) <= MAX_BYTES + 100


def test_a_body_that_trickles_ends_at_the_deadline() -> None:
    class Trickle(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(100):
                    self.wfile.write(b"drop ")
                    self.wfile.flush()
                    time.sleep(0.05)

        def log_message(self, format: str, *arguments: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Trickle) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        web = Web(page_text, timeout=0.5, public_only=False)
        text = web.page(f"http://127.0.0.1:{http.server_address[1]}/").text
        http.shutdown()
    assert text.startswith("drop")
    assert text.count("drop") < 100
    assert text.endswith("[… the page goes on]")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, {}, b""), "404"),
        ((500, HTML, b"oops"), "500"),
        ((200, {"Content-Type": "application/pdf"}, b"%PDF-1.7"), "not a page of text"),
        ((200, {"Content-Type": "text/plain"}, b"\x00\x01\x02\x03" * 200), "page"),
    ],
)
def test_what_is_no_page_is_said(
    server: Server, answer: tuple[int, dict[str, str], bytes], said: str
) -> None:
    server.answers["/x"] = answer
    with pytest.raises(ToolError) as caught:
        fetch(f"{server.address}/x")
    assert said in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://0.0.0.0/",
        "http://10.1.2.3/",
        "http://192.168.0.1/admin",
        "http://172.16.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::ffff:127.0.0.1]/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b:1::a00:1]/",
        "http://[::127.0.0.1]/",
        "http://[::ffff:0:10.0.0.1]/",
        "http://[2002:7f00:1::]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://user:secret@example.com/",
        "file:///etc/passwd",
        "ftp://example.com/",
        "javascript:alert(1)",
        "http://",
        "http://[",
    ],
)
def test_only_public_addresses(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_proxy(monkeypatch)
    connections: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _self, where: connections.append(where))
    with pytest.raises(ToolError):
        Web(page_text, timeout=2).page(url)
    assert connections == []


def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_redirect_to_a_private_address_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_proxy(monkeypatch)
    server.answers["/out"] = (302, {"Location": "http://10.0.0.1/secret"}, b"")
    real = Web._address

    def first_hop_only(self: Web, target: object, deadline: float) -> str:
        hop = str(target)
        return "127.0.0.1" if hop.startswith(server.address) else real(self, target, deadline)  # type: ignore[arg-type]

    monkeypatch.setattr(Web, "_address", first_hop_only)
    with pytest.raises(ToolError, match="not a public address"):
        Web(page_text, timeout=5).page(f"{server.address}/out")


def test_the_checked_address_is_the_one_that_is_used(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_proxy(monkeypatch)
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    monkeypatch.setattr("jarvis.tools.network._resolve", lambda *_: next(answers))
    monkeypatch.setattr("jarvis.tools.network._refuse_private", lambda *_: None)
    server.answers["/x"] = (200, {"Content-Type": "text/plain"}, b"pinned")
    port = urlsplit(server.address).port
    assert Web(page_text, timeout=5).page(f"http://example.com:{port}/x").text == "pinned"


PLACE = {"name": "Oslo", "country": "Norway", "latitude": 59.9, "longitude": 10.7}
FORECAST = {
    "current": {
        "time": "2026-11-30T12:00",
        "temperature_2m": -2.5,
        "apparent_temperature": -6.0,
        "relative_humidity_2m": 80,
        "weather_code": 71,
        "wind_speed_10m": 9.1,
    },
    "current_units": {"temperature_2m": "°C", "wind_speed_10m": "km/h"},
    "daily": {
        "time": ["2026-11-30"],
        "weather_code": [73],
        "temperature_2m_max": [-1.0],
        "temperature_2m_min": [-7.5],
        "precipitation_sum": [4.2],
    },
    "daily_units": {"temperature_2m_max": "°C", "precipitation_sum": "mm"},
}


@pytest.fixture
def open_meteo(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(weather_module, "GEOCODING", f"{server.address}/search")
    monkeypatch.setattr(weather_module, "FORECAST", f"{server.address}/forecast")
    server.answers["/search"] = (200, {}, json.dumps({"results": [PLACE]}).encode())
    server.answers["/forecast"] = (200, {}, json.dumps(FORECAST).encode())
    return server


def test_the_weather(open_meteo: Server) -> None:
    text = weather.call(weather.check({"place": "Oslo", "days": "99"}), open_web())
    assert "Oslo, Norway, 2026-11-30T12:00: light snow, -2.5 °C (feels like -6.0)" in text
    assert "2026-11-30: snow, -7.5 to -1.0 °C, 4.2 mm" in text
    asked = parse_qs(urlsplit(open_meteo.asked[1]).query)
    assert asked["forecast_days"] == ["7"]
    assert asked["latitude"] == ["59.9"]


def test_a_place_that_nobody_knows(open_meteo: Server) -> None:
    open_meteo.answers["/search"] = (200, {}, b"{}")
    with pytest.raises(ToolError, match="no place called"):
        weather.call({"place": "Xyzzy"}, open_web())


@pytest.mark.parametrize("body", [b"{}", b"[]", b"not json"])
def test_a_forecast_that_makes_no_sense(open_meteo: Server, body: bytes) -> None:
    open_meteo.answers["/forecast"] = (200, {}, body)
    with pytest.raises(ToolError):
        weather.call({"place": "Oslo"}, open_web())


def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    without_proxy(monkeypatch)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize(
    "use",
    [
        lambda context: weather.call({"place": "Oslo"}, context),
        lambda context: fetch_page.call({"url": "https://example.com"}, context),
    ],
)
def test_without_network_it_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, use: Callable[[ToolContext], str]
) -> None:
    _no_network(monkeypatch)
    with pytest.raises(ToolError) as caught:
        use(ToolContext(now=NOW, web=Web(page_text, timeout=5)))
    assert "no network" in caught.value.message
    assert "\n" not in caught.value.message


RESULTS = """<div class='body'><h2><a>Ferry times</a></h2><a href='https://example.com/f'>All</a></div>
<div class='body'><h2><a>Boats</a></h2><a href='https://example.com/b'>Some boats</a></div>"""


@pytest.fixture
def duckduckgo(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The search engine's address is the scripted server's; its real client talks to it."""
    from ddgs.engines.duckduckgo import Duckduckgo

    monkeypatch.setattr(Duckduckgo, "search_url", f"{server.address}/html/")
    return server


def test_the_web_search_reads_the_engines_page(duckduckgo: Server) -> None:
    duckduckgo.answers["/html/"] = (200, HTML, f"<html><body>{RESULTS}</body></html>".encode())
    text = web_search.call({"query": "ferry times"}, open_web())
    assert "https://example.com/f" in text
    assert "Ferry times" in text
    assert parse_qs(duckduckgo.posted[0])["q"] == ["ferry times"]


@pytest.mark.parametrize("answer", [(202, HTML, b"<html>anomaly</html>"), (429, {}, b""),
                                    (200, HTML, b"<html><body></body></html>")])  # fmt: skip
def test_an_engine_that_refuses_or_finds_nothing_is_one_line(
    duckduckgo: Server, answer: tuple[int, dict[str, str], bytes]
) -> None:
    duckduckgo.answers["/html/"] = answer
    text = web_search.call({"query": "ferry"}, open_web())
    assert "returned nothing" in text
    assert "\n" not in text


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/html/", "http://nowhere.invalid/html/"])
def test_a_search_without_a_network_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    from ddgs.engines.duckduckgo import Duckduckgo

    monkeypatch.setattr(Duckduckgo, "search_url", address)
    with pytest.raises(ToolError) as caught:
        web_search.call({"query": "ferry"}, open_web())
    assert "no network" in caught.value.message
    assert "\n" not in caught.value.message
