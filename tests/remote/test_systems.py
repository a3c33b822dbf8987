"""Sweeps, journeys, analyses and executions through a server: started, followed to their end, and refused."""

from __future__ import annotations

import json
import re
import threading
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_up import up
from tests.remote.conftest import REPOSITORY
from tests.running import run_jobs
from tests.systems.journeys.access_patterns import journey
from tests.systems.receipts.pictures import ocr_result
from tests.web.conftest import Served
from typer.testing import CliRunner, Result

from jobtable.access.entities import Role
from jobtable.app import ServerServices, Services
from jobtable.cli.background import beside
from jobtable.cli.main import app
from jobtable.errors import (
    AccessDenied,
    AlreadyExistsError,
    ConflictError,
    DefinitionError,
    JobStateError,
    NotFoundError,
    RequestRefused,
    TokenRefusedError,
    ValueRefusedError,
)
from jobtable.jobs.stored.fields import Status
from jobtable.jobs.submit.definition import DependsOn, NewJob, ParentWaits
from jobtable.remote.server import Server
from jobtable.settings import Settings
from jobtable.systems.albums.answers import Answers
from jobtable.systems.albums.entities import ExecutionStatus
from jobtable.systems.albums.example import PATHS
from jobtable.systems.albums.executions import Executions
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.albums.watch import Watch
from jobtable.systems.conversations.analysis.polis_export import write_export
from jobtable.systems.conversations.example import generate_export
from jobtable.systems.conversations.pipeline import PipelineStage
from jobtable.systems.conversations.runs import ConversationRuns, RunSettings
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.example.catalogue import create_catalogue
from jobtable.systems.journeys.parts import JourneyStatus, RuleStatus
from jobtable.systems.journeys.runner import JourneyRunner
from jobtable.systems.journeys.service import Journeys
from jobtable.systems.receipts.ocr import OcrService
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep

SQUARES = """
from jobtable.jobs.tasks import task

@task(inline=True)
def square(x: int) -> int:
    return x * x
"""
SPACE: dict[str, Any] = {"x": [0, 1, 2]}
SHELF = b"Radiohead - OK Computer (1997)\nPortishead - Dummy\n"


def working(served: Served, *queues: str) -> AbstractContextManager[None]:
    """Somebody works on queues of the server while the block runs."""

    def work(is_over: threading.Event) -> None:
        while not is_over.wait(0.02):
            for queue in queues:
                run_jobs(served.services.jobs, queue)

    return beside(work, "worker")


def sweep(**changed: Any) -> Sweep:
    values = {"name": "squares", "task": "tests.remote.tasks:square", "space": SPACE, "sampler": "grid", **changed}
    return Sweep(**values)


class TestSweeps:
    def test_is_submitted_stopped_and_resumed(self, served: Served, remote: Services) -> None:
        parent = remote.get(Sweeps).submit(sweep(), sweep_id="s1", user="somebody else")
        assert (parent.job_id, parent.created_by) == ("s1", "full")
        assert remote.get(Sweeps).submit(sweep(), sweep_id="s1") == parent
        with pytest.raises(ConflictError, match="another definition"):
            remote.get(Sweeps).submit(sweep(name="other"), sweep_id="s1")
        assert remote.get(Sweeps).stop("s1").job_id == "s1"
        remote.get(Sweeps).resume("s1")
        run_jobs(served.services.jobs, "default")
        progress = remote.get(Sweeps).get_progress("s1")
        assert (progress.status, progress.completed) == (Status.COMPLETED, 3)
        best = remote.get(Sweeps).find_best("s1")
        assert best is not None
        assert best.params == {"x": 0}

    def test_is_extended(self, served: Served, remote: Services) -> None:
        remote.get(Sweeps).submit(sweep(trials=1, queue="more"), sweep_id="more")
        run_jobs(served.services.jobs, "more")
        assert remote.get(Sweeps).extend("more", trials=1) == 2
        assert remote.get(Sweeps).extend("more", total=3) == 3
        with pytest.raises(ValueRefusedError, match="the grid of sweep more has 3 points, and no 4 trials"):
            remote.get(Sweeps).extend("more", trials=1)
        run_jobs(served.services.jobs, "more")
        assert remote.get(Sweeps).get_progress("more").completed == 3

    def test_what_is_no_sweep_is_not_there(self, remote: Services) -> None:
        with pytest.raises(NotFoundError):
            remote.get(Sweeps).stop("none")

    @pytest.mark.parametrize(
        ("changed", "status"),
        [
            ({}, 201),
            ({"sampler": {"name": "grid"}}, 201),
            ({"sampler": "random"}, 400),
            ({"sampler": "nobody's"}, 422),
            ({"sampler": 3}, 422),
            ({"space": {"x": []}}, 422),
            ({"trials": "3"}, 422),
            ({"params": {"x": 1}}, 400),
            ({"unknown": 1}, 422),
        ],
    )
    def test_the_api_takes_a_definition_as_its_file_has_it(
        self, served: Served, changed: dict[str, Any], status: int
    ) -> None:
        definition = {
            "name": "n",
            "task": "tests.remote.tasks:square",
            "space": SPACE,
            "sampler": "grid",
            "queue": "api",
            **changed,
        }
        answer = served.client(Role.FULL).post("/api/v1/sweeps", json={"sweep": definition})
        assert answer.status_code in (status, 422 if status == 400 else status), answer.text


