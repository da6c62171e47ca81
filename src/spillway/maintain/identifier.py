"""Names in the SQL of DuckDB and SQLite."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
