"""The packages from npm that tests use: exact versions, installed once, by several at once."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from node_packages import SOURCE, node_answers, node_packages, node_run

VERSIONS = Path(__file__).with_name("versions.mjs")


@pytest.mark.long
def test_what_scripts_import_is_what_is_asked_for() -> None:
    wanted = json.loads((SOURCE / "package.json").read_text("utf-8"))["dependencies"]
    assert json.loads(node_run(VERSIONS, *wanted, stdin="ö\n")) == {"found": wanted, "sent": "ö\n"}


def test_the_lock_names_no_place_that_packages_come_from() -> None:
    packages = json.loads((SOURCE / "package-lock.json").read_text("utf-8"))["packages"]
    assert (
        packages.pop("")["dependencies"] == json.loads((SOURCE / "package.json").read_text())["dependencies"]
    )
    for package in packages.values():
        assert package["integrity"].startswith("sha512-")
        assert "resolved" not in package


@pytest.mark.long
def test_what_is_installed_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = node_packages()
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1/")
    monkeypatch.setenv("npm_config_cache", str(folder / "nothing"))
    assert node_packages() == folder
    assert json.loads(node_run(VERSIONS, "ai"))["found"]


async def test_a_script_that_fails_is_told_of(tmp_path: Path) -> None:
    script = tmp_path / "fails.mjs"
    script.write_text("console.error('so it is'); process.exit(3);")
    with pytest.raises(AssertionError, match=re.escape("fails.mjs ended with 3:\nso it is")):
        node_run(script)
    with pytest.raises(AssertionError, match=re.escape("fails.mjs ended with 3:\nso it is")):
        await node_answers(script)


@pytest.mark.long
def test_several_install_at_once(tmp_path: Path) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    source.mkdir()
    (source / "package.json").write_text('{"name": "none", "version": "1.0.0"}')
    (source / "package-lock.json").write_text(
        '{"name": "none", "version": "1.0.0", "lockfileVersion": 3, "packages": {}}'
    )
    with ThreadPoolExecutor(3) as threads:
        installed = [threads.submit(node_packages, source=source, cache=cache) for _ in range(3)]
        (folder,) = {each.result() for each in installed}
    assert [path for path in cache.iterdir() if not path.name.startswith(".")] == [folder]
    assert (folder / "package-lock.json").exists()
    before = sorted(cache.iterdir())
    assert node_packages(source=source, cache=cache) == folder
    assert sorted(cache.iterdir()) == before
