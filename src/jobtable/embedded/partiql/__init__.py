"""PartiQL: statements as text, translated into the reads and writes of the other operations.

expression_parser.py and statement_parser.py make a tree (syntax.py) of a statement, once per text. terms.py turns its
values and paths into those of expressions and where_clauses.py its conditions, so that the programs of `expressions`
evaluate them. selections.py plans and reads a SELECT; statement_writes.py prepares the single write that an INSERT,
UPDATE, DELETE or EXISTS is. operations.py has the three operations.
"""
