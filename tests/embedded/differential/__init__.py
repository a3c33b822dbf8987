"""Random requests, asked of the embedded engine and of the genuine DynamoDB Local side by side.

`tables` and `vocabulary` keep the world small, so that requests hit each other; `expressions`, `requests` and
`mutations` write requests, good and bad; `peers` asks, `comparison` says what is free to differ, and `known` lists
where DynamoDB Local is not what AWS documents.
"""
