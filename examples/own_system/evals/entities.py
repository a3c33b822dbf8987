"""What is stored: one score for each prompt and data set."""

from jobtable import Entity, Key, Table, Timestamp

evals = Table("Evaluations", pk="PK", sk="SK", type_attribute="TYPE")


class Evaluation(Entity, table=evals, type="EVALUATION"):
    """How well a prompt did on a data set."""

    key = Key("DATASET#{dataset}", "PROMPT#{prompt}")

    dataset: str
    prompt: str
    score: float
    evaluated_at: Timestamp
