config: RESTAPIConfig = {
    "client": {
        "base_url": "https://api.repos.test",
        "headers": {"Authorization": f"token {dlt.secrets['repos_token']}", "Accept": "application/json"},
        "paginator": HeaderLinkPaginator(),
    },
    "resources": [
        {
            "name": "repos",
            "write_disposition": "replace",
            "endpoint": {"path": "orgs/acme/repos", "params": {"per_page": 2}, "data_selector": "$"},
        },
        {
            "name": "events",
            "write_disposition": "replace",
            "endpoint": {"path": "events", "data_selector": "[*]", "paginator": {"type": "header_cursor", "cursor_key": "X-Next", "cursor_param": "after"}},
        },
    ],
}
