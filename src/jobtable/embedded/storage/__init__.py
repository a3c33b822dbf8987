"""Items, indexes and the change journal in one SQLite file.

Interface (agreed before the code; `Storage` implements it):

    storage = Storage(path_or_None, durability="full", clock=SYSTEM_CLOCK)

    storage.table(name) -> TableSchema | None          cached; a stale answer is only possible for readers, for whom
                                                        a table that is gone turns into None at the next use
    storage.get(table, position) -> bytes | None       one item as JSON bytes, latest committed state, no snapshot
    storage.read() -> context manager of Snapshot      a consistent view for several reads
    storage.write(action) -> result of action          action(Transaction) runs atomically; when write() returns, it
                                                        is durable. Concurrent callers share one commit.
    storage.close()

    Snapshot.table(name), Snapshot.get(table, position)
    Snapshot.range(table, index_or_None, low, high, reverse=False) -> iterator of Entry
        every entry with low <= position < high (high None: to the end), in order, lazily
    Entry = tuple (position: bytes, size: int, item: bytes)   size as DynamoDB measures; item is the whole stored item
                                                        as JSON bytes, for an index too (the reader projects)

    Transaction is a Snapshot, and
    Transaction.put(table, position, item, size, old)       old is the Item that is there now, or None; keeps every index,
    Transaction.delete(table, position, old)                the TTL list and the journal in step

An action may raise only before its first put or delete: then it alone fails. An exception after that (an I/O error)
undoes the whole shared commit, and every caller in it gets the error. An action may run on any thread, exactly once.
"""