class TestJourneys:
    def test_is_created_from_a_template_run_and_kept_as_a_file(
        self, served: Served, remote: Services, tmp_path: Path
    ) -> None:
        source = tmp_path / "catalogue.db"
        create_catalogue(source, products=5)
        new = journey("R1").replace(parameters={"source": str(source)})
        remote.get(Journeys).create_from_template(new, with_example_rules=True)
        with pytest.raises(AlreadyExistsError):
            remote.get(Journeys).create_from_template(new)
        whole = remote.get(Journeys).get_complete_journey("R1", consistent=True)
        assert whole.journey.parameters == {"source": str(source)}
        assert len(whole.stages) == 6
        assert len(whole.rules) > 3
        changed = remote.get(Journeys).change_rule_status(whole.rules[0], RuleStatus.INACTIVE)
        assert changed.status is RuleStatus.INACTIVE
        assert remote.get(JourneyRunner).run("R1").status is JourneyStatus.RUNNING
        assert remote.get(JourneyRunner).pause("R1").status is JourneyStatus.PAUSED
        assert remote.get(JourneyRunner).resume("R1").status is JourneyStatus.RUNNING
        run_jobs(served.services.jobs, "journeys")
        assert remote.get(Journeys).get_journey("R1").status is JourneyStatus.COMPLETED
        exported = remote.get(JourneyBackups).get_journey_complete("R1", tmp_path / "r1.zip")
        assert exported.journey_id == "R1"
        assert remote.get(JourneyBackups).delete_journey("R1") > 10
        imported = remote.get(JourneyBackups).import_journey_complete(tmp_path / "r1.zip")
        assert imported.items > 10
        assert remote.get(Journeys).get_journey("R1").status is JourneyStatus.COMPLETED
        assert [path.name for path in tmp_path.iterdir() if "zip" in path.name] == ["r1.zip"]

    def test_is_created_with_stages_of_its_own(self, remote: Services) -> None:
        remote.get(Journeys).create_journey(journey("R2"))
        stages = list(remote.get(Journeys).list_stages("R2"))
        remote.get(Journeys).create_journey(journey("R3"), [stage.replace(journey_id="R3") for stage in stages[:2]])
        assert [stage.stage_id for stage in remote.get(Journeys).list_stages("R3")] == [s.stage_id for s in stages[:2]]
        with pytest.raises(ConflictError):
            remote.get(JourneyRunner).skip("R3", stages[0].stage_id)
        assert remote.get(JourneyRunner).cancel("R3").status is JourneyStatus.CANCELLED

    @pytest.mark.parametrize(
        ("told", "kind"),
        [
            ({"implementations": {"raw_analysis": "no.such:Class"}}, DefinitionError),
            ({"implementations": {"nowhere": "a:B"}}, NotFoundError),
            ({"skippable": ["nowhere"]}, NotFoundError),
            ({"implementations": {"raw_analysis": "no path"}}, RequestRefused),
            ({"example_rules": "yes"}, RequestRefused),
        ],
    )
    def test_a_template_that_cannot_be_is_refused(
        self, served: Served, told: dict[str, Any], kind: type[Exception]
    ) -> None:
        server = Server(served.url, served.token(Role.FULL))
        new = json.loads(journey("R4").model_dump_json(include={"journey_id", "name", "created_by", "source"}))
        body = {**new, "oda_component_type": "PRODUCTCATALOG", "template": told}
        with pytest.raises(kind):
            server.write("POST", "/journeys", body)
        with pytest.raises(ValueRefusedError, match="either a template, or stages and rules"):
            server.write("POST", "/journeys", {**body, "template": {}, "stages": []})
        assert served.services.get(Journeys).list_stages("R4").first() is None


