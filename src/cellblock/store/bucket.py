"""Large objects in a bucket: S3, Google Cloud Storage, Azure and what else obstore speaks to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from cellblock.errors import StoreError
from cellblock.hosting.unique import unique_word
from cellblock.store.places import Stray, no_memory

try:
    import obstore
    from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
    from obstore.store import from_url
except ImportError as error:
    raise StoreError(f"a bucket needs the package obstore: {error}", hint='pip install "cellblock[bucket]"') from None

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_MISSING = (NotFoundError, FileNotFoundError)
_DENIED = (PermissionDeniedError, UnauthenticatedError, PermissionError)
_ERRORS = (BaseError, OSError, ValueError)
"""obstore raises some of its errors as Python's own."""
_STATUS = re.compile(r"status(?: code)?:? (\d{3})\b", re.IGNORECASE)
_PATIENCE = timedelta(seconds=10)
"""How long a bucket that does not answer is asked again."""
_HINT = "credentials, region and endpoint come from the provider's own variables, such as AWS_ACCESS_KEY_ID"

_Result = TypeVar("_Result")


class BucketPlace:
    """A bucket, or what is below a prefix of it. Credentials come from where the provider's own tools take them."""

    def __init__(self, bucket: ObjectStore, shown: str) -> None:
        self._bucket = bucket
        self._shown = shown

    @classmethod
    def at(cls, url: str) -> BucketPlace:
        """The bucket of a URL without credentials: `s3://name/prefix`, `gs://…`, `az://…`."""
        what = f"objects cannot be kept in {url}"
        bucket = _told(what, lambda: from_url(url, retry_config={"retry_timeout": _PATIENCE}))
        if bucket is None:
            raise StoreError(f"{what}: it is missing")
        return cls(bucket, url)

    def __str__(self) -> str:
        return self._shown

    def put(self, prefix: str, body: bytes) -> str:
        key = f"{prefix}.{unique_word()}"
        what = f"an object cannot be written to {self._shown}"
        if _told(what, lambda: obstore.put(self._bucket, key, body, mode="create")) is None:
            raise StoreError(f"{what}: it is missing")
        return key

    def get(self, key: str) -> bytes | None:
        what = f"an object cannot be read from {self._shown}"
        return _told(what, lambda: bytes(obstore.get(self._bucket, key).bytes()))

    def delete(self, key: str) -> None:
        _told(f"an object cannot be deleted from {self._shown}", lambda: obstore.delete(self._bucket, key))

    def listed(self, prefix: str) -> Iterator[Stray]:
        now = datetime.now(UTC)
        pages = iter(obstore.list(self._bucket, prefix=prefix))
        while (page := _told(f"{self._shown} cannot be listed", lambda: next(pages, None))) is not None:
            for one in page:
                yield Stray(one["path"], (now - one["last_modified"]).total_seconds())


def _told(what: str, act: Callable[[], _Result]) -> _Result | None:
    """Security border: act by the driver, whose errors may repeat a provider's words, and with them credentials.

    None: there is no such object. StoreError, in words of our own, begins with `what`.
    """
    try:
        return act()
    except _MISSING:
        return None
    except MemoryError:
        raise no_memory(what) from None
    except _ERRORS as error:
        status = _STATUS.search(str(error))
        if isinstance(error, _DENIED) or (status is not None and status[1] in ("401", "403")):
            why = "its provider refuses what it was given as credentials"
        elif status is not None:
            why = f"its provider answers {status[1]}"
        else:
            why = f"its provider cannot be reached, or breaks off ({type(error).__name__})"
    raise StoreError(f"{what}: {why}", hint=_HINT)
