"""`jobtable jobs` in this process: what it prints, and how it ends."""

from __future__ import annotations

import json
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CTRL_C, CommandLine, run_in_terminal

from jobtable.app import open_jobs
from jobtable.cli.jobs import _selected
from jobtable.cli.output import ExitCode
from jobtable.errors import BackendUnavailable
from jobtable.jobs.lifecycle.leases import Lease, Outcome
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.read.listing import JobFilter
from jobtable.jobs.report.log_text import LogText
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.submit.definition import EdgeCondition, NewJob, ParentWaits

TRAIN, FAIL = "tests.cli.tasks:train", "tests.cli.tasks:fail"


def submit(cli: CommandLine, task: str = TRAIN, *arguments: str) -> str:
    return cli.run("jobs", "submit", "--task", task, *arguments).stdout.strip()


def ids(jobs: list[dict[str, Any]]) -> list[str]:
    return [job["job_id"] for job in jobs]


def test_a_job_is_submitted_run_and_shown(cli: CommandLine) -> None:
    job_id = submit(cli, TRAIN, "--param", "learning_rate=0.5", "--tag", "nightly", "--name", "night")
    assert cli.work().completed == 1
    shown = cli.json("jobs", "show", job_id)
    assert shown["job"]["status"] == "COMPLETED"
    assert shown["job"]["result"] == {"learning_rate": 0.5}
    assert [status["status"] for status in shown["statuses"]][::3] == ["PENDING", "COMPLETED"]
    assert [artifact["name"] for artifact in shown["artifacts"]] == ["model.txt"]
    text = cli.run("jobs", "show", job_id).stdout
    for part in (
        job_id,
        "COMPLETED",
        "night",
        "nightly",
        '{"learning_rate": 0.5}',
        "History",
        "Artifacts",
        "model.txt",
    ):
        assert part in text


def test_a_job_that_waits_is_shown_with_every_reason(cli: CommandLine) -> None:
    first = submit(cli, TRAIN, "--name", "first")
    second = submit(cli, TRAIN, "--queue", "gpu", "--depends-on", first)
    cli.run("queues", "pause", "gpu")
    waiting = cli.json("jobs", "show", second)["waiting"]
    assert [reason["kind"] for reason in waiting["reasons"]] == ["dependencies", "queue_paused", "no_worker"]
    assert [(each["name"], each["status"]) for each in waiting["dependencies"]] == [("first", "PENDING")]
    text = cli.run("jobs", "show", second).stdout
    for reason in waiting["reasons"]:
        assert reason["text"] in text
    assert "now" in text
    cli.work()
    assert cli.json("jobs", "show", first)["waiting"] is None


def test_a_job_that_runs_is_shown_with_its_time_so_far_and_its_estimated_end(cli: CommandLine) -> None:
    job_id = submit(cli)
    assert cli.json("jobs", "show", job_id)["timing"] is None
    jobs = open_jobs(cli.store)
    (lease,) = jobs.claim("default", limit=1, instance_id="w", lease_seconds=60)
    jobs.report(lease, progress=50)
    jobs.store.close()
    jobs.objects.close()
    timing = cli.json("jobs", "show", job_id)["timing"]
    assert timing["elapsed_seconds"] > 0
    text = cli.run("jobs", "show", job_id).stdout
    assert "seconds so far" in text
    assert "estimated end" in text


def test_a_group_is_shown_with_how_many_of_its_jobs_have_ended_and_failed(cli: CommandLine) -> None:
    with closing(open_jobs(cli.store)) as jobs:
        jobs.open_group(NewJob(name="batch", job_id="batch"))
        waits = ParentWaits(condition=EdgeCondition.FINISHED)
        jobs.submit_many(
            NewJob(name="n", task="m:f", job_id=f"part-{number:03d}", parent_job_id="batch", parent_waits=waits)
            for number in range(30)
        )
        jobs.seal("batch")
        leases = jobs.claim("default", limit=12, instance_id="here", lease_seconds=60)
        jobs.finish(leases[0], Outcome.failed("poison"))
        for lease in leases[1:]:
            jobs.finish(lease, Outcome.completed(None))
        text = cli.run("jobs", "show", "batch").stdout
        for part in (
            "40 %",
            "12 of 30 ended, 1 FAILED",
            "estimated end",
            "part-019",
            "dependencies batch",
        ):
            assert part in text
        assert "part-020" not in text
        assert len(cli.json("jobs", "show", "batch")["dependencies"]) == 30
        assert cli.run("jobs", "list").stdout.splitlines()[-1].split()[:3] == ["batch", "RUNNING", "40"]
        assert cli.run("jobs", "tree", "batch").stdout.splitlines()[0].split()[-2:] == ["40", "%"]
        for lease in jobs.claim("default", limit=50, instance_id="here", lease_seconds=60):
            jobs.finish(lease, Outcome.completed(None))
    text = cli.run("jobs", "show", "batch").stdout
    assert "100 %" in text
    assert "30 of 30 ended, 1 FAILED" in text


