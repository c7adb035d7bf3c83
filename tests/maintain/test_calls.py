from reconciler.maintain.calls import Call, Procedure, Time


def test_names_and_texts_of_users_are_quoted() -> None:
    call = Call(Procedure.REWRITE_DATA_FILES, {"sort_order": "it's \\ a", "options": {"a'b": "1"}})
    assert call.statement("arco", ("a`b", "c.d", "t")) == (
        "CALL `arco`.system.rewrite_data_files(table => '`arco`.`a``b`.`c.d`.`t`', "
        "sort_order => 'it\\'s \\\\ a', options => map('a\\'b', '1'))"
    )


def test_numbers_booleans_and_times_are_literals() -> None:
    call = Call(Procedure.EXPIRE_SNAPSHOTS, {"older_than": Time(1_234), "retain_last": 2, "stream_results": True})
    assert call.statement("arco", ("db", "t")) == (
        "CALL `arco`.system.expire_snapshots(table => '`arco`.`db`.`t`', "
        "older_than => TIMESTAMP '1970-01-01 00:00:01.234 UTC', retain_last => 2, stream_results => true)"
    )
    assert call.to_json() == {"older_than": "1970-01-01 00:00:01.234 UTC", "retain_last": 2, "stream_results": True}
