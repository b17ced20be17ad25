from dlt.sources.helpers.rest_client.auth import HttpBasicAuth
import dlt

config = {
    "client": {
        "base_url": "https://api.stripe.test/v1",
        "auth": HttpBasicAuth(dlt.secrets["stripe_key"], ""),
        "paginator": {"type": "cursor", "cursor_path": "data[-1].id", "cursor_param": "starting_after", "has_more_path": "has_more", "stop_after_empty_page": True},
    },
    "resource_defaults": {"endpoint": {"params": {"limit": 100}, "data_selector": "data"}, "max_table_nesting": 0},
    "resources": [
        {
            "name": "charges",
            "primary_key": "id",
            "write_disposition": "merge",
            "endpoint": {
                "path": "charges",
                "incremental": {"cursor_path": "created", "initial_value": 1704067200, "start_param": "created[gte]", "lag": 3600},
            },
        },
        {"name": "balance", "write_disposition": "replace", "endpoint": {"path": "balance", "paginator": "single_page", "data_selector": "$", "params": {"limit": None}}},
    ],
}
