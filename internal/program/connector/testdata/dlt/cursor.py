config: RESTAPIConfig = {
    "client": {
        "base_url": "https://api.notes.test",
        "auth": APIKeyAuth(name="api_key", api_key=dlt.secrets["notes.api_key"], location="query"),
        "paginator": "cursor",
    },
    "resources": [
        {
            "name": "notes",
            "primary_key": "id",
            "write_disposition": "merge",
            "endpoint": {
                "path": "notes/search",
                "method": "POST",
                "json": {"filter": {"kind": "text"}, "page": {"size": 2}},
                "data_selector": "results",
                "paginator": JSONResponseCursorPaginator(cursor_path="page.next", cursor_body_path="page.after"),
            },
        },
        {"name": "tags", "primary_key": "id", "write_disposition": "merge", "endpoint": {"data_selector": "tags[*]"}},
    ],
}
