config: RESTAPIConfig = {
    "client": {"base_url": "https://api.people.test/{not_formatted}", "paginator": SinglePagePaginator()},
    "resources": [
        {"name": "people", "selected": False, "endpoint": {"path": "teams/{team}/people", "params": {"team": dlt.config["team"], "active": True}, "data_selector": "people"}},
        {
            "name": "details",
            "primary_key": "id",
            "write_disposition": "merge",
            "endpoint": {
                "path": "people/{person_id}",
                "params": {"person_id": {"type": "resolve", "resource": "people", "field": "id"}},
                "response_actions": [
                    {"status_code": 404, "action": "ignore"},
                    {"status_code": 200, "content": "withdrawn", "action": "ignore"},
                ],
            },
        },
    ],
}