def test_what_a_job_reports_is_listed(cli: CommandLine) -> None:
    job_id = submit(cli)
    cli.work()
    metrics = cli.json("jobs", "metrics", job_id, "--name", "loss")
    assert [(metric["step"], metric["value"]) for metric in metrics] == [(0, 1), (1, 0.5)]
    assert cli.json("jobs", "metrics", job_id, "--name", "none") == []
    for name in ((), ("--name", "loss")):
        assert cli.json("jobs", "metrics", job_id, *name, "--since", "1h")[-2:] == metrics
        assert cli.json("jobs", "metrics", job_id, *name, "--since", metrics[0]["timestamp"])[-1:] == metrics[1:]
        assert cli.json("jobs", "metrics", job_id, *name, "--since", metrics[1]["timestamp"]) == []
    assert [each["is_best"] for each in cli.json("jobs", "checkpoints", job_id)] == [True]
    assert [each["size_bytes"] for each in cli.json("jobs", "artifacts", job_id)] == [7]
    for command in ("metrics", "checkpoints", "artifacts"):
        assert cli.run("jobs", command, job_id).stdout


def test_logs_are_printed_by_level_from_the_end_and_whole(cli: CommandLine) -> None:
    job_id = submit(cli)
    cli.work()

    def messages(*arguments: str) -> list[str]:
        lines = cli.run("jobs", "logs", job_id, "--json", *arguments).stdout.splitlines()
        return [json.loads(line)["message"] for line in lines]

    assert messages() == ["step 0", "step 1", "nearly done"]
    assert messages("--follow") == messages()
    assert messages("--level", "warning") == ["nearly done"]
    assert messages("--tail", "2") == ["step 1", "nearly done"]
    assert messages("--tail", "0") == []
    assert messages("--since", "1h") == messages("--since", "2025-11-01") == messages()
    last = json.loads(cli.run("jobs", "logs", job_id, "--json", "--tail", "1").stdout)["timestamp"]
    assert messages("--since", last) == messages("--since", last, "--follow") == []
    assert cli.run("jobs", "logs", job_id).stdout.splitlines()[-1].endswith("WARNING  nearly done")


def test_where_a_log_begins_is_said_once_and_as_a_time(cli: CommandLine) -> None:
    for arguments, complaint in (
        (("--since", "1h", "--tail", "1"), "--tail and --since cannot be combined"),
        (("--since", "1h", "--full"), "cannot be combined with --follow, --level, --tail or --since"),
        (("--since", "lunch"), "Invalid value for '--since': 'lunch' is not a time; write how long ago, as in 15m"),
        (("--since", "5"), "'5' is no"),
        (("--since", "999999d"), "is too long; the maximum is"),
    ):
        assert complaint in cli.run("jobs", "logs", "x", *arguments, code=2).stderr


def test_colours_are_left_out_where_they_are_not_wanted(cli: CommandLine, tmp_path: Path) -> None:
    job_id = submit(cli)
    cli.work()
    command = ("jobs", "logs", job_id, "--store", cli.store)
    assert "\x1b[33m" in run_in_terminal(tmp_path, *command, NO_COLOR="")[1]
    assert "\x1b" not in run_in_terminal(tmp_path, *command, NO_COLOR="1")[1]
    assert "\x1b" not in run_in_terminal(tmp_path, *command, NO_COLOR="", TERM="dumb")[1]


