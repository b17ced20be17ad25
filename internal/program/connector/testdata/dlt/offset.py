config = {
    "client": {
        "base_url": "https://api.users.test/v2",
        "auth": ("user", "secret-password"),
    },
    "resources": [
        {
            "name": "users",
            "endpoint": {
                "path": "users",
                "data_selector": "users",
                "auth": {"type": "http_basic", "username": dlt.secrets["user"], "password": dlt.secrets["password"]},
                "paginator": {"type": "offset", "limit": 2},
            },
            "primary_key": ("tenant", "id"),
            "write_disposition": {"disposition": "merge", "strategy": "upsert"},
        },
        {
            "name": "groups",
            "endpoint": {
                "path": "groups",
                "auth": HttpBasicAuth("user", dlt.secrets["password"]),
                "data_selector": "groups",
                "paginator": OffsetPaginator(2, offset=1, offset_param="skip", limit_param="take", total_path=None, maximum_offset=5),
            },
            "primary_key": "id",
            "write_disposition": "merge",
        },
    ],
}
