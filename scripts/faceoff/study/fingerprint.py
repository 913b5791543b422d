"""A hash of the code that a program runs: its import closure in scripts/, without comments, docstrings, layout."""

import ast
from functools import cache
from pathlib import Path

from faceoff.errors import ConfigError
from faceoff.files import sha256_text

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SCRIPTS = Path(__file__).resolve().parents[2]


def fingerprint(program: str, *modules: str) -> str:
    """Return 16 digits of the SHA-256 over the closure of scripts/{program}.py and `modules`, imported by name.

    An edit of a comment, a docstring or the layout leaves it as it is; an edit of any code that can run changes it.
    Imports inside functions count. Raises ConfigError for a file that does not exist or is no Python.
    """
    parts = [f"{path.relative_to(SCRIPTS)}\n{normalised_source(path)}" for path in closure(program, *modules)]
    return sha256_text("\n".join(parts))[:16]


def closure(program: str, *modules: str) -> list[Path]:
    """Return the files under scripts/ that the program and the modules can import, sorted by path."""
    found: set[Path] = set()
    waiting = [SCRIPTS / f"{program}.py", *(_required_module(module) for module in modules)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(_imported_files(path))
    return sorted(found)


@cache
def normalised_source(path: Path) -> str:
    """Return a file's code through `ast.unparse`, its docstrings taken out."""
    tree = _parse(path)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


@cache
def _imported_files(path: Path) -> tuple[Path, ...]:
    names: set[str] = set()
    for node in ast.walk(_parse(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    files = (_module_file(name) for name in names)
    return tuple(file for file in files if file is not None)


def _required_module(module: str) -> Path:
    file = _module_file(module)
    if file is None:
        raise ConfigError(f"scripts/{module.replace('.', '/')}.py: no such module; a card's name is its module's name")
    return file


def _module_file(module: str) -> Path | None:
    path = SCRIPTS.joinpath(*module.split(".")).with_suffix(".py")
    return path if path.is_file() else None


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.relative_to(SCRIPTS.parent)}: cannot be read as Python: {error}") from error
