"""Sessions that last: their objects, commits, journals and leases, in SQLite, PostgreSQL or memory.

The store keeps bytes and JSON, and never looks into what a snapshot holds.
"""

from cellblock.store.address import JSON, address_of, blobs, linked, links, records
from cellblock.store.batch import Batch
from cellblock.store.held import HeldSession
from cellblock.store.history import BRANCH, TAG
from cellblock.store.session import StoredSession
from cellblock.store.store import Store, open_store
from cellblock.store.trie import Tree
from cellblock.store.words import (
    Change,
    Commit,
    Damage,
    Entry,
    Head,
    Holder,
    Quota,
    SessionRow,
    StoreUsage,
    Swept,
    VerifyReport,
)

__all__ = [
    "open_store",
    "Store",
    "StoredSession",
    "HeldSession",
    "Tree",
    "Batch",
    "Commit",
    "Head",
    "Entry",
    "Change",
    "Holder",
    "SessionRow",
    "Quota",
    "StoreUsage",
    "Damage",
    "VerifyReport",
    "Swept",
    "BRANCH",
    "TAG",
    "JSON",
    "address_of",
    "blobs",
    "records",
    "linked",
    "links",
]
