pipeline = dlt.pipeline(pipeline_name="pokemon", destination="duckdb")
source = rest_api_source(
    {
        "client": {"base_url": "https://pokeapi.test/api/v2/", "auth": OAuth2ClientCredentials(access_token_url="https://login.test/token", client_id=dlt.secrets["id"],
            client_secret=dlt.secrets["key"], access_token_request_data={"scope": "read write", "tenant": "t"})},
        "resource_defaults": {"endpoint": {"params": {"limit": 1000}}},
        "resources": ["pokemon", {"name": "berry", "endpoint": "berry/{resources.pokemon.name}"}],
    }
)
