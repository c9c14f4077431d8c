"""Who may talk to the engine on TCP: programs and pages of this machine."""

from __future__ import annotations

import fnmatch
import ipaddress
import socket
import urllib.parse


class Origins:
    """Which ``Host`` and ``Origin`` headers a TCP listener takes: those of this machine.

    The same as Ollama's: local pages and application schemes, and what ``OLLAMA_ORIGINS`` adds.
    """

    _SCHEMES = ("app", "file", "tauri", "vscode-webview", "vscode-file")

    def __init__(self, host: str, extra: str = "") -> None:
        names = (each.strip().rstrip("/") for each in extra.split(","))
        # Only "*" stands for other characters, as with Ollama.
        self.extra = [each.replace("[", "[[]").replace("?", "[?]") for each in names if each]
        try:
            self.loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            self.loopback = host == "localhost"

    def host_allowed(self, header: str) -> bool:
        """Whether a request for this ``Host`` is meant for us.

        A page can point a name of its own at this machine, but no name that only a private
        network has (what containers call their host, too), and no browser leaves it out.
        """
        if not self.loopback or not header:
            return True
        try:
            name = urllib.parse.urlsplit("//" + header).hostname or ""
        except ValueError:
            return False
        if _is_local(name) or name == socket.gethostname().lower():
            return True
        return name.endswith((".local", ".internal")) or _is_private(name)

    def origin_allowed(self, header: str, host: str) -> bool:
        """Whether a page of this ``Origin`` may talk to us. No header: it is no page."""
        if not header:
            return True
        if any(fnmatch.fnmatchcase(header.rstrip("/"), each) for each in self.extra):
            return True
        try:
            parts = urllib.parse.urlsplit(header)
        except ValueError:
            return False
        if parts.scheme in self._SCHEMES:
            return True
        return parts.scheme in {"http", "https"} and _is_local(parts.hostname or "")


def _is_local(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _is_private(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_private
    except ValueError:
        return False
