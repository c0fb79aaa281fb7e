"""Pages and data of the review server, and decisions through it."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from asgi_client import AsgiClient, MakeClient

from newkind.runs.assignments import read_assignments
from newkind.runs.carry_over import carry_over
from newkind.runs.decision import Decision, Event
from newkind.runs.metadata import metadata_csv, metadata_from
from newkind.runs.run import Run
from painted_run import SCRIPT, write_run

PAGES = [
    "/",
    "/categories",
    "/category?id=new-01",
    "/merge?a=new-01&b=new-02",
    "/split?id=new-01",
    "/grow?id=apple",
    "/images?kind=ambiguous",
    "/images?kind=mislabelled",
    "/images?kind=outliers",
    "/search?text=img",
    "/map",
    "/history",
]


@pytest.mark.parametrize("page", PAGES)
def test_pages_escape_every_name(client: AsgiClient, page: str) -> None:
    assert client.decide(kind="rename", category="new-01", name="<img src=x onerror=alert(1)>").status == 200
    assert client.decide(kind="note", category="new-01", text="<b>note</b>").status == 200
    done = client.get(page)
    assert done.status == 200
    for text in (SCRIPT, "<img src=x", "<b>note"):
        assert text not in done.text
    assert "style=" not in done.text
    assert "javascript:" not in done.text
    assert done.text.count("<script") == done.text.count('<script type="module" src="/static/')


def test_the_pages_say_what_they_show(client: AsgiClient) -> None:
    assert "0 of 4 categories decided" in client.get("/").text
    page = client.get("/category?id=new-01").text
    assert 'data-do="approve"' in page
    assert "&lt;script&gt;" in page  # a neighbour


@pytest.mark.parametrize(
    "page",
    ["/category", "/category?id=nothing", "/merge?a=new-01&b=new-01", "/split", "/grow?id=", "/images", "/nothing"],
)
def test_what_does_not_exist_is_told(client: AsgiClient, page: str) -> None:
    done = client.get(page)
    assert done.status == 404
    assert "Go to the queue" in done.text


@pytest.mark.parametrize("order", ["typical", "extremes", "uncertain", "similar", "name"])
def test_lists_have_all_images_of_a_category(client: AsgiClient, order: str) -> None:
    members = client.workbench.snapshot.answer.members("new-01").tolist()
    found = client.get(f"/api/lines?id=new-01&order={order}&near={members[0]}").json()
    assert sorted(found["lines"]) == members
    assert len(found["confidence"]) == len(found["status"]) == len(members)


def test_orders_are_what_they_say(client: AsgiClient) -> None:
    answer, space = client.workbench.snapshot.answer, client.workbench.space
    assert space is not None

    def lines(query: str) -> list[int]:
        found: list[int] = client.get(f"/api/lines?id=new-01&{query}").json()["lines"]
        return found

    members = answer.members("new-01")
    rows = space.features[members].astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    everything = space.features[:].astype(np.float64)
    mean = (everything / np.linalg.norm(everything, axis=1, keepdims=True)).mean(axis=0)
    centre = rows.mean(axis=0) - mean
    moved = rows - mean
    cosine = moved @ centre / np.linalg.norm(moved, axis=1) / np.linalg.norm(centre)
    ranked = dict(zip(members.tolist(), cosine.tolist(), strict=True))
    typical = lines("order=typical")
    assert all(ranked[a] >= ranked[b] - 1e-3 for a, b in itertools.pairwise(typical))
    assert lines("order=extremes") == typical[::-1]
    uncertain = lines("order=uncertain")
    assert answer.confidence[uncertain].tolist() == sorted(answer.confidence[members].tolist())
    assert lines(f"order=similar&near={members[3]}")[0] == members[3]
    names = [answer.files[line] for line in lines("order=name")]
    assert names == sorted(names)


def test_filters(run: Run, tmp_path: Path, make_client: MakeClient) -> None:
    _, *rows = (tmp_path / "data" / "metadata.csv").read_text().splitlines()
    files = [line.file for line in read_assignments(run)]
    more = metadata_from(
        files, {"site": ["ab"[i % 2] for i in range(len(files))], "day": [str(i) for i in range(len(files))]}
    )
    run.write_text(run.metadata_file, metadata_csv(files, more))
    client = make_client()
    assert set(client.workbench.columns) == {"site", "day"}
    found = client.get("/api/lines?column=site&value=a").json()["lines"]
    assert sorted(found) == list(range(0, len(rows), 2))
    assert client.get("/api/lines?column=truth&value=apple").status == 400
    assert client.get("/api/lines?text=IMG/0-0").json()["lines"]
    assert client.get("/api/lines?shown=labelled&id=new-01").json()["lines"] == []
    assert len(client.get("/api/lines?shown=labelled").json()["lines"]) == 8
    assert client.get("/api/lines?order=best").status == 400
    assert client.get("/api/about?line=0").json()["facts"]["site"] == "a"
    assert "site: a" in client.get("/category?id=new-01").text


def test_decisions_are_recorded_and_followed(client: AsgiClient, run: Run) -> None:
    done = client.decide(kind="rename", category="new-01", name="pear").json()
    assert done["number"] == 1
    assert "pear" in client.get("/category?id=new-01").text
    lines = client.get("/api/lines?id=new-01").json()["lines"]
    client.decide(kind="move", lines=lines[:2], into="new-02")
    assert set(client.get("/api/lines?id=new-02").json()["lines"]) >= set(lines[:2])
    client.decide(kind="split", category="new-02", groups=[lines[:2]])
    assert sorted(client.get("/api/lines?id=new-04").json()["lines"]) == sorted(lines[:2])
    client.decide(kind="merge", categories=["new-04"], into="apple")
    assert client.get("/category?id=new-04").status == 200  # a merged id leads to the category that has its images
    client.post("/api/undo", {"based_on": 0})
    assert sorted(client.get("/api/lines?id=new-04").json()["lines"]) == sorted(lines[:2])
    client.post("/api/redo", {"based_on": 0})
    client.workbench.write_answer()
    written = {line.file: line.category for line in read_assignments(run)}
    answer = client.workbench.snapshot.answer
    assert written[answer.files[lines[0]]] == "apple"
    assert written[answer.files[lines[5]]] == "pear"
    history = client.get("/history").text
    assert 'Renamed <span class="whole">new-01</span> to pear.' in history
    assert history.count("data-event=") == 4


def test_a_decision_on_an_old_view_is_refused_only_if_it_conflicts(client: AsgiClient) -> None:
    lines = client.get("/api/lines?id=new-01").json()["lines"]
    assert client.decide(kind="move", lines=lines[:1], into="new-02").status == 200
    other = {"decision": {"kind": "move", "lines": lines[1:2], "into": "new-02"}, "based_on": 0}
    assert client.post("/api/decide", other).status == 200  # another image
    same = {"decision": {"kind": "move", "lines": lines[:1], "into": "apple"}, "based_on": 0}
    refused = client.post("/api/decide", same)
    assert refused.status == 409
    assert refused.json()["code"] == "stale"
    assert client.post("/api/decide", same | {"based_on": 2}).status == 200


def test_two_categories_that_are_different_are_not_proposed_again(run: Run, make_client: MakeClient) -> None:
    features = np.array(run.features(), dtype=np.float32)
    names = [line.category for line in read_assignments(run)]
    centre = features[names.index("new-01")]
    for i in (i for i, name in enumerate(names) if name == "new-02"):
        features[i] = centre + 0.1 * np.random.default_rng(i).normal(size=len(centre))
    run.write_features(features)
    client = make_client()

    def merges() -> list[str]:
        return [part.split('"')[0] for part in client.get("/").text.split('data-href="/merge?')[1:]]

    assert any("new-01" in pair and "new-02" in pair for pair in merges())
    assert client.decide(kind="note", category="new-02", different="new-01").status == 200
    assert not any("new-01" in pair and "new-02" in pair for pair in merges())
    assert 'different from <span class="whole">new-01</span>' in client.get("/history").text


def test_approving_everything_empties_the_queue(client: AsgiClient) -> None:
    for state in client.workbench.snapshot.categories:
        client.decide(kind="approve", category=state.id)
    page = client.get("/").text
    assert "4 of 4 categories decided" in page
    assert "minute" not in page


def test_growing_records_answers_and_ends_with_a_bound(client: AsgiClient) -> None:
    growth = "0123456789"
    page = client.post("/api/grow", {"growth": growth, "category": "new-01"}).json()
    truth = {
        line for line, file in enumerate(client.workbench.snapshot.answer.files) if "/2-" in file or SCRIPT in file
    }
    for _ in range(40):
        if page["phase"] == "done":
            break
        wrong = [line for line in page["shown"] if line not in truth]
        page = client.post("/api/grow", {"growth": growth, "page": page["page"], "wrong": wrong}).json()
    assert page["phase"] == "done"
    assert page["bound"]["purity"] >= 0.95
    if page["unlooked"]:
        assert client.post("/api/grown", {"growth": growth}).status == 200
    answer = client.workbench.snapshot.answer
    confirmed = [line for line in answer.members("new-01") if answer.status[line] == "approved"]
    assert len(confirmed) == page["bound"]["n"] > 0
    assert set(answer.rejected) & truth == set()
    assert client.post("/api/grow", {"growth": growth, "page": 0, "wrong": []}).status == 404


def test_a_growth_page_is_answered_once(client: AsgiClient) -> None:
    growth = "0123456789"
    page = client.post("/api/grow", {"growth": growth, "category": "new-01"}).json()
    again = {"growth": growth, "page": page["page"], "wrong": []}
    assert client.post("/api/grow", again).status == 200
    assert client.post("/api/grow", again).status == 404
    assert client.workbench.decisions.log.last == 1


def test_growing_is_refused_after_decisions_of_other_windows(client: AsgiClient) -> None:
    growth = "0123456789"
    page = client.post("/api/grow", {"growth": growth, "category": "new-01"}).json()
    session = client.workbench.growths.get(growth)
    assert session is not None
    other = int(session.candidates[-1])  # not on this page
    client.decide(kind="junk", lines=[other])
    answer = {"growth": growth, "page": page["page"], "wrong": []}
    refused = client.post("/api/grow", answer)
    assert (refused.status, refused.json()["code"]) == (409, "stale")
    assert client.workbench.decisions.log.last == 1
    again = client.post("/api/grow", {"growth": growth, "category": "new-01"}).json()
    assert again["n_candidates"] == page["n_candidates"] - 1
    assert client.post("/api/grow", answer).status == 200


def test_growing_is_refused_after_a_decision_between_its_own(
    client: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    growth, workbench = "0123456789", client.workbench
    page = client.post("/api/grow", {"growth": growth, "category": "new-01"}).json()
    decide = workbench.decide

    def late(decision: Decision, based_on: int) -> Event:
        workbench.decisions.decide(Decision("note", text="from another window"))
        return decide(decision, based_on)

    with monkeypatch.context() as patch:
        patch.setattr(workbench, "decide", late)
        refused = client.post("/api/grow", {"growth": growth, "page": 0, "wrong": []})
    assert (refused.status, refused.json()["code"]) == (409, "stale")
    assert (workbench.snapshot.answer.status[page["shown"]] == "approved").all()  # the answers are kept


def test_images_that_nobody_looked_at_are_not_approved_after_other_decisions(client: AsgiClient) -> None:
    growth = "0123456789"
    client.post("/api/grow", {"growth": growth, "category": "new-01"})
    session = client.workbench.growths.get(growth)
    assert session is not None
    session.growth.phase, session.growth.cut = "done", len(session.candidates)
    answer = client.workbench.snapshot.answer
    lines = [line for line in session.unlooked if answer.categories[answer.category[line]].id == "apple"]
    assert lines
    client.decide(kind="approve", category="apple")
    refused = client.post("/api/grown", {"growth": growth})
    assert (refused.status, refused.json()["code"]) == (409, "stale")
    assert set(lines) <= set(client.workbench.snapshot.answer.members("apple").tolist())


@pytest.mark.parametrize("is_decided", [False, True])
def test_decisions_about_a_first_answer_are_refused_when_the_final_one_has_replaced_it(
    run: Run, make_client: MakeClient, tmp_path: Path, is_decided: bool
) -> None:
    run.write_config(run.config() | {"answer": "first"})
    client = make_client()
    if is_decided:
        assert client.decide(kind="note", text="a look").status == 200
    final, following = write_run(tmp_path / "final", tmp_path / "data", seed=5, wrong=5), run.next_answer()
    for file in (final.assignments_file, final.categories_file):
        (following.folder / file.name).write_bytes(file.read_bytes())
    following.write_config(run.config() | {"answer": "final"})
    with carry_over(run, following):
        run.adopt()
    last = client.workbench.decisions.log.last
    refused = client.decide(kind="approve", category="new-01")
    assert (refused.status, refused.json()["code"]) == (409, "stale")
    assert client.post("/api/refit", {"refit": "0123456789"}).status == 409
    assert client.workbench.decisions.log.last == last
    assert make_client().decide(kind="approve", category="new-01").status == 200


def test_images_to_check_after_those_that_were_skipped(client: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        for k, lines in enumerate(client.workbench.snapshot.members):
            if len(lines):
                state = client.workbench.snapshot.categories[k]
                client.decide(kind="reject", category=state.id, lines=lines.tolist())
    monkeypatch.setattr("newkind.review.data_routes.MOST_DOUBTFUL", 5)
    pages = [client.get(f"/api/doubtful?kind=unplaced&skip={skip}").json() for skip in ("", "5", "10", "999")]
    lines = [[image["line"] for image in page["images"]] for page in pages]
    assert len({page["n"] for page in pages}) == 1
    assert pages[0]["n"] > 10
    assert [len(own) for own in lines] == [5, 5, min(5, pages[0]["n"] - 10), 0]
    assert len(set(lines[0] + lines[1] + lines[2])) == sum(map(len, lines))
    assert client.get("/api/doubtful?kind=unplaced&skip=-1").status == 404


def test_images_to_check_have_their_choices(client: AsgiClient) -> None:
    found = client.get("/api/doubtful?kind=mislabelled").json()
    assert found["n"] == 1
    (first, _), (second, p), (third, none) = found["images"][0]["choices"]
    assert none is None  # a similar category, which has no probability
    assert len({first, second, third}) == 3
    assert found["categories"][str(first)]["name"] == "apple"
    assert found["categories"][str(second)]["name"] == "new-01"
    assert p == pytest.approx(0.94)
    assert client.get("/api/doubtful?kind=others").status == 404


def test_similar_categories_are_offered_first(client: AsgiClient) -> None:
    snapshot = client.workbench.snapshot
    for k in snapshot.shown:
        rows = client.get(f"/api/categories?near={snapshot.key(k)}").json()["categories"]
        found = [snapshot.position(row["id"]) for row in rows]
        assert found[0] == k
        assert sorted(found) == sorted(snapshot.shown)
        similarities = [float(snapshot.similarities[k, j]) for j in found[1:]]
        assert similarities == sorted(similarities, reverse=True)
    assert client.get("/api/categories?near=nothing").status == 404


def test_names_of_new_categories_are_not_broken(client: AsgiClient) -> None:
    assert '<span class="whole">new-01</span>' in client.get("/categories").text


def test_names_that_are_not_text(run: Run, make_client: MakeClient) -> None:
    """Folders may have names that are not UTF-8; they have other keys in addresses, and nothing fails."""
    name = "caf\udce9"
    rows = json.loads(run.categories_file.read_text())
    for row in rows["categories"]:
        row["name"] = name if row["name"] == "apple" else row["name"]
        row["id"] = name if row.get("id") == "apple" else row.get("id", row["name"])
    run.categories_file.write_text(json.dumps(rows))
    text = run.assignments_file.read_text().replace(",apple,", f",{name},")
    run.assignments_file.write_bytes(text.encode("utf-8", "surrogateescape"))
    client = make_client()
    key = next(row["id"] for row in client.get("/api/categories").json()["categories"] if row["id"].startswith("~"))
    for address in (f"/category?id={key}", "/", "/categories", f"/api/lines?id={key}", "/search?text=caf", "/api/map"):
        assert client.get(address).status == 200
    assert client.decide(kind="rename", category=key, name="café").status == 200
    assert "café" in client.get(f"/category?id={key}").text


def test_a_list_of_groups_for_a_split(client: AsgiClient) -> None:
    members = client.workbench.snapshot.answer.members("new-01").tolist()
    for n in ("", "&n=2", "&n=5"):
        groups = client.get(f"/api/split?id=new-01{n}").json()["groups"]
        assert len(groups) == int(n[-1]) if n else len(groups) >= 2
        assert sorted(line for group in groups for line in group["lines"]) == members
    for n in ("1", "0", "99", "x", "-1"):
        assert client.get(f"/api/split?id=new-01&n={n}").status in (400, 404)


def test_undo_and_redo_say_which_decision(client: AsgiClient) -> None:
    client.decide(kind="rename", category="new-01", name="Williams pear")
    for action in ("undo", "redo"):
        assert "Williams pear" in client.post(f"/api/{action}", {"based_on": 0}).json()["text"]
