"""Exclusive creation on object stores: a conditional put, which the store itself decides.

`pyarrow.fs` has no conditional put, so this one operation goes through obstore; all others stay with pyarrow.
The options of a pyarrow URI (`s3://key:secret@bucket/path?endpoint_override=...&scheme=http&region=...`) are
translated. Known limit: obstore takes credentials from the URI, the environment or the instance's role, but
not from profiles in `~/.aws`.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import ObjectStore, from_url

from spillway.errors import StateError

SCHEMES = frozenset({"s3", "gs", "gcs", "abfs", "abfss"})
"""Stores with conditional puts that pyarrow opens too."""
CLIENT: Mapping[str, Any] = {"timeout": "30s", "connect_timeout": "5s"}
RETRIES: Mapping[str, Any] = {"max_retries": 3, "retry_timeout": timedelta(seconds=60)}


def open_store(uri: str) -> ObjectStore:
    """The store below this address; names are relative to the address."""
    parts = urlsplit(uri)
    if parts.scheme not in SCHEMES:
        raise StateError(
            f"{uri} cannot hold a checkpoint or a sink: two writers could create the same file there; "
            "use a shared directory, s3://, gs:// or abfs://"
        )
    options = dict(parse_qsl(parts.query))
    plain = uri.partition("?")[0]
    config: dict[str, Any] = {}
    if parts.scheme == "s3":
        plain = f"s3://{parts.hostname or ''}{parts.path}"
        config = _s3_settings(options)
        if parts.username and parts.password:
            config |= {
                "access_key_id": unquote(parts.username),
                "secret_access_key": unquote(parts.password),
            }
    plain = plain.replace("gcs://", "gs://", 1)
    endpoint = str(config.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", ""))
    client = {**CLIENT, "allow_http": endpoint.startswith("http://")}
    try:
        return from_url(plain, config=config, client_options=client, retry_config=RETRIES)  # type: ignore[call-overload, no-any-return]
    except BaseError as error:
        raise StateError(f"cannot open {uri}: {reason(error)}") from error


def put_new(store: ObjectStore, name: str, data: bytes) -> bool:
    """Put an object if there is none of that name; False, and nothing changed, if there is."""
    try:
        obstore.put(store, name, data, mode="create", use_multipart=False)
    except AlreadyExistsError:
        return False
    return True


def reason(error: BaseError) -> str:
    """The first line of an error; the rest is obstore's own structure."""
    return " ".join(str(error).split("\n\nDebug source:")[0].split())


def _s3_settings(options: dict[str, str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if "region" in options:
        settings["region"] = options["region"]
    if "endpoint_override" in options:
        address = options["endpoint_override"]
        settings["endpoint"] = (
            address if "://" in address else f"{options.get('scheme', 'https')}://{address}"
        )
    if options.get("force_virtual_addressing") == "true":
        settings["virtual_hosted_style_request"] = True
    return settings
