"""A local service of models for tests: it speaks the protocols of OpenAI and Amazon Bedrock, and does what you script.

with AssistServer([failing("rate_limited", retry_after=0.1), Reply('{"label": "spam"}')]) as server:
    ...  # base_url=server.openai_url
    assert len(server.charges) == 1
"""

from jobtable.testing.assist.assist_server import AssistServer
from jobtable.testing.assist.process import AssistProcess
from jobtable.testing.assist.replies import Question, Reply, Trouble, count_tokens, failing
from jobtable.testing.assist.scripted_service import Charge, Options, Request

__all__ = [
    "AssistProcess",
    "AssistServer",
    "Charge",
    "Options",
    "Question",
    "Reply",
    "Request",
    "Trouble",
    "count_tokens",
    "failing",
]
