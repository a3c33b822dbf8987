"""Results of conversation analyses: by job, by conversation, and single ones."""

from typing import Annotated, Any, TypeVar

from fastapi import Body as JsonBody
from fastapi import Path, Query

from jobtable.errors import ValueRefusedError
from jobtable.systems.conversations import entities
from jobtable.systems.conversations.conversation_runs import ConversationRuns
from jobtable.systems.conversations.service import Conversations
from jobtable.web.api.route_parts import NewestFirst, Written, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.injection import JobId, PageOf, Paging, path_id, service

router = api_router("conversations")

TheConversations = Annotated[Conversations, service(Conversations)]
TheRuns = Annotated[ConversationRuns, service(ConversationRuns)]
R = TypeVar("R", bound=entities.JobResult)
ConversationId = Annotated[str, path_id("bg2018")]
_MOST_RESULTS = 1000
_NUMBER = Path(pattern="^[0-9]{1,15}$", examples=["17"])
_NAME = path_id("layer0_3")
_VOTER = path_id("17")


def _add_kind(name: str, kind: type[R], range_path: Any) -> None:
    by_job, word = f"/conversation-jobs/{{job_id}}/{name}", name.replace("-", "_")
    _add_lists(name, kind, by_job, word)

    @router.get(
        f"{by_job}/{{item_id}}",
        name=f"get_from_{word}",
        response_model=kind,
        description=f"Return one of the {name} of a job, or of a run.",
    )
    @allow(READ)
    def get_result(
        job_id: JobId, item_id: Annotated[str, range_path], conversations: TheConversations, runs: TheRuns
    ) -> Any:
        made_by = runs.find_job_of(kind, job_id)
        return conversations.get_result(kind, made_by, int(item_id) if range_path is _NUMBER else item_id)

    @router.put(by_job, name=f"put_{word}", description=f"Store {name} of a job; existing ones are replaced.")
    @allow(WRITE)
    def put_results(
        job_id: JobId,
        results: Annotated[list[kind], JsonBody(max_length=_MOST_RESULTS)],  # type: ignore[valid-type]  # made at run time
        conversations: TheConversations,
    ) -> Written:
        given: list[R] = list(results)
        for result in given:
            if result.job_id != job_id:
                raise ValueRefusedError(f"a result of job {result.job_id} cannot be stored under job {job_id}")
        return Written(count=conversations.put_results(given))


def _add_lists(name: str, kind: type[R], by_job: str, word: str) -> None:
    page = PageOf[kind]  # type: ignore[valid-type]  # as above

    @router.get(
        by_job, name=f"list_{word}_of_job", response_model=page, description=f"List the {name} of a job, or of a run."
    )
    @allow(READ)
    def list_results_of_job(
        job_id: JobId,
        conversations: TheConversations,
        runs: TheRuns,
        paging: Paging,
        conversation_id: Annotated[str | None, Query(min_length=1, description="Only this conversation.")] = None,
    ) -> Any:
        made_by = runs.find_job_of(kind, job_id)
        if conversation_id is None:
            return paging.page(conversations.list_by_job(kind, made_by))
        return paging.page(conversations.list_by_job_and_conversation(kind, made_by, conversation_id))

    @router.get(
        f"/conversations/{{conversation_id}}/{name}",
        name=f"list_{word}_of_conversation",
        response_model=page,
        description=f"List the {name} of all jobs for a conversation, by creation.",
    )
    @allow(READ)
    def list_results_of_conversation(
        conversation_id: ConversationId,
        conversations: TheConversations,
        paging: Paging,
        newest_first: NewestFirst = False,
    ) -> Any:
        return paging.page(conversations.list_by_conversation(kind, conversation_id, newest_first=newest_first))


_add_kind("embeddings", entities.CommentEmbedding, _NUMBER)
_add_kind("cluster-assignments", entities.CommentClusterAssignment, _NUMBER)
_add_kind("clusters", entities.CommentCluster, _NAME)
_add_kind("graph-edges", entities.GraphEdge, _NAME)
_add_kind("topic-names", entities.TopicName, _NAME)
_add_kind("extremities", entities.CommentExtremity, _NUMBER)
_add_kind("comment-opinions", entities.CommentOpinion, _NUMBER)
_add_kind("opinion-groups", entities.OpinionGroup, _NUMBER)
_add_kind("participants", entities.ParticipantOpinion, _VOTER)
add_verbs(
    router,
    TheConversations,
    {"job_id": JobId},
    ("delete_results", "DELETE /conversation-jobs/{job_id}", Conversations.delete_job),
)
