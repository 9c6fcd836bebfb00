from __future__ import annotations

import json

import pandas as pd
import pytest

from openset.review.exchange import export_rows, import_labels


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.jsonl"])
def test_rows_go_out_and_their_labels_come_back(session, truth, tmp_path, name):
    path = tmp_path / name
    assert export_rows(session, path, rows=30) == 60
    read = {".parquet": pd.read_parquet, ".csv": pd.read_csv, ".jsonl": lambda p: pd.read_json(p, lines=True)}
    rows = read[path.suffix](path)
    assert set(rows["queue"]) == {"estimate", "explore"} and "column_width" in rows
    rows["label"] = ["kettle" if truth[row] == "new" else truth[row] for row in rows["row"]]
    rows.loc[0, "label"] = "skip"
    rows.loc[1, "label"] = ""
    back = tmp_path / "labels.csv"
    rows[["id", "label"]].to_csv(back, index=False)
    assert import_labels(session, back) == 59
    numbers = session.numbers()
    assert numbers.answers == 59 and numbers.skipped == 1 and "kettle" in session.state.names
    assert session.labels()[int(rows["row"][5])][0] == rows["label"][5]
    assert len(session.undo(annotator="import")) == 59


def test_label_studio_gets_tasks_and_gives_annotations(session, truth, tmp_path):
    session.new(7, "kettle")
    export_rows(session, tmp_path / "tasks.json", rows=5)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert all("id" in task["data"] and "answer" not in task["data"] for task in tasks)
    (answered,) = [task for task in tasks if "predictions" in task]
    assert answered["predictions"][0]["result"][0]["value"]["choices"] == ["kettle"]
    for task in tasks:
        choice = {"value": {"choices": [truth[task["data"]["row"]]]}, "type": "choices"}
        task["annotations"] = [{"completed_by": {"email": "ann@example.org"}, "result": [choice]}]
    tasks[0]["annotations"][0]["was_cancelled"] = True
    (tmp_path / "done.json").write_text(json.dumps(tasks))
    assert import_labels(session, tmp_path / "done.json") == len(tasks)
    assert "ann@example.org" in session.state.rows[tasks[1]["data"]["row"]].annotators
    assert all(label != "new" for label, _ in session.labels().values())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,kind\nt1,cat\n", "labels need 'label', and 'id' or 'row'"),
        ("id,label\nnobody,cat\nt1,cat\n", "1 labels are of rows that the target does not have: nobody"),
        ("row,label\n9999,cat\n", "does not have: 9999"),
        ("row,label\n1," + "x" * 100 + "\n", "1 to 80 characters"),
    ],
)
def test_a_wrong_file_saves_nothing(session, tmp_path, content, message):
    (tmp_path / "labels.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        import_labels(session, tmp_path / "labels.csv")
    assert session.state.rows == {}


def test_a_json_of_something_else_is_refused(session, tmp_path):
    (tmp_path / "labels.json").write_text('{"a": 1}')
    with pytest.raises(ValueError, match="no list of Label Studio's tasks"):
        import_labels(session, tmp_path / "labels.json")
