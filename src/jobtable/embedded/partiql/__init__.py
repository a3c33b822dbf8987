"""PartiQL: statements as text, translated into the reads and writes of the other operations.

tokens.py, grammar.py and expressions.py make a tree (syntax.py) of a statement, once per text. terms.py turns its
values and paths into those of expressions, conditions.py and updates.py its conditions and changes into their trees, so
that the programs of `expressions` evaluate them. selections.py plans a SELECT and paging.py reads it; writes.py makes
ready the single write that an INSERT, UPDATE, DELETE or EXISTS is. operations.py, batches.py and transactions.py are
the three operations.
"""
