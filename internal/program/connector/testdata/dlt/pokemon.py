pokemon = {
    "client": {"base_url": "https://pokeapi.test/api/v2/", "paginator": "json_link"},
    "resource_defaults": {"endpoint": {"params": {"limit": 2}, "data_selector": "results"}, "write_disposition": "replace"},
    "resources": ["berry", {"name": "location", "endpoint": "location"},
        {"name": "details", "endpoint": {"path": "{resources.berry.url}", "data_selector": "$", "paginator": "single_page"}, "write_disposition": "append", "max_table_nesting": 0}],
}
