jira_config = {
    "client": {
        "base_url": "https://acme.jira.test/rest/api/3/",
        "auth": {"type": "http_basic", "username": dlt.secrets["email"], "password": dlt.secrets["api_token"]},
        "paginator": {"type": "offset", "limit": 2, "offset_param": "startAt", "limit_param": "maxResults", "total_path": "total"},
    },
    "resources": [
        {
            "name": "issues",
            "primary_key": "id",
            "write_disposition": "merge",
            "max_table_nesting": 0,
            "endpoint": {
                "path": "search",
                "data_selector": "$.issues",
                "params": {"fields": "*all", "jql": "updated >= '{incremental.start_value}' order by updated"},
                "incremental": {"cursor_path": "fields.updated", "initial_value": "2024-01-01", "convert": lambda v: v[:10]},
            },
        },
        {"name": "users", "write_disposition": "replace", "endpoint": {"path": "users/search", "data_selector": "[*]", "paginator": {"type": "offset", "limit": 2, "offset_param": "startAt", "limit_param": "maxResults", "total_path": None}}},
    ],
}
