"""Large objects in a bucket: S3, Google Cloud Storage, Azure and what else obstore speaks to."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cellblock.errors import StoreError
from cellblock.store.places import Stray

try:
    import obstore
    from obstore.exceptions import BaseError, NotFoundError
    from obstore.store import from_url
except ImportError as error:
    raise StoreError(f"a bucket needs the package obstore: {error}", hint='pip install "cellblock[bucket]"') from None

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_MISSING = (NotFoundError, FileNotFoundError)
_ERRORS = (BaseError, OSError)
"""obstore raises some of its errors as Python's own."""


class BucketPlace:
    """A bucket, or what is below a prefix of it. Credentials come from where the provider's own tools take them."""

    def __init__(self, bucket: ObjectStore, shown: str) -> None:
        self._bucket = bucket
        self._shown = shown

    @classmethod
    def at(cls, url: str) -> BucketPlace:
        """The bucket of a URL: `s3://name/prefix`, `gs://…`, `az://…`."""
        try:
            return cls(from_url(url), url)
        except (*_ERRORS, ValueError) as error:
            raise StoreError(f"objects cannot be kept in {url}: {error}") from error

    def __str__(self) -> str:
        return self._shown

    def put(self, prefix: str, body: bytes) -> str:
        key = f"{prefix}.{secrets.token_hex(8)}"
        try:
            obstore.put(self._bucket, key, body, mode="create")
        except _ERRORS as error:
            raise StoreError(f"an object cannot be written to {self._shown}: {error}") from error
        return key

    def get(self, key: str) -> bytes | None:
        try:
            return bytes(obstore.get(self._bucket, key).bytes())
        except _MISSING:
            return None
        except _ERRORS as error:
            raise StoreError(f"an object cannot be read from {self._shown}: {error}") from error

    def delete(self, key: str) -> None:
        try:
            obstore.delete(self._bucket, key)
        except _MISSING:
            return
        except _ERRORS as error:
            raise StoreError(f"an object cannot be deleted from {self._shown}: {error}") from error

    def listed(self, prefix: str) -> Iterator[Stray]:
        now = datetime.now(UTC)
        try:
            for some in obstore.list(self._bucket, prefix=prefix):
                for one in some:
                    yield Stray(one["path"], (now - one["last_modified"]).total_seconds())
        except _ERRORS as error:
            raise StoreError(f"{self._shown} cannot be listed: {error}") from error
