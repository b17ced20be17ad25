shop_url = dlt.config["shop_url"]
shopify = {
    "client": {"base_url": "https://acme.shopify.test/admin/api/2024-01/", "auth": {"type": "api_key", "name": "X-Api-Key", "api_key": dlt.secrets["private_app_password"]},
               "paginator": {"type": "header_link"}},
    "resource_defaults": {"primary_key": "id", "write_disposition": "merge"},
    "resources": [
        {"name": "orders", "endpoint": {"path": "orders.json", "data_selector": "orders",
                                        "params": {"limit": 250, "status": "any", "updated_at_min": "{incremental.start_value}"},
                                        "incremental": {"cursor_path": "updated_at", "initial_value": "2024-01-01T00:00:00Z", "on_cursor_value_missing": "exclude"}}},
    ],
}