def test_a_name_steers_no_terminal_while_it_is_waited_for(cli: CommandLine, tmp_path: Path) -> None:
    job_id = submit(cli, TRAIN, "--name", "red\x1b[41m")
    waited = run_in_terminal(tmp_path, "jobs", "wait", job_id, "--timeout", "0.2", "--store", cli.store)
    assert "red\\x1b[41m" in waited[1]
    assert "\x1b[41m" not in waited[1]


def test_who_stops_waiting_is_told_how_to_go_on(cli: CommandLine, tmp_path: Path) -> None:
    command = ("jobs", "submit", "--task", TRAIN, "--wait", "--store", cli.store)
    code, shown = run_in_terminal(tmp_path, *command, awaited=b"No worker serves", answer=CTRL_C)
    (job,) = cli.json("jobs", "list")
    assert (code, f"jobtable jobs wait {job['job_id']}" in shown) == (130, True)


def test_a_job_without_full_output_says_so(cli: CommandLine) -> None:
    job_id = submit(cli)
    full = cli.run("jobs", "logs", job_id, "--full")
    assert (full.stdout, full.stderr) == ("", "This run has no output yet.\n")
    assert cli.run("jobs", "logs", job_id, "--search", "x").stderr == "No line contains this text.\n"


def test_a_log_is_searched(cli: CommandLine) -> None:
    job_id = submit(cli)
    cli.work()
    found = cli.run("jobs", "logs", job_id, "--search", "step").stdout.splitlines()
    assert [line.rpartition("Z: ")[2] for line in found] == ["step 0", "step 1"]
    assert len(cli.run("jobs", "logs", job_id, "--search", "STEP", "-i", "--limit", "1").stdout.splitlines()) == 1
    assert cli.run("jobs", "logs", job_id, "--search", "STEP").stderr == "No line contains this text.\n"
    jobs = open_jobs(cli.store)
    with closing(LogText(jobs.recording.run_text(Lease(jobs.queries.get_job(job_id), "w")), jobs.clock)) as text:
        text.append(b"nothing\nprinted step\n")
        text.finish()
    (line,) = cli.run("jobs", "logs", job_id, "--search", "step", "--json").stdout.splitlines()
    assert (json.loads(line)["epoch"], json.loads(line)["number"]) == (1, 2)
    assert cli.run("jobs", "logs", job_id, "--search", "step", "--run", "1").stdout == "run 1, line 2: printed step\n"
    jobs.store.close()
    jobs.objects.close()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--full", "--tail", "1"),
        ("--full", "--json"),
        ("--run", "1"),
        ("--search", "x", "--follow"),
        ("--ignore-case",),
        ("--limit", "3"),
    ],
)
def test_options_of_logs_that_do_not_go_together(cli: CommandLine, arguments: tuple[str, ...]) -> None:
    cli.run("jobs", "logs", "any", *arguments, code=ExitCode.USAGE)


def test_jobs_are_listed_by_every_filter_the_newest_first(cli: CommandLine) -> None:
    first = submit(cli, TRAIN, "--tag", "old")
    cli.work()
    second = submit(cli, TRAIN, "--user", "ann")
    third = submit(cli, TRAIN, "--queue", "gpu", "--param", "learning_rate=0.25")
    assert ids(cli.json("jobs", "list")) == [third, second, first]
    assert ids(cli.json("jobs", "list", "--limit", "2")) == [third, second]
    assert ids(cli.json("jobs", "list", "--status", "completed")) == [first]
    assert ids(cli.json("jobs", "list", "--user", "ann")) == [second]
    assert ids(cli.json("jobs", "list", "--user", "ann", "--status", "completed")) == []
    assert ids(cli.json("jobs", "list", "--queue", "gpu")) == [third]
    assert ids(cli.json("jobs", "list", "--tag", "old")) == [first]
    assert ids(cli.json("jobs", "list", "--task", TRAIN)) == [third, second, first]
    assert ids(cli.json("jobs", "list", "--task", FAIL)) == []
    assert ids(cli.json("jobs", "list", "--text", "learning_rate=0.25")) == [third]
    assert ids(cli.json("jobs", "list", "--parent", first)) == []
    assert cli.run("jobs", "list", "--status", "failed").stderr == "No jobs match.\n"
    cli.run("jobs", "list", "--queue", "none", code=ExitCode.NOT_FOUND)


