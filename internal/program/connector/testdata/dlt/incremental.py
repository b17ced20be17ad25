config: RESTAPIConfig = {
    "client": {"base_url": "https://api.orders.test", "auth": BearerTokenAuth(dlt.secrets["token"])},
    "resources": [
        {
            "name": "orders",
            "primary_key": "id",
            "write_disposition": "merge",
            "endpoint": {
                "path": "orders",
                "data_selector": "orders",
                "paginator": {"type": "json_link"},
                "params": {
                    "since": {"type": "incremental", "cursor_path": "updated_at", "initial_value": "2024-01-01T00:00:00Z"},
                },
            },
        },
        {
            "name": "events",
            "primary_key": "id",
            "endpoint": {
                "path": "events",
                "data_selector": "events",
                "paginator": "single_page",
                "params": {"after": "{incremental.start_value}", "sort": "id"},
                "incremental": {"cursor_path": "meta.seq", "initial_value": 0},
            },
        },
    ],
}
