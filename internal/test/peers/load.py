"""Loads the rows of the API with dlt: API, ELEMENTS, PAGES."""
import sys

import dlt
from dlt.sources.rest_api import rest_api_resources


def main(api: str, elements: int, pages: int) -> None:
    endpoint = {
        "data_selector": "rows",
        "paginator": {"type": "page_number", "base_page": 1, "total_path": None, "has_more_path": "has_more"},
    }
    rows = {"name": "loaded", "primary_key": "id", "write_disposition": "merge"}
    if elements == 0:
        resources = [rows | {"endpoint": endpoint | {"path": "rows"}}]
    else:
        ids = dlt.resource([{"n": n} for n in range(elements)], name="ids", selected=False)
        resources = [ids, rows | {"endpoint": endpoint | {"path": "elements/{resources.ids.n}/rows"}}]
    source = rest_api_resources({"client": {"base_url": api + "/"}, "resources": resources})
    pipeline = dlt.pipeline("peers", destination="postgres", dataset_name="public")
    pipeline.run(source, loader_file_format="csv")


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
