from dlt.sources.helpers.rest_client.paginators import JSONLinkPaginator

zendesk = {
    "client": {"base_url": f"https://acme.zendesk.test/api/v2/", "auth": {"type": "api_key", "name": "X-Api-Key", "api_key": dlt.secrets["key"], "location": "header"},
               "paginator": JSONLinkPaginator(next_url_path="links.next")},
    "resource_defaults": {"primary_key": "id", "write_disposition": "merge", "max_table_nesting": 0},
    "resources": [
        {"name": "tickets", "endpoint": {"path": "tickets.json", "params": {"page[size]": 2}, "data_selector": "tickets"},
         "columns": {"updated_at": {"data_type": "timestamp"}, "spam": {"data_type": "bool"}}},
        {"name": "audits", "table_name": "ticket_audits", "primary_key": ["ticket_id", "id"],
         "endpoint": {"path": "tickets/{ticket_id}/audits", "data_selector": "audits",
                      "params": {"ticket_id": {"type": "resolve", "resource": "tickets", "field": "id"}, "include": "users"},
                      "response_actions": [{"status_code": 200, "content": "is archived", "action": "ignore"}, {"status_code": 403, "action": "ignore"}]},
         "processing_steps": [{"filter": lambda audit: audit["id"] > 1}]},
    ],
}
