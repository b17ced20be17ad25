from dlt.sources.helpers.rest_client.paginators import JSONResponseCursorPaginator

hubspot = {
    "client": {"base_url": "https://api.hubapi.test/", "auth": {"type": "oauth2_client_credentials", "access_token_url": "https://api.hubapi.test/oauth", "client_id": dlt.config["id"], "client_secret": dlt.secrets["secret"]},
               "paginator": JSONResponseCursorPaginator(cursor_path="paging.next.after", cursor_param="after")},
    "resource_defaults": {"write_disposition": "merge", "primary_key": "id", "max_table_nesting": 0, "endpoint": {"params": {"limit": 2, "archived": False}}},
    "resources": [
        {"name": "contacts", "endpoint": {"path": "crm/v3/objects/contacts", "params": {"properties": "email,lastname"}, "data_selector": "results"}},
        {"name": "contact", "selected": True, "table_name": "contact_details",
         "endpoint": {"path": "crm/v3/objects/contacts/{resources.contacts.id}"}},
    ],
}