def test_jobs_of_a_queue_are_listed_the_newest_first_also_those_that_have_left_it(cli: CommandLine) -> None:
    failed = submit(cli, FAIL, "--user", "ann")
    cli.work()
    waiting = [submit(cli, TRAIN) for _ in range(5)]
    other = submit(cli, TRAIN, "--queue", "gpu", "--user", "ann")
    assert ids(cli.json("jobs", "list", "--queue", "default")) == waiting[::-1]
    assert ids(cli.json("jobs", "list", "--queue", "default", "--limit", "2")) == waiting[:-3:-1]
    assert ids(cli.json("jobs", "list", "--queue", "default", "--status", "failed")) == [failed]
    assert ids(cli.json("jobs", "list", "--queue", "default", "--user", "ann")) == [failed]
    assert ids(cli.json("jobs", "list", "--queue", "gpu", "--status", "pending")) == [other]


def test_the_children_of_a_job_are_listed_the_oldest_first_with_any_other_filter(cli: CommandLine) -> None:
    with closing(open_jobs(cli.store)) as jobs:
        group = jobs.open_group(NewJob(name="night", job_id="night"))
        under = [NewJob(name=f"part {n}", job_id=n, task=TRAIN, parent_job_id=group.job_id) for n in "abc"]
        jobs.submit_many([*under, NewJob(name="d", job_id="d", task=TRAIN, parent_job_id="a")])
        jobs.cancel("b")
    assert ids(cli.json("jobs", "list", "--parent", "night")) == ["a", "b", "c"]
    assert ids(cli.json("jobs", "list", "--parent", "night", "--status", "pending")) == ["a", "c"]
    assert ids(cli.json("jobs", "list", "--parent", "night", "--queue", "default", "--text", "part c")) == ["c"]
    assert ids(cli.json("jobs", "list", "--parent", "a")) == ["d"]
    assert cli.run("jobs", "list", "--parent", "d").stderr == "No jobs match.\n"
    assert "no job none" in cli.run("jobs", "list", "--parent", "none", code=ExitCode.NOT_FOUND).stderr
    assert "no queue none" in cli.run("jobs", "list", "--parent", "a", "--queue", "none", code=3).stderr


def test_a_list_reads_no_more_than_it_shows(cli: CommandLine) -> None:
    jobs = open_jobs(cli.store)
    jobs.submit_many(NewJob(name="x" * 500, task="m:f") for _ in range(300))
    with jobs.store.capacity.measure() as spent:
        assert len(list(islice(_selected(jobs, JobFilter(), 5), 5))) == 5
    assert spent["Job.by_status"].read < 10
    assert len(list(_selected(jobs, JobFilter(), 50))) == 300
    jobs.store.close()
    jobs.objects.close()


def test_a_job_that_ends_while_it_is_listed_is_listed_once(cli: CommandLine) -> None:
    jobs = open_jobs(cli.store)
    waiting, *ended = [job.job_id for job in jobs.submit_many(NewJob(name="x", task="m:f") for _ in range(4))]
    for job_id in ended:
        jobs.cancel(job_id)
    selected = _selected(jobs, JobFilter(), 1)
    first = next(selected)
    jobs.cancel(waiting)
    assert [job.job_id for job in (first, *selected)] == [*reversed(ended), waiting]
    jobs.store.close()
    jobs.objects.close()


def test_a_key_makes_one_job_however_often(cli: CommandLine) -> None:
    assert submit(cli, TRAIN, "--key", "k") == submit(cli, TRAIN, "--key", "k")
    refused = cli.run("jobs", "submit", "--task", FAIL, "--key", "k", code=ExitCode.CONFLICT)
    assert "use another key" in refused.stderr


def test_parameters_are_what_they_look_like(cli: CommandLine) -> None:
    given = ["--param", "a=1", "--param", "b=0.5", "--param", "c=true", "--param", "d=null", "--param", "e=x=y"]
    given += ["--param", "f=[1]", "--param", "g=NaN", "--param", "h=", "--param-json", 'i={"j": [1, "2"]}']
    job = cli.json("jobs", "submit", "--task", TRAIN, *given)
    params = job["job_config"]["params"]
    assert params == {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": None,
        "e": "x=y",
        "f": "[1]",
        "g": "NaN",
        "h": "",
        "i": {"j": [1, "2"]},
    }


