import dlt
from dlt.sources.rest_api import RESTAPIConfig, rest_api_source


@dlt.source(name="github")
def github_source(access_token: str = dlt.secrets.value):
    config: RESTAPIConfig = {
        "client": {
            "base_url": "https://api.github.test/",
            "auth": {"type": "bearer", "token": access_token},
            "paginator": "header_link",
            "headers": {"Accept": "application/vnd.github+json"},
        },
        "resource_defaults": {
            "primary_key": "id",
            "write_disposition": "merge",
            "max_table_nesting": 0,
            "endpoint": {"params": {"per_page": 100}, "data_selector": "$"},
        },
        "resources": [
            {"name": "repos", "endpoint": {"path": "orgs/acme/repos", "params": {"per_page": 2}}},
            {
                "name": "issues",
                "endpoint": {
                    "path": "repos/{resources.repos.full_name}/issues",
                    "params": {
                        "state": "open",
                        "sort": "updated",
                        "since": {"type": "incremental", "cursor_path": "updated_at", "initial_value": "2024-01-25T11:21:28Z"},
                    },
                    "response_actions": [{"status_code": 404, "action": "ignore"}, {"status_code": 410, "action": "ignore"}],
                },
                "include_from_parent": ["full_name"],
            },
            {
                "name": "issue_comments",
                "primary_key": ["issue", "id"],
                "endpoint": {
                    "path": "{comments_url}",
                    "params": {"comments_url": {"type": "resolve", "resource": "issues", "field": "comments_url"}},
                    "paginator": {"type": "header_link", "links_next_key": "next"},
                    "data_selector": "[*]",
                },
            },
        ],
    }
    return rest_api_source(config)
