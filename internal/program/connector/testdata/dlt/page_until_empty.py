from dlt.sources.helpers.rest_client.paginators import PageNumberPaginator
from dlt.sources.rest_api import rest_api_source

source = rest_api_source({
    "client": {"base_url": "https://api.albums.test", "paginator": PageNumberPaginator(base_page=1, total_path=None)},
    "resources": [
        {"name": "albums", "endpoint": {"path": "albums", "data_selector": "$"}, "write_disposition": "replace"},
        {"name": "songs", "endpoint": {"path": "songs", "data_selector": "songs", "paginator": {"type": "page_number", "has_more_path": "more", "total_path": None}}},
    ],
})
