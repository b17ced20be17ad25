slack = {
    "client": {"base_url": "https://slack.test/api", "auth": {"token": dlt.secrets["slack_token"]},
               "paginator": {"type": "cursor", "cursor_path": "response_metadata.next_cursor", "cursor_param": "cursor"}},
    "resources": [
        {"name": "channels", "primary_key": "id", "write_disposition": "replace", "max_table_nesting": 0,
         "endpoint": {"path": "conversations.list", "params": {"types": ["public_channel", "private_channel"], "exclude_archived": True}, "data_selector": "channels"}},
        {"name": "messages", "primary_key": ["channel", "ts"], "write_disposition": "append", "max_table_nesting": 0,
         "endpoint": {"path": "conversations.history", "params": {"channel": "{resources.channels.id}", "limit": 200}, "data_selector": "messages"},
         "include_from_parent": ["name"]},
    ],
}
