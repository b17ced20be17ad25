import dlt
from dlt.sources.helpers.rest_client.paginators import JSONLinkPaginator
from dlt.sources.rest_api import rest_api_resources


@dlt.source
def phone_source(account_sid: str = dlt.secrets.value, token: str = dlt.secrets.value):
    yield from rest_api_resources({
        "client": {
            "base_url": f"https://api.phone.test/accounts/{account_sid}/",
            "auth": {"type": "bearer", "token": token},
            "paginator": JSONLinkPaginator(next_url_path="next"),
        },
        "resources": [
            {"name": "queues", "primary_key": "id", "write_disposition": "merge", "endpoint": {"path": "queues", "data_selector": "queues"}},
            {"name": "calls", "endpoint": {"path": "calls", "data_selector": "calls", "paginator": "single_page"}},
        ],
    })