class TestConversations:
    def test_is_started_run_again_and_deleted(self, served: Served, remote: Services, tmp_path: Path) -> None:
        write_export(generate_export(1, comments=20, voters=8), tmp_path)
        files = (tmp_path / "comments.csv").read_bytes(), (tmp_path / "votes.csv").read_bytes()
        runs = remote.get(ConversationRuns)
        run = runs.start("c1", *files, RunSettings(seed=3), run_id="run-1")
        assert (run.record.seed, run.record.created_by) == (3, "full")
        assert runs.start("c1", *files, RunSettings(seed=3), run_id="run-1").record == run.record
        with pytest.raises(AlreadyExistsError):
            runs.start("c1", *files, RunSettings(seed=4), run_id="run-1")
        with pytest.raises(JobStateError, match="cannot be taken over"):
            runs.rerun("run-1", PipelineStage.LAYOUT)
        with pytest.raises(JobStateError, match="cancel its job"):
            runs.delete("run-1")
        run_jobs(served.services.jobs, "conversations")
        again = runs.rerun("run-1", PipelineStage.LAYOUT, seed=5)
        assert (again.record.source_run_id, again.record.seed) == ("run-1", 5)
        assert runs.delete("run-1").results > 20

    def test_what_cannot_be_analysed_is_not_sent(self, remote: Services) -> None:
        with pytest.raises(ValueRefusedError, match=r"comments\.csv"):
            remote.get(ConversationRuns).start("c1", b"\xff\xfe", b"")
        with pytest.raises(ValueRefusedError, match="queue"):
            remote.get(ConversationRuns).start("c1", b"", b"", queue="mine")

    def test_an_export_may_be_larger_than_other_requests_and_not_too_large(self) -> None:
        served = Served(most_upload_bytes=20_000, most_request_bytes=10_000)
        comments, votes = b"comment-id,comment-body\n1,%s\n" % (b"x" * 9_000), b"comment-id,voter-id,vote\n"
        try:
            with Services.from_settings(Settings(server=served.url)) as services:
                services.get(ConversationRuns).start("c", comments, votes + b"1,1,1\n" * 500)
                with pytest.raises(RequestRefused, match="more than 20,000 bytes"):
                    services.get(ConversationRuns).start("c", comments, votes + b"1,1,1\n" * 5_000)
        finally:
            served.stop()


