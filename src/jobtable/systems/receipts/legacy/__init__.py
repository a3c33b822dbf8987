"""The older table of receipts and jobs: tags instead of labels. Kept readable, and a source to migrate from."""
