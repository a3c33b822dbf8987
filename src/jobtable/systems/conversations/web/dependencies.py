"""What the routes of the system depend on."""

from __future__ import annotations

from typing import Annotated

from jobtable.systems.conversations.service import Conversations
from jobtable.web.dependencies import service

TheConversations = Annotated[Conversations, service(Conversations)]