class TestAlbums:
    def test_is_started_answered_and_counted(self, served: Served, remote: Services) -> None:
        executions = remote.get(Executions)
        started = executions.start(next(iter(PATHS.values())), SHELF, "shelf.txt", execution_id="e1")
        assert executions.start(next(iter(PATHS.values())), SHELF, "shelf.txt", execution_id="e1") == started
        assert executions.get_definition("e1").steps
        with pytest.raises((DefinitionError, NotFoundError)):
            executions.start("no.such:DEFINITION", SHELF, "shelf.txt")
        run_jobs(served.services.jobs, "albums")
        assert remote.get(AlbumWorkflows).get_execution("e1").status is ExecutionStatus.WAITING
        task_id = executions.get_watch("e1").task_id
        assert task_id is not None
        answer = [album.model_dump(mode="json") for album in remote.get(AlbumWorkflows).get_task(task_id).albums]
        with pytest.raises(TokenRefusedError):
            remote.get(Answers).complete(task_id, "wrong", answer)
        token = remote.get(Answers).renew_token(task_id)
        with pytest.raises(RequestRefused):
            remote.get(Answers).complete(task_id, token, "no list")
        with pytest.raises(ValueRefusedError, match="does not ask about album 999"):
            remote.get(Answers).complete_by_right(task_id, [{**answer[0], "album_index": 999}])
        camel = [{"albumName" if name == "album_name" else name: each[name] for name in each} for each in answer]
        assert remote.get(Answers).complete(task_id, token, camel).status is not ExecutionStatus.WAITING
        run_jobs(served.services.jobs, "albums")
        assert remote.get(AlbumWorkflows).get_execution("e1").status is ExecutionStatus.COMPLETED
        assert remote.get(Watch).expire_due().looked_at == 0
        day = remote.get(AlbumWorkflows).get_execution("e1").created_at.date()
        counted = served.client(Role.FULL).post(f"/api/v1/workflow-metrics/{day}/compute").json()
        assert counted["step_functions"]["execution_count"] == 1

    def test_is_retried_and_deleted(self, served: Served, remote: Services) -> None:
        executions = remote.get(Executions)
        executions.start(next(iter(PATHS.values())), b"nothing", "shelf.txt", execution_id="e2")
        run_jobs(served.services.jobs, "albums")
        assert (executions.retry("e2").attempt, remote.get(AlbumWorkflows).get_execution("e2").status) == (
            2,
            ExecutionStatus.RUNNING,
        )
        with pytest.raises(ConflictError, match="must end first"):
            executions.delete("e2")
        assert executions.delete("e2", stop=True) > 2
        with pytest.raises(NotFoundError):
            executions.retry("e2")


class TestTheRest:
    def test_groups_are_opened_and_sealed(self, remote: Services) -> None:
        jobs = remote.jobs
        group = jobs.open_group(NewJob(name="group"))
        child = jobs.submit(
            NewJob(name="child", task="m:f", parent_job_id=group.job_id, parent_waits=ParentWaits(), queue="group")
        )
        other = jobs.submit(NewJob(name="other", task="m:f", queue="group"))
        edge = jobs.add_dependency(child.job_id, DependsOn(other.job_id))
        assert edge.dependency_job_id == other.job_id
        assert jobs.seal(group.job_id).is_awaiting

    def test_receipts_are_stored_and_deleted(self, remote: Services) -> None:
        result = ocr_result("far-scan", receipts=2)
        written = remote.get(OcrService).store(result).written
        assert (written > 20, remote.get(OcrService).store(result).already_there) == (True, written)
        assert remote.get(OcrService).read_image("far-scan").image == result.image
        assert remote.get(OcrService).delete_image("far-scan") == written
        assert remote.get(OcrService).delete_image("far-scan") == 0

    def test_tokens_are_made_and_revoked(self, served: Served, remote: Services) -> None:
        made = remote.tokens.create(Role.READ, name="dashboards", expires_in=timedelta(days=1))
        assert (made.record.created_by, made.record.name) == ("full", "dashboards")
        with ServerServices(served.url, made.text) as reader:
            list(reader.jobs.queries.list_queues())
        assert remote.tokens.revoke(made.record.token_id).revoked_at is not None
        with pytest.raises(AccessDenied):
            ServerServices(served.url, made.text)

    @pytest.mark.parametrize("role", [Role.READ, Role.WORKER])
    def test_other_roles_start_nothing(self, served: Served, role: Role) -> None:
        client = served.client(role)
        for path in ("sweeps", "journeys", "conversation-runs", "execution-runs", "journey-imports", "journeys/J/run"):
            answer = client.post(f"/api/v1/{path}", json={})
            assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")


