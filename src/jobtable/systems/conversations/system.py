"""Conversations as a system: what the product finds by its entry point."""

from jobtable.system import Command, Listing, NavigationEntry, Service, System

_HERE = "jobtable.systems.conversations"

SYSTEM = System(
    name="conversations",
    title="Conversations",
    order=30,
    extra="conversations",
    needs=("numpy", "sklearn", "threadpoolctl"),
    tables=(f"{_HERE}.entities:TABLES",),
    entities=(f"{_HERE}.entities",),
    patterns=(f"{_HERE}.service", f"{_HERE}.runs"),
    objects={"conversations": f"{_HERE}.runs:ConversationRuns"},
    services=(
        Service(f"{_HERE}.service:Conversations", f"{_HERE}.service:Conversations.of"),
        Service(f"{_HERE}.runs:ConversationRuns", remote=f"{_HERE}.remote:ServerRuns"),
    ),
    queues=("conversations",),
    tasks=(f"{_HERE}.stages",),
    moved={"jobtable.conversations.": f"{_HERE}."},
    api=(f"{_HERE}.web.api", f"{_HERE}.web.run_api"),
    pages=(f"{_HERE}.web.pages",),
    web=f"{_HERE}.web",
    navigation=(NavigationEntry("/conversations", "Conversations", "conversations"),),
    icons={"conversations": '<path d="M4 5h12v9H9l-4 3v-3H4z"/><path d="M19 9h1.5v8.5H19v3l-3.5-3H11"/>'},
    job_page="/conversations/{id}",
    delete_command="conversations delete {id}",
    commands={"conversations": Command(f"{_HERE}.cli", "Conversations: analyse Polis exports, and compare the runs.")},
    listings={
        "conversation": Listing("conversations runs CONVERSATION"),
        "run": Listing("conversations runs CONVERSATION"),
    },
    demo=f"{_HERE}.demo:PART",
)
