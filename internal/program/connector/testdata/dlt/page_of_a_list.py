from dlt.sources.rest_api import rest_api_source

source = rest_api_source({
    "client": {"base_url": "https://api.rides.test"},
    "resources": [
        {"name": "rides", "endpoint": {"path": "rides", "paginator": {"type": "page_number", "base_page": 1, "total_path": None}}},
        {"name": "zones", "endpoint": {"path": "zones", "paginator": {"type": "offset", "limit": 2, "total_path": None}}},
    ],
})