class TestOnTheCommandLine:
    """`jobtable --server URL --token TOKEN`: the same commands, with the same progress."""

    def run(self, served: Served, *arguments: str, code: int = 0) -> Result:
        command = ["--server", served.url, "--token", served.token(Role.FULL), *arguments]
        result = CliRunner().invoke(app, command, env={"JOBTABLE_STORE": ""})
        assert result.exit_code == code, f"{result.exit_code}: {result.output}"
        return result

    def json(self, served: Served, *arguments: str) -> Any:
        return json.loads(self.run(served, *arguments, "--json").stdout)

    def test_a_sweep_is_run_and_followed(self, served: Served, tmp_path: Path) -> None:
        file = tmp_path / "sweep.json"
        file.write_text(sweep(queue="cli").model_dump_json())
        with working(served, "cli"):
            done = self.run(served, "sweeps", "run", str(file), "--follow", "--json")
        assert (json.loads(done.stdout)["status"], json.loads(done.stdout)["completed"]) == ("COMPLETED", 3)
        assert "No worker serves the queue cli now" in done.stderr
        sweep_id = self.run(served, "sweeps", "run", str(file)).stdout.strip()
        self.run(served, "sweeps", "stop", sweep_id)

    def test_a_sweep_of_the_server_is_run_by_workers_here(
        self, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(REPOSITORY)
        file = tmp_path / "sweep.json"
        file.write_text(sweep(queue="here").model_dump_json())
        done = self.run(served, "sweeps", "run", str(file), "--id", "here", "--workers", "2", "--json")
        assert (json.loads(done.stdout)["status"], json.loads(done.stdout)["completed"]) == ("COMPLETED", 3)
        assert served.services.get(Sweeps).get_progress("here").completed == 3
        assert self.run(served, "sweeps", "resume", "here", "--workers", "1").exit_code == 0

    def test_a_journey_is_created_run_and_followed(self, served: Served, tmp_path: Path) -> None:
        source = tmp_path / "catalogue.db"
        create_catalogue(source, products=5)
        made = self.json(served, "journeys", "create", str(source), "--id", "CLI-1")
        assert len(made["stages"]) == 6
        assert self.json(served, "journeys", "run", "CLI-1", "--submit-only")["journey"]["status"] == "running"
        with working(served, "journeys"):
            done = self.json(served, "journeys", "run", "CLI-1")
        assert done["journey"]["status"] == "completed"
        self.run(served, "journeys", "export", "CLI-1", str(tmp_path / "backup.zip"))
        self.run(served, "journeys", "import", str(tmp_path / "backup.zip"), "--existing", "replace", "--yes")

    def test_a_conversation_is_analysed_and_followed(self, served: Served, tmp_path: Path) -> None:
        write_export(generate_export(2, comments=20, voters=8), tmp_path)
        with working(served, "conversations"):
            done = self.json(served, "conversations", "analyze", str(tmp_path), "--id", "cli")
        assert done["root"]["status"] == "COMPLETED"

    def test_an_execution_is_started_followed_and_answered(self, served: Served, tmp_path: Path) -> None:
        (tmp_path / "shelf.txt").write_bytes(SHELF)
        with working(served, "albums"):
            started = self.json(served, "executions", "start", str(tmp_path / "shelf.txt"))
            assert started["execution"]["status"] == "waiting"
            task_id = started["tasks"][0]["task_id"]
            token = self.run(served, "tasks", "token", task_id).stdout.strip()
            done = self.json(served, "tasks", "complete", task_id, "--token", token, "--confirm")
        assert done["execution"]["status"] == "completed"
        self.run(served, "executions", "metrics")

    def test_a_whole_product_is_used_from_elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The server and its worker are processes of their own; nothing here but its address."""
        (tmp_path / "squares.py").write_text(SQUARES)
        file = tmp_path / "sweep.json"
        file.write_text(sweep(task="squares:square").model_dump_json())
        with up(tmp_path) as server:
            url = re.search(r"http://\S+", server.read_until("http://", seconds=60))
            assert url is not None
            elsewhere = tmp_path / "elsewhere"
            elsewhere.mkdir()
            monkeypatch.chdir(elsewhere)
            command = ["--server", url[0].rstrip("."), "sweeps", "run", str(file), "--follow", "--json"]
            done = CliRunner().invoke(app, command, env={"JOBTABLE_STORE": ""})
            assert done.exit_code == 0, done.output
            assert json.loads(done.stdout)["completed"] == 3
            assert list(elsewhere.iterdir()) == []
            assert server.interrupt() == 0

    def test_a_token_is_made_and_revoked(self, served: Served) -> None:
        made = self.json(served, "tokens", "create", "--role", "read", "--expires", "1d")
        assert made["expires_at"] is not None
        self.run(served, "tokens", "revoke", made["token_id"], "--yes")
