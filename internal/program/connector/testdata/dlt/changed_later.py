import dlt
from dlt.sources.rest_api import rest_api_resources, rest_api_source


def config_of(only=None):
    profiles = {"name": "profiles", "primary_key": "id", "write_disposition": "merge", "endpoint": {"path": "profiles"}}
    if only:
        profiles["processing_steps"] = [{"filter": lambda row: row.get("id") == only}]
    headers = {"Accept": "application/json"}
    headers.update(extra_headers())
    config = {
        "client": {"base_url": "https://api.names.test", "headers": headers, "paginator": "single_page"},
        "resource_defaults": {"write_disposition": "replace", "endpoint": {"data_selector": "data"}},
        "resources": [profiles, {"name": "teams", "endpoint": {"path": "teams"}}],
    }
    config["resources"].append({"name": "users"})
    return config


@dlt.resource(name="calls", write_disposition="append")
def calls_resource():
    if {"a": 1}["a"] == 1:
        yield {"id": 1}


source = rest_api_source(config_of())
source.resources["teams"].add_map(lambda row: row)
dlt.pipeline("names").run(source.with_resources("teams"), write_disposition="append")
