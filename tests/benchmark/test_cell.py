"""What an explainer claims is checked against the model."""


def test_rogues_are_scored_truthfully(rogues):
    frame = rogues[2].set_index("explainer")
    assert frame.groupby("explainer").size().to_dict() == dict.fromkeys(frame.index.unique(), 6)
    assert frame.loc["honest", "valid"].all()
    assert not frame.loc["liar", "valid"].any() and (frame.loc["liar", "status"] == "invalid").all()
    assert frame.loc["liar", "message"].str.contains("claimed valid").all()
    assert frame.loc["crasher", "message"].str.contains("no bread today").all()
    assert frame.loc["dier", "message"].str.contains("exit code 3").all()
    assert not frame.loc[["crasher", "dier"], "valid"].any()


def test_a_method_that_never_ends_is_ended(hanger):
    frame = hanger[2]
    assert len(frame) == 6 and not frame["valid"].any()
    assert (frame["cell_status"] == "timeout").all()
    assert frame["message"].str.contains("ended after 4 seconds").all()


def test_nan_and_missing_rows_are_no_results(rogues):
    blank = rogues[2].query("explainer == 'blank'").sort_values("source")
    assert blank["valid"].tolist() == [False, True, False, True, False, False]
    assert blank["l2"].isna().tolist() == [True, False, True, False, True, True]
    assert blank["message"].iloc[5] == "not returned" and "NaN" in blank["message"].iloc[0]
