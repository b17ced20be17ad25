"""Loads issues and labels of a tracker."""
import dlt
from dlt.sources.rest_api import RESTAPIConfig, rest_api_resources

API = "https://api.tracker.test"


@dlt.source
def tracker(access_token: str = dlt.secrets.value):
    config: RESTAPIConfig = {
        "client": {
            "base_url": f"{API}/v1/",  # with a slash at its end
            "auth": {"type": "bearer", "token": access_token},
            "headers": {"Accept": "application/json"},
        },
        "resource_defaults": {
            "primary_key": "id",
            "write_disposition": "merge",
            "endpoint": {
                "params": {"per_page": 2, "archived": False},
                "paginator": {"type": "json_link", "next_url_path": "paging.next"},
                "data_selector": "$.data.items",
            },
        },
        "resources": [
            {"name": "issues", "endpoint": {"path": "/issues", "params": {"state": "open", "milestone": None}}},
            "labels",
        ],
    }
    yield from rest_api_resources(config)
