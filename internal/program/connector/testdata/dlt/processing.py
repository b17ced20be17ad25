from .own import MyPaginator, MyAuth, lower_title


def keep(row):
    return row["id"] < 10


config: RESTAPIConfig = {
    "client": {"base_url": "https://api.posts.test", "auth": MyAuth("very-secret-token"), "session": session, "paginator": "single_page"},
    "resources": [
        {
            "name": "posts",
            "table_name": "blogPosts",
            "max_table_nesting": 0,
            "columns": {"published": {"data_type": "timestamp"}, "stars": {"data_type": "bigint", "nullable": True}},
            "schema_contract": {"columns": "evolve", "data_type": "freeze"},
            "endpoint": {"path": "posts", "data_selector": "posts"},
            "write_disposition": "replace",
            "processing_steps": [
                {"filter": lambda x: x["id"] < 10 and x["author"] in ["Ada", "Bob"]},
                {"map": lower_title},
                {"filter": lambda x: "important" in x["title"]},
            ],
        },
        {"name": "drafts", "write_disposition": {"disposition": "merge", "strategy": "scd2"}, "merge_key": "author", "primary_key": "id",
         "endpoint": {"path": "drafts", "data_selector": "$..drafts", "paginator": MyPaginator(),
                      "response_actions": [keep, {"status_code": 200, "action": keep}],
                      "params": {"since": {"type": "incremental", "cursor_path": "at", "convert": lambda at: at[:10]}, "to": 5 * 60}}},
        {"name": "authors", "write_disposition": "merge", "primary_key": "id", "max_table_nesting": 0, "endpoint": {"path": "authors", "data_selector": "authors"},
         "processing_steps": [{"map": lower_title}, {"filter": lambda x: x["name"] != "Eve"}]},
        some_resource(),
    ],
}