def test_a_parameter_may_be_nothing_but_brackets(cli: CommandLine) -> None:
    brackets = "[" * 100_000
    job = cli.json("jobs", "submit", "--task", TRAIN, "--param", f"a={brackets}")
    assert job["job_config"]["params"] == {"a": brackets}
    refused = cli.run("jobs", "submit", "--task", TRAIN, "--param-json", f"a={brackets}", code=ExitCode.USAGE)
    assert "is not JSON" in refused.stderr
    assert len(refused.stderr) < 1000


@pytest.mark.parametrize("name", ["job.yaml", "job.json"])
def test_a_file_defines_a_job_and_options_change_it(cli: CommandLine, tmp_path: Path, name: str) -> None:
    first = submit(cli)
    definition = {
        "task": FAIL,
        "name": "from file",
        "params": {"message": "a", "more": [1]},
        "max_attempts": 3,
        "retry": {"first_delay_seconds": 5},
        "tags": ["x"],
        "depends_on": [first, {"job_id": submit(cli), "condition": "finished"}],
    }
    (tmp_path / name).write_text(json.dumps(definition, indent="\t" if name.endswith("json") else None))
    third = submit(cli)
    arguments = ["--config", name, "--param", "message=b", "--attempts", "2", "--depends-on", third]
    job = cli.json("jobs", "submit", *arguments)
    assert (job["name"], job["max_attempts"], job["tags"]) == ("from file", 2, ["x"])
    assert job["job_config"]["params"] == {"message": "b", "more": [1]}
    assert job["job_config"]["retry"]["first_delay_seconds"] == 5
    edges = cli.json("jobs", "dependencies", job["job_id"])["waits_for"]
    assert sorted(edge["condition"] for edge in edges) == ["completed", "completed", "finished"]
    assert first in cli.run("jobs", "dependencies", job["job_id"]).stdout
    assert [e["job_id"] for e in cli.json("jobs", "dependencies", third)["waited_for_by"]] == [job["job_id"]]


