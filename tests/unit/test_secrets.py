"""Secrets are recognised by their shape and check digits; what only looks like one is not."""

from __future__ import annotations

import pytest

from jarvis.security import secrets

# Put together at run time, so that no scanner takes this file for a leak.
SECRETS = [
    ("API key", "my key is sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0"),
    ("API key", "AKIA" + "IOSFODNN7EXAMPLE is for the bucket"),
    ("API key", "AIza" + "SyA1234567890abcdefghijklmnopqrstuv"),
    ("API key", "api_key=" + "9f8a7b6c5d4e3f2a1b0c9d8e"),
    ("token", "export GITHUB_TOKEN=ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"),
    ("token", "glpat-" + "xYz123abcDEF456ghiJKL"),
    ("token", "Authorization: Bearer " + "abcDEF123456ghiJKL7890mnop"),
    ("token", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".c2lnbmF0dXJl"),
    ("password", "my wifi password is hunter2!"),
    ("password", "The password for the NAS is Tr0ub4dor&3"),
    ("password", "pwd: correct-horse-9"),
    ("password", "my password is 'swordfish'"),
    ("password", "postgresql://me:s3cret@db.example/app"),
    ("card number", "charge it to 4111 1111 1111 1111 please"),
    ("card number", "5500-0000-0000-0004"),
    ("card number", "amex 378282246310005"),
    ("IBAN", "transfer to DE89 3704 0044 0532 0130 00"),
    ("IBAN", "GB82WEST12345698765432"),
    ("private key", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----"),
    ("PIN", "my bank PIN is 4711"),
    ("social security number", "my SSN is 078-05-1120"),
]

HARMLESS = [
    "I changed my bank password yesterday.",
    "What is the wifi password at the cabin?",
    "My admin password for the NAS is in the password manager.",
    "The password is required.",
    "my password is too weak",
    "Reminder: the Netflix password is with my brother.",
    "4111 1111 1111 1112 has a wrong check digit",
    "DE89 3704 0044 0532 0130 01",
    "order 1234567890123456",
    "commit 9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a broke it",
    "call me on +44 20 7946 0958",
    "0000 0000 0000 0000",
    "v1.2.3 and 3.14159265358979",
    "Paris 12 May 2026 12:30",
    "a token of appreciation",
    "the secret of her cake is patience",
    "https://example.org/lemon-cake",
    "550e8400-e29b-41d4-a716-446655440000",
]


@pytest.mark.parametrize(("kind", "text"), SECRETS)
def test_a_secret_is_found(kind: str, text: str) -> None:
    assert kind in {secret.kind for secret in secrets.find(text)}


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_text_is_not(text: str) -> None:
    assert secrets.find(text) == []


def test_redacting_leaves_the_rest() -> None:
    assert secrets.redact("pay with 4111 1111 1111 1111 today") == "pay with [card number] today"
    assert secrets.redact("nothing here") == "nothing here"


@pytest.mark.parametrize(("_", "text"), SECRETS)
def test_a_redacted_text_holds_no_secret(_: str, text: str) -> None:
    assert secrets.find(secrets.redact(text)) == []
