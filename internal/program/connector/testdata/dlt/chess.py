chess = {
    "client": {"base_url": "https://api.chess.test/pub", "paginator": {"type": "page_number", "base_page": 1, "page_param": "page", "total_path": None, "has_more_path": "more"}},
    "resources": [
        {"name": "players", "write_disposition": "replace", "primary_key": "username", "max_table_nesting": 0,
         "endpoint": {"path": "titled/{title}", "params": {"title": "GM"}, "data_selector": "players"}},
        {"name": "profiles", "write_disposition": {"disposition": "merge"}, "primary_key": "player_id", "max_table_nesting": 0,
         "endpoint": {"path": "player/{username}", "params": {"username": {"type": "resolve", "resource": "players", "field": "username"}},
                      "response_actions": [{"status_code": 404, "action": "ignore"}, {"content": "closed", "action": "ignore"}]}},
    ],
}
