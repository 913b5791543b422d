"""The fingerprint of code: what can change a result changes it, what cannot does not."""

from pathlib import Path

import pytest

from faceoff.study import fingerprint as module

MODULES = ("faceoff.training.pytorch", "faceoff.benchmarks.ncf")


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small scripts/ folder: a program, a library it imports inside a function, two benchmarks."""
    files = {
        "train.py": '"""Doc."""\nfrom lib.loop import run\n\ndef main():\n    import lib.late\n    run(lib.late)\n',
        "lib/__init__.py": "",
        "lib/loop.py": "def run(x):\n    '''Doc.'''\n    return x  # comment\n",
        "lib/late.py": "def helper():\n    return 1\n",
        "lib/one.py": "def step():\n    return 1\n",
        "lib/two.py": "def step():\n    return 2\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(module, "SCRIPTS", tmp_path)
    return tmp_path


def hashed(*modules: str) -> str:
    module.normalised_source.cache_clear()
    module._imported_files.cache_clear()
    return module.fingerprint("train", *modules)


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("lib/loop.py", "# comment", "# another", False),
        ("lib/loop.py", "Doc.", "Another doc.", False),
        ("lib/loop.py", "    '''Doc.'''\n", "", False),
        ("train.py", "\n\ndef", "\n\n\n\ndef", False),
        ("lib/loop.py", "return x", "return (x)", False),
        ("lib/loop.py", "return x", "return x + 1", True),
        ("lib/late.py", "return 1", "return 2", True),
        ("lib/one.py", "step", "update", True),
        ("lib/two.py", "return 2", "return 3", False),
    ],
)
def test_what_changes_the_fingerprint(scripts: Path, file: str, old: str, new: str, changes: bool):
    before = hashed("lib.one")
    path = scripts / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert (hashed("lib.one") != before) is changes


def test_the_closure_of_training_is_narrow():
    files = {path.relative_to(module.SCRIPTS).as_posix() for path in module.closure("train_model", *MODULES)}
    assert {"train_model.py", "faceoff/training/loop.py", "faceoff/benchmarks/ncf.py"} <= files
    assert "faceoff/benchmarks/resnet50.py" not in files
    assert "faceoff/training/tensorflow.py" not in files
    assert not {name for name in files if name.startswith(("faceoff/figures", "faceoff/tables"))}
    assert "faceoff/study/project.py" not in files
