"""What Codex is told about the endpoint."""

import json
import tomllib
from pathlib import Path

import pytest

from termald.scripted_model.config import catalog, codex_config, write_codex_home


def test_the_home_points_at_the_endpoint_and_nowhere_else(tmp_path: Path) -> None:
    home = tmp_path / 'a "quoted" home'
    path = write_codex_home(home, "http://127.0.0.1:5/v1", stream_max_retries=7)
    config = tomllib.loads(path.read_text(encoding="utf-8"))
    provider = config["model_providers"][config["model_provider"]]
    assert provider["base_url"] == "http://127.0.0.1:5/v1"
    assert (provider["stream_max_retries"], provider["request_max_retries"]) == (7, 0)
    assert config["features"]["shell_snapshot"] is False
    models = json.loads(Path(config["model_catalog_json"]).read_text(encoding="utf-8"))
    assert models == catalog()
    assert config["model"] == models["models"][0]["slug"]


def test_a_home_that_has_a_configuration_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('model = "mine"\n', encoding="utf-8")
    with pytest.raises(FileExistsError):
        write_codex_home(tmp_path, "http://127.0.0.1:5/v1")
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
    assert (tmp_path / "config.toml").read_text(encoding="utf-8") == 'model = "mine"\n'


def test_the_catalogue_may_be_left_out() -> None:
    assert "model_catalog_json" not in tomllib.loads(codex_config("http://127.0.0.1:5/v1"))
