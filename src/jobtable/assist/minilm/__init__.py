"""all-MiniLM-L6-v2 in this process: vectors without a service. Needs the extra `embeddings`.

`vocabulary.txt` is that of bert-base-uncased, unchanged: Copyright 2018 The Google AI Language Team Authors, under the
Apache License 2.0 (LICENSE-APACHE.txt). The package with the weights has none.
"""
