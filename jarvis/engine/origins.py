"""Who may talk to the engine on TCP: programs and pages of this machine."""

from __future__ import annotations

import ipaddress
import socket
import urllib.parse


class Origins:
    """Which ``Host`` and ``Origin`` headers a TCP listener takes: those of this machine.

    The same as Ollama's: local pages and application schemes, and what ``OLLAMA_ORIGINS`` adds.
    """

    _SCHEMES = ("app", "file", "tauri", "vscode-webview", "vscode-file")

    def __init__(self, host: str, extra: str = "") -> None:
        self.extra = [each.strip().rstrip("/") for each in extra.split(",") if each.strip()]
        try:
            self.loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            self.loopback = host == "localhost"

    def host_allowed(self, header: str) -> bool:
        """Whether a request for this ``Host`` is meant for us."""
        if not self.loopback:
            return True
        name = urllib.parse.urlsplit("//" + header).hostname or ""
        return _is_local(name) or name == socket.gethostname().lower()

    def origin_allowed(self, header: str, host: str) -> bool:
        """Whether a page of this ``Origin`` may talk to us. No header: it is no page."""
        if not header:
            return True
        if header.rstrip("/") in self.extra or "*" in self.extra:
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