def test_a_job_is_submitted_again_with_changes(cli: CommandLine) -> None:
    first = submit(
        cli, TRAIN, "--name", "night", "--param", "steps=3", "--tag", "x", "--attempts", "4", "--user", "ann"
    )
    job = cli.json("jobs", "submit", "--like", first, "--param", "learning_rate=0.5", "--priority", "900")
    assert job["job_id"] != first
    assert (job["name"], job["tags"], job["max_attempts"], job["priority"]) == ("night", ["x"], 4, 900)
    assert (job["created_by"], job["job_config"]["params"]) == ("local", {"steps": 3, "learning_rate": 0.5})
    cli.run("jobs", "submit", "--like", "nobody", code=ExitCode.NOT_FOUND)
    cli.run("jobs", "submit", "--like", first, "--config", "job.yaml", code=ExitCode.USAGE)
    trial = submit(cli, "jobtable.systems.sweeps.running:run_trial")
    refused = cli.run("jobs", "submit", "--like", trial, code=ExitCode.CONFLICT)
    assert "part of something larger" in refused.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("task: m:f\nprioritty: 3", "unknown member prioritty"),
        ("task: m:f\npriority: high", "the priority of the job cannot be 'high'"),
        ("task: m:f\npriority: 5000", "the priority of job 'f' cannot be 5000: input should be less than or equal to"),
        ("task: m:f\nmax_attempts: 0", "the max_attempts of job 'f' cannot be 0"),
        ("task: m:f\ntimeout_seconds: -1", "the timeout_seconds of job 'f' cannot be -1"),
        ("task: m:f\nmemory_mb: 0", "the memory_mb of job 'f' cannot be 0"),
        ("task: m:f\nestimated_duration: -3", "the estimated_duration of job 'f' cannot be -3"),
        ("task: m:f\nparams: [1]", "the params of the job cannot be [1]"),
        ("task: m:f\nparams: abc", "the params of the job cannot be 'abc'"),
        ("task: m:f\ndepends_on: 5", "invalid depends_on 5; write a list"),
        ("task: m:f\ndepends_on: abc", "invalid depends_on 'abc'; write a list"),
        ("task: m:f\nconfig: {retry: 3}", "the config of job 'f' cannot contain retry"),
        ("params: {}", "a job needs a task"),
        ("- a", "is not a definition"),
        ("task: train", "invalid task 'train'; write MODULE:FUNCTION"),
        ("task: my module:f", "invalid task 'my module:f'; write MODULE:FUNCTION"),
        ("task: [m:f]", "invalid task ['m:f']; write MODULE:FUNCTION"),
        ("a: [", "job.yaml is malformed: line 1, column 5: "),
        ("task: m:f\nparams: {a: 1}\nparams: {b: 2}", "line 2, column 1: params occurs twice"),
        ("task: m:f\nparams: &all {a: *all}", "line 2, column 9: found unconstructable recursive node"),
        ("task: m:f\nparams: {day: 2026-02-30}", "is malformed: day is out of range for month"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(cli: CommandLine, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "job.yaml").write_text(content)
    done = cli.run("jobs", "submit", "--config", "job.yaml", code=ExitCode.FAILED)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_numbers_in_a_file_are_written_as_in_python(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("task: m:f\nparams: {rate: 1e-4, text: '1e-4'}\n")
    params = cli.json("jobs", "submit", "--config", "job.yaml")["job_config"]["params"]
    assert params == {"rate": 0.0001, "text": "1e-4"}


def test_a_member_without_a_value_is_as_good_as_not_there(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("task: m:f\nparams:\ndepends_on:\npriority:\n")
    job = cli.json("jobs", "submit", "--config", "job.yaml", "--param", "a=1")
    assert (job["job_config"], job["priority"]) == ({"task": "m:f", "params": {"a": 1}}, 500)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_time_limit_that_is_none_is_told_in_one_line(cli: CommandLine, seconds: str) -> None:
    done = cli.run("jobs", "submit", "--task", TRAIN, "--time-limit", seconds, code=ExitCode.FAILED)
    assert "the timeout_seconds of job 'train' cannot be" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_job_is_submitted_with_a_budget(cli: CommandLine) -> None:
    job = cli.json("jobs", "submit", "--task", "m:f", "--max-cost", "0.25", "--max-tokens", "5000")
    assert (job["job_config"]["max_cost"], job["job_config"]["max_tokens"]) == (0.25, 5000)
    for option, member in (("--max-cost", "max_cost"), ("--max-tokens", "max_tokens")):
        refused = cli.run("jobs", "submit", "--task", "m:f", option, "-1", code=ExitCode.FAILED)
        assert f"the {member} of job 'f' cannot be -1" in refused.stderr


def test_waiting_ends_with_5_unless_all_are_completed(cli: CommandLine) -> None:
    good, bad = submit(cli), submit(cli, FAIL)
    late = cli.run("jobs", "wait", good, bad, "--timeout", "0", code=ExitCode.NOT_COMPLETED)
    assert "No worker serves the queue default yet; waiting for one." in late.stderr
    assert good in late.stderr
    cli.work()
    assert [job["status"] for job in cli.json("jobs", "wait", good)] == ["COMPLETED"]
    ended = cli.json("jobs", "wait", good, bad, code=ExitCode.NOT_COMPLETED)
    assert [job["status"] for job in ended] == ["COMPLETED", "FAILED"]
    cli.run("jobs", "wait", "nobody", code=ExitCode.NOT_FOUND)


def test_who_waits_is_told_the_result_and_all_of_what_went_wrong(cli: CommandLine, tmp_path: Path) -> None:
    reason = f"no luck with {'a long name, ' * 20}and no end"
    good, bad = submit(cli), submit(cli, FAIL, "--param", f"message={reason}")
    cli.work()
    assert '{"learning_rate": 0.1}' in cli.run("jobs", "wait", good).stdout
    code, shown = run_in_terminal(tmp_path, "jobs", "wait", bad, "--store", cli.store, COLUMNS="80")
    assert code == ExitCode.NOT_COMPLETED
    assert f"{bad} is FAILED: RuntimeError: {reason}" in shown
    (listed,) = cli.run("jobs", "list", "--status", "failed").stdout.splitlines()[1:]
    assert listed.rstrip().endswith("…")


def test_jobs_are_prioritised_cancelled_retried_and_deleted(cli: CommandLine) -> None:
    job_id = submit(cli)
    assert cli.json("jobs", "prioritise", job_id, "--priority", "900")[0]["priority"] == 900
    assert cli.json("jobs", "cancel", job_id, "--user", "ann")[0]["message"] == "cancelled by ann"
    assert cli.json("jobs", "retry", job_id)[0]["status"] == "PENDING"
    assert cli.json("jobs", "stop", job_id, "--message", "enough")[0]["status"] == "STOPPED"
    cli.run("jobs", "cancel", job_id, code=ExitCode.CONFLICT)
    assert cli.run("jobs", "delete", job_id, code=2).stdout.strip() == ""  # nobody says yes
    assert cli.json("jobs", "delete", job_id, "--yes")[0]["items"] > 3
    cli.run("jobs", "show", job_id, code=ExitCode.NOT_FOUND)


def test_one_job_that_cannot_be_changed_does_not_stop_the_others(cli: CommandLine) -> None:
    first, second = submit(cli), submit(cli)
    done = cli.run("jobs", "cancel", first, "missing", second, code=ExitCode.NOT_FOUND)
    assert [line.split()[1] for line in done.stdout.splitlines()[1:]] == ["CANCELLED", "CANCELLED"]
    assert len(done.stderr.splitlines()) == 1


def test_what_holds_for_all_behind_one_is_told_once(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    first = submit(cli)
    get_job = JobQueries.get_job

    def fail_behind_first(queries: JobQueries, job_id: str) -> Job:
        if job_id == first:
            return get_job(queries, job_id)
        raise BackendUnavailable("no answer")

    monkeypatch.setattr(JobQueries, "get_job", fail_behind_first)
    done = cli.run("jobs", "cancel", first, "b", "c", "d", code=ExitCode.FAILED)
    assert done.stderr == "Error: no answer (and 2 more)\n"
    assert [line.split()[1] for line in done.stdout.splitlines()[1:]] == ["CANCELLED"]


def test_a_tree_is_drawn_and_given_as_json(cli: CommandLine) -> None:
    root = submit(cli, TRAIN, "--name", "root")
    definition = {"task": TRAIN, "name": "child [bold]\nPENDING", "parent_job_id": root, "job_stage": "embed"}
    Path("child.json").write_text(json.dumps(definition))
    child = cli.json("jobs", "submit", "--config", "child.json")["job_id"]
    tree = cli.json("jobs", "tree", root)
    assert (tree["job_id"], [each["job_id"] for each in tree["children"]]) == (root, [child])
    drawn = cli.run("jobs", "tree", root).stdout.splitlines()
    assert len(drawn) == 2
    assert f"{child}  child [bold] (embed)  PENDING" in drawn[1]


def test_a_tree_of_any_depth_is_drawn_and_as_json_refused_in_one_line(cli: CommandLine) -> None:
    chain = [
        NewJob(name="level", task=TRAIN, job_id=f"level-{level}", parent_job_id=f"level-{level - 1}" if level else None)
        for level in range(1100)
    ]
    open_jobs(cli.store).submit_many(chain)
    assert len(cli.run("jobs", "tree", "level-0").stdout.splitlines()) == 1100
    refused = cli.run("jobs", "tree", "level-0", "--json", code=ExitCode.FAILED).stderr
    assert "more than 100 levels" in refused
    assert len(cli.json("jobs", "tree", "level-1000")["children"]) == 1


def test_nothing_that_a_job_says_reaches_the_terminal_as_a_command(cli: CommandLine) -> None:
    job_id = submit(cli, FAIL, "--param", "message=\x1b]0;title\x07", "--name", "\x1b[2Jname")
    cli.work()
    for command in ("show", "logs", "tree"):
        printed = cli.run("jobs", command, job_id).stdout
        assert "\x1b" not in printed
        assert "\x07" not in printed
    assert "[bold]markup[/bold]" in cli.run("jobs", "logs", job_id).stdout
    assert "\x1b" not in cli.run("jobs", "list").stdout
