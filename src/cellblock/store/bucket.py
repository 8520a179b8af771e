"""Large objects in a bucket: S3, Google Cloud Storage, Azure and what else obstore speaks to."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar, cast

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
    from obstore.store import ClientConfig, ObjectStore

_MISSING = (NotFoundError, FileNotFoundError)
_DENIED = (PermissionDeniedError, UnauthenticatedError, PermissionError)
_ERRORS = (BaseError, OSError, ValueError)
"""obstore raises some of its errors as Python's own."""
_STATUS = re.compile(r"status(?: code)?:? (\d{3})\b", re.IGNORECASE)
_PATIENCE = timedelta(seconds=10)
"""Longest time for which a bucket that does not answer is asked again."""
_ANSWER_SECONDS, _SLOWEST = 10.0, 1 << 20
"""Seconds to wait for an answer, which for a body that is put begin as that is sent: so many bytes a second."""
_PROVIDERS = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE", "ab": "AZURE"}
_CLIENT = (
    "allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only", "pool_idle_timeout",
    "pool_max_idle_per_host", "proxy_url", "proxy_ca_certificate", "proxy_excludes", "randomize_addresses",
    "read_timeout", "timeout", "user_agent",
)  # fmt: skip
"""Options of the client that a provider's variables may set, as AWS_TIMEOUT: it reads none where it is given any."""
_VARIABLES = "come from the provider's own variables, such as AWS_"
_CREDENTIALS = f"credentials {_VARIABLES}ACCESS_KEY_ID"
_PLACE = f"region and endpoint {_VARIABLES}REGION"
_SERVICE = f"see to the service and to the network, and try again; its endpoint and credentials {_VARIABLES}ENDPOINT"

_SPAWN = "start it by multiprocessing's spawn or forkserver, or fork before a bucket is used"
_users: set[int] = set()
"""Processes, of those that forked this one and itself, that have used the driver."""

_Result = TypeVar("_Result")


class BucketPlace:
    """A bucket, or what is below a prefix of it. Credentials come from where the provider's own tools take them."""

    def __init__(self, bucket: ObjectStore, shown: str, slow: Callable[[int], ObjectStore] | None = None) -> None:
        """`slow` opens it for a body of so many bytes, which takes its time."""
        self._bucket = bucket
        self._shown = shown
        self._slow = slow

    @classmethod
    def at(cls, url: str) -> BucketPlace:
        """The bucket of a URL without credentials: `s3://name/prefix`, `gs://…`, `az://…`."""
        what = f"objects cannot be kept in {url}"
        bucket = _by_driver(what, lambda: _opened(url, 0))
        if bucket is None:
            raise StoreError(f"{what}: it is missing")
        return cls(bucket, url, lambda size: _opened(url, size))

    def __str__(self) -> str:
        return self._shown

    def put(self, prefix: str, body: bytes) -> str:
        key = f"{prefix}.{unique_word()}"
        what = f"an object cannot be written to {self._shown}"
        slow = self._slow if len(body) > _SLOWEST else None

        def put() -> object:
            return obstore.put(slow(len(body)) if slow else self._bucket, key, body, mode="create")

        if _by_driver(what, put) is None:
            raise StoreError(f"{what}: it is missing")
        return key

    def has(self, directory: str) -> bool:
        """True: a bucket is the provider's, and no other comes to be in its place."""
        return True

    def get(self, key: str, most: int = sys.maxsize) -> bytes | None:
        what = f"an object cannot be read from {self._shown}"

        def get() -> bytes | None:
            found = obstore.get(self._bucket, key)
            return bytes(found.bytes()) if found.meta["size"] <= most else None

        return _by_driver(what, get)

    def delete(self, key: str) -> None:
        _by_driver(f"an object cannot be deleted from {self._shown}", lambda: obstore.delete(self._bucket, key))

    def listed(self, prefix: str) -> Iterator[Stray]:
        fresh = self.put(f"{prefix}/now", b"")
        newest = _by_driver(f"{self._shown} cannot be listed", lambda: obstore.head(self._bucket, fresh))
        self.delete(fresh)
        if newest is None:
            raise StoreError(f"{self._shown} cannot be listed: what was just put there is missing")
        pages = iter(obstore.list(self._bucket, prefix=prefix))
        while (page := _by_driver(f"{self._shown} cannot be listed", lambda: next(pages, None))) is not None:
            for one in page:
                yield Stray(one["path"], (newest["last_modified"] - one["last_modified"]).total_seconds())


def _opened(url: str, size: int) -> ObjectStore:
    """The client of a bucket, which waits for the answer to a body of so many bytes."""
    provider, seconds = _PROVIDERS.get(url[:2], ""), _ANSWER_SECONDS + size / _SLOWEST
    variables = {name: os.environ.get(f"{provider}_{name.upper()}", "") for name in _CLIENT}
    options: dict[str, object] = {"read_timeout": timedelta(seconds=seconds), "timeout": "1h"}
    options |= {name: value for name, value in variables.items() if value}
    return from_url(url, retry_config={"retry_timeout": _PATIENCE}, client_options=cast("ClientConfig", options))


def _by_driver(what: str, act: Callable[[], _Result]) -> _Result | None:
    """Security border: act by the driver, whose errors may repeat a provider's words, and with them credentials.

    None: there is no such object. StoreError, in words of our own, begins with `what`.
    """
    _users.add(os.getpid())
    if len(_users) > 1:  # the driver's threads, without which it waits for ever, are the first one's alone
        raise StoreError(f"{what}: this process was forked from one that has used a bucket", hint=_SPAWN)
    try:
        return act()
    except _MISSING:
        return None
    except MemoryError:
        raise no_memory(what) from None
    except _ERRORS as error:
        status = _STATUS.search(str(error))
        if isinstance(error, _DENIED) or (status is not None and status[1] in ("401", "403")):
            why, hint = "its provider refuses what it was given as credentials", _CREDENTIALS
        elif status is not None:
            why, hint = f"its provider answers {status[1]}", _SERVICE if status[1] >= "500" else _PLACE
        else:
            why, hint = f"its provider cannot be reached, or breaks off ({type(error).__name__})", _SERVICE
    raise StoreError(f"{what}: {why}", hint=hint)
