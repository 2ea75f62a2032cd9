"""What Codex has to be told so that it asks this endpoint and nobody else."""

import json
from pathlib import Path
from typing import Any

MODELS = ("scripted", "scripted-mini")
CONTEXT_TOKENS = 272_000

_INSTRUCTIONS = "You are a scripted model. Carry out the script in the last user message."
_EFFORTS = ("low", "medium", "high")


def catalog() -> dict[str, Any]:
    """Return a catalogue of `MODELS` for Codex: short instructions, and the patch tool offered."""
    return {"models": [_model(slug, priority) for priority, slug in enumerate(MODELS)]}


def _model(slug: str, priority: int) -> dict[str, Any]:
    # The fields that 0.163 and 0.171 cannot do without, and those that decide which tools are offered.
    return {
        "slug": slug,
        "display_name": slug,
        "description": "Does what the prompt says.",
        "default_reasoning_level": "medium",
        "supported_reasoning_levels": [{"effort": effort, "description": effort} for effort in _EFFORTS],
        "shell_type": "unified_exec",
        "visibility": "list",
        "supported_in_api": True,
        "priority": priority,
        "availability_nux": None,
        "upgrade": None,
        "base_instructions": _INSTRUCTIONS,
        "supports_reasoning_summaries": True,
        "default_reasoning_summary": "auto",
        "support_verbosity": False,
        "default_verbosity": None,
        "apply_patch_tool_type": "freeform",
        "truncation_policy": {"mode": "tokens", "limit": 10_000},
        "supports_parallel_tool_calls": True,
        "context_window": CONTEXT_TOKENS,
        "max_context_window": CONTEXT_TOKENS,
        "experimental_supported_tools": [],
        "input_modalities": ["text", "image"],
    }


def codex_config(
    base_url: str,
    *,
    catalog_path: Path | None = None,
    request_max_retries: int = 0,
    stream_max_retries: int = 2,
    stream_idle_timeout_ms: int = 300_000,
) -> str:
    """Return a `config.toml` under which Codex asks `base_url` (ending in `/v1`) for every turn, with no account.

    Without `catalog_path` Codex knows nothing about the model: it warns about that with each thread and offers no patch
    tool.
    """
    lines = [
        f"model = {_quote(MODELS[0])}",
        'model_provider = "scripted"',
        *([f"model_catalog_json = {_quote(str(catalog_path))}"] if catalog_path else []),
        "check_for_update_on_startup = false",
        "",
        "[model_providers.scripted]",
        'name = "scripted"',
        f"base_url = {_quote(base_url)}",
        'wire_api = "responses"',
        "supports_websockets = false",
        f"request_max_retries = {request_max_retries}",
        f"stream_max_retries = {stream_max_retries}",
        f"stream_idle_timeout_ms = {stream_idle_timeout_ms}",
        "",
        "[features]",
        "# One login shell for each thread that starts; a slow one makes a hundred threads cost a minute.",
        "shell_snapshot = false",
        "",
        "[analytics]",
        "enabled = false",
    ]
    return "\n".join(lines) + "\n"


def write_codex_home(
    home: Path,
    base_url: str,
    *,
    request_max_retries: int = 0,
    stream_max_retries: int = 2,
    stream_idle_timeout_ms: int = 300_000,
) -> Path:
    """Make `home` a `CODEX_HOME` that asks this endpoint, and return the path of its `config.toml`.

    Errors: `FileExistsError` when there is a `config.toml` already, because it may be somebody's own.
    """
    home.mkdir(parents=True, exist_ok=True)
    models = home / "scripted-models.json"
    config = home / "config.toml"
    text = codex_config(
        base_url,
        catalog_path=models,
        request_max_retries=request_max_retries,
        stream_max_retries=stream_max_retries,
        stream_idle_timeout_ms=stream_idle_timeout_ms,
    )
    with config.open("x", encoding="utf-8") as file:
        file.write(text)
    models.write_text(json.dumps(catalog(), indent=2), encoding="utf-8")
    return config


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is a TOML basic string
