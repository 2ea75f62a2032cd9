"""What every refusal must look like."""

from typing import Any

import httpx

from termald.api.problems import PROBLEMS


def problem_of(response: httpx.Response, slug: str) -> dict[str, Any]:
    """Return the problem document, having checked that it is this one and well-formed."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    document: dict[str, Any] = response.json()
    kind = PROBLEMS[slug]
    assert document["type"] == f"urn:termald:problem:{slug}", document
    assert document["status"] == response.status_code == kind.status
    assert document["title"] == kind.title
    assert document["detail"]
    assert document["instance"] == response.request.url.path
    assert isinstance(document["retryable"], bool)
    assert document.keys() <= {"type", "title", "status", "detail", "instance", "retryable", "codex", "errors"}
    return document
