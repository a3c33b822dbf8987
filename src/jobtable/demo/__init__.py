"""A small demonstration that really runs: a sweep, a journey, a conversation, an album execution, receipts."""
