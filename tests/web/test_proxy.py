"""Behind a proxy, set up as the page about deployment says: people log in under the proxy's name, and others do not."""

from __future__ import annotations

from collections.abc import Callable

from tests.web.conftest import Served

from jobtable.access.entities import Role

NAME = "jobs.example.com"
FROM_PROXY = {"Host": NAME, "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}


def test_people_log_in_through_the_proxy(serve: Callable[..., Served]) -> None:
    served = serve(require_token=True, host_names=(NAME,))
    through = served.client(None, **FROM_PROXY)
    assert through.get("/api/v1/jobs").status_code == 401
    origin = {"Origin": f"https://{NAME}"}
    answer = through.post("/login", data={"token": served.token(Role.FULL)}, headers=origin)
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert "; Secure" in cookie
    assert "; HttpOnly" in cookie
    session = {"Cookie": cookie.partition(";")[0]}
    assert through.get("/jobs", headers=session).status_code == 200
    assert (
        through.post("/api/v1/jobs", json={"task": "m:f", "name": "job"}, headers=session | origin).status_code == 201
    )
    foreign = session | {"Origin": "https://elsewhere.example"}
    assert through.post("/api/v1/jobs", json={"task": "m:f", "name": "job"}, headers=foreign).status_code == 403


def test_other_names_are_refused_but_health_is_told(serve: Callable[..., Served]) -> None:
    served = serve(require_token=True, host_names=(NAME,))
    other = served.client(Host="other.example.com")
    assert other.get("/api/v1/jobs").status_code == 403
    assert other.get("/healthz").status_code == 200
