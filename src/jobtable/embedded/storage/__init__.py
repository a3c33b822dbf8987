"""Items, indexes and the change journal in one SQLite file.

    storage = Storage(path_or_None, durability="full", clock=SYSTEM_CLOCK)

    storage.table(name) -> TableSchema | None          as the last commit of any process left it; costs no I/O
    storage.get(table, position) -> bytes | None       one item as JSON, last committed state
    storage.sized(table, position)                     the same, with its size: (bytes, int) | None
    storage.read() -> context manager of Snapshot      a consistent view for several reads
    storage.write(action) -> result of action          action(Transaction) runs atomically; when write() returns, it
                                                        is durable. Concurrent callers share one commit.
    storage.close()

    Snapshot.table(name), Snapshot.get(table, position), Snapshot.sized(table, position)
    Snapshot.read(table, position) -> Sized             the item, its size and its JSON
    Snapshot.range(table, index_or_None, low, high, reverse=False) -> iterator of (size, JSON)
    Snapshot.entries(table, index_or_None) -> iterator of Entry: all of them, with their positions

    Transaction is a view like Snapshot, and
    Transaction.put(table, position, new, old)         old is what read() gives there now; keeps every index, the TTL
    Transaction.delete(table, position, old)           list and the journal in step, and tells the IndexChanges
    Transaction.together() -> context manager          what is put and deleted in it is stored at its end, in less time
    Transaction.token(token) -> (request, response) | None
    Transaction.remember(token, request, response)     idempotency tokens, kept 10 minutes

A table that is deleted between `table()` and its use is ResourceNotFoundException ("Requested resource not found") from
whichever call meets that first. What SQLite or the disk reports is BackendUnavailable.
"""

from jobtable.embedded.storage.database import Snapshot, Storage
from jobtable.embedded.storage.views import NO_ITEM, Entry, IndexChange, Sized, Transaction, View

__all__ = ["NO_ITEM", "Entry", "IndexChange", "Sized", "Snapshot", "Storage", "Transaction", "View"]
