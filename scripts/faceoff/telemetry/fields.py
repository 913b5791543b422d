"""Fields that are read one by one, so that one that fails costs only itself."""

from collections.abc import Callable

Values = dict[str, float | None]


def read_field(
    values: Values,
    missing: dict[str, str],
    name: str,
    read: Callable[[], float | None],
    errors: tuple[type[Exception], ...],
) -> None:
    """Set values[name] to what `read` returns, or to None where it raises one of `errors`.

    Why a field is None is kept in `missing`, once, as the field's first error.
    """
    try:
        value = read()
        values[name] = None if value is None else float(value)
    except errors as error:
        values[name] = None
        missing.setdefault(name, " ".join(str(error).split()) or type(error).__name__)
