"""Items, indexes and the change journal in one SQLite file.

`Storage` reads items outside of transactions; `Storage.read()` opens a `Snapshot`, a consistent view for several reads;
`Storage.write(action)` runs `action(Transaction)` atomically and durably, and shares commits between callers.

A table that is deleted between `table()` and its use is ResourceNotFoundException ("Requested resource not found") from
whichever call meets that first. What SQLite or the disk reports is BackendUnavailable.
"""

from jobtable.embedded.storage.database import Snapshot, Storage
from jobtable.embedded.storage.views import NO_ITEM, Entry, IndexChange, Sized, Transaction, View

__all__ = ["NO_ITEM", "Entry", "IndexChange", "Sized", "Snapshot", "Storage", "Transaction", "View"]
