config: RESTAPIConfig = {
    "client": {"base_url": "https://api.work.test", "paginator": "single_page"},
    "resource_defaults": {"write_disposition": "replace", "endpoint": {"data_selector": "items"}},
    "resources": [
        {
            "name": "tasks",
            "endpoint": {"path": "projects/{resources.projects.id}/tasks", "params": {"owner": "{resources.projects.owner.login}"}},
            "include_from_parent": ["title"],
        },
        "projects",
        {
            "name": "comments",
            "endpoint": {
                "path": "comments",
                "method": "POST",
                "json": {"task": "{resources.tasks.id}", "project": "p-{resources.tasks._projects_title}", "limit": 5},
            },
        },
        {
            "name": "notes",
            "endpoint": {"path": "notes", "params": {"project": "{resources.projects.id}"}},
        },
    ],
}
