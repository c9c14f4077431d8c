"""The network for tools: public addresses only, bounded in time, size and redirects.

A page that the model asks for must not reach what only this machine can reach. Every host is
resolved here, every address is checked, and the connection goes to the address that was
checked, so that a second answer of the name server cannot change it.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jarvis.tools.protocol import Page
from jarvis.tools.schema import ToolError

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 2 * 1024 * 1024
"""The most that is read of one answer."""
MAX_REDIRECTS = 5
_AGENT = "jarvis-assistant (a personal assistant; one page at its user's request)"
_CUT = "[… the page goes on]"
_TRANSLATED = tuple(
    ipaddress.IPv6Network(network) for network in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)
"""IPv4-compatible, IPv4-translated and NAT64 addresses (RFC 4291, RFC 7915, RFC 6052)."""
_LOCAL_TRANSLATED = ipaddress.IPv6Network("64:ff9b:1::/48")
"""NAT64 for use inside one network (RFC 8215)."""
_TEXTUAL = ("text/", "application/json", "application/xml", "application/xhtml+xml")

TextReader = Callable[[bytes, str], str]
"""Makes text of a body, given its media type with parameters."""


@dataclass(frozen=True, slots=True)
class _Answer:
    url: str
    media_type: str
    body: bytes
    cut: bool


class Web:
    """The ``WebPort`` over httpx and, for searching, ddgs (DuckDuckGo).

    Args:
        read: makes text of a page.
        timeout: seconds for one call, redirects included.
        public_only: refuse addresses that are not public; tests talk to a server of their own.
    """

    def __init__(self, read: TextReader, timeout: float = 20.0, public_only: bool = True) -> None:
        self._read = read
        self._timeout = timeout
        self._public_only = public_only

    def json(self, url: str, parameters: Mapping[str, str]) -> Any:
        """Fetches JSON.

        Raises:
            ToolError: no network, an error of the server, or no JSON.
        """
        import httpx

        answer = self._get(str(httpx.URL(url, params=dict(parameters))))
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise ToolError(f"{httpx.URL(url).host} sent something that is not JSON") from None

    def page(self, url: str) -> Page:
        """Fetches a page as text.

        Raises:
            ToolError: no network, an address that is not public, an error of the server, or
                something that is not text.
        """
        answer = self._get(url if "://" in url else f"https://{url}")
        kind = answer.media_type.split(";")[0].strip().lower()
        if kind and not kind.startswith(_TEXTUAL):
            raise ToolError(f"{answer.url} is {kind}, not a page of text")
        text = self._read(answer.body, answer.media_type).strip()
        return Page(answer.url, kind, f"{text}\n\n{_CUT}" if answer.cut else text)

    def search(self, query: str, limit: int) -> Sequence[Mapping[str, str]]:
        """Searches with DuckDuckGo.

        Raises:
            ToolError: no network, or the search engine refused.
        """
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException

        try:
            found = DDGS(timeout=int(self._timeout)).text(
                query, max_results=limit, backend="duckduckgo"
            )
        except DDGSException as error:
            text = " ".join(str(error).split())
            if "No results" in text:
                return []
            if "resolving DNS" in text or "error sending request" in text:
                raise ToolError("the web search is not reachable: no network?") from error
            raise ToolError(f"the web search failed: {text[:200]}") from error
        return [
            {
                "title": str(entry.get("title", "")),
                "url": str(entry.get("href", "")),
                "snippet": str(entry.get("body", "")),
            }
            for entry in found
        ]

    def _get(self, url: str) -> _Answer:
        """Follows redirects by itself, so that every hop is checked."""
        import httpx

        deadline = time.monotonic() + self._timeout
        try:
            target = httpx.URL(url)
            with httpx.Client(
                timeout=httpx.Timeout(self._timeout, connect=min(5.0, self._timeout)),
                headers={"User-Agent": _AGENT},
            ) as client:
                for _ in range(MAX_REDIRECTS + 1):
                    with self._open(client, target, deadline) as response:
                        if not response.has_redirect_location:
                            return self._body(response, target, deadline)
                        target = target.join(response.headers["Location"])
        except httpx.InvalidURL:
            raise ToolError(f"{url!r} is not a web address") from None
        except httpx.TimeoutException as error:
            raise ToolError(f"{_host(url)} did not answer in {self._timeout:g} s") from error
        except httpx.HTTPError as error:
            raise ToolError(f"{_host(url)} is not reachable: no network?") from error
        raise ToolError(f"{_host(url)} redirects more than {MAX_REDIRECTS} times")

    @contextmanager
    def _open(
        self, client: httpx.Client, target: httpx.URL, deadline: float
    ) -> Iterator[httpx.Response]:
        if target.scheme not in {"http", "https"} or not target.host:
            raise ToolError(f"only http and https addresses can be fetched, not {str(target)!r}")
        if target.userinfo:
            raise ToolError("an address with a password in it is not fetched")
        address = self._address(target, deadline)
        request = client.build_request(
            "GET",
            target.copy_with(host=address) if address else target,
            headers={"Host": target.netloc.decode("ascii")},
            extensions={"sni_hostname": target.host} if address else {},
        )
        response = client.send(request, stream=True)
        try:
            yield response
        finally:
            response.close()

    def _address(self, target: httpx.URL, deadline: float) -> str:
        """The checked address to connect to; empty where a proxy does the connecting."""
        if not self._public_only:
            return ""
        host = target.host
        if _proxied(target.scheme, host):
            _refuse_local_names(host)
            return ""
        addresses = _resolve(
            host,
            target.port or (443 if target.scheme == "https" else 80),
            deadline - time.monotonic(),
        )
        for address in addresses:
            _refuse_private(address, host)
        return addresses[0]

    def _body(self, response: httpx.Response, target: httpx.URL, deadline: float) -> _Answer:
        if response.status_code >= 400:
            raise ToolError(
                f"{target.host} answered {response.status_code} {response.reason_phrase}"
            )
        body, cut = b"", False
        for piece in response.iter_bytes():
            body += piece
            cut = len(body) > MAX_BYTES or time.monotonic() > deadline
            if cut:
                break
        kind = response.headers.get("Content-Type", "")
        return _Answer(str(target), kind, body[:MAX_BYTES], cut)


def _host(url: str) -> str:
    return url.split("://", 1)[-1].split("/", 1)[0].rpartition("@")[2] or url


def _proxied(scheme: str, host: str) -> bool:
    proxies = urllib.request.getproxies()
    return bool(proxies.get(scheme) or proxies.get("all")) and not urllib.request.proxy_bypass(host)


def _refuse_local_names(host: str) -> None:
    """The proxy resolves names; what is plainly local is refused before it is asked."""
    try:
        _refuse_private(str(ipaddress.ip_address(host)), host)
    except ValueError:
        lowered = host.rstrip(".").lower()
        if "." not in lowered or lowered.endswith((".local", ".localhost", ".internal")):
            raise ToolError(f"{host} is not a public address") from None


def _refuse_private(address: str, host: str) -> None:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        parsed = parsed.ipv4_mapped or parsed.sixtofour or _embedded(parsed) or parsed
    local = isinstance(parsed, ipaddress.IPv6Address) and (
        parsed.is_site_local or parsed in _LOCAL_TRANSLATED
    )
    if local or not parsed.is_global or parsed.is_multicast:
        raise ToolError(f"{host} is not a public address")


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that one of ``_TRANSLATED`` ends with: a translator would go there."""
    if any(address in network for network in _TRANSLATED):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _resolve(host: str, port: int, seconds: float) -> list[str]:
    """All addresses of ``host``, in bounded time (``getaddrinfo`` itself has no limit)."""
    found: list[str] = []

    def ask() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        found.extend(dict.fromkeys(str(entry[4][0]) for entry in entries))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(max(min(seconds, 5.0), 0.0))
    if not found:
        raise ToolError(f"{host} is not reachable: no network, or no such name")
    return list(found)
