package scaffold_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/scaffold"
)

const openAPI31 = `openapi: 3.1.0
info: {title: t, version: "1"}
servers: [{url: "https://{region}.api.test/{version}/", variables: {region: {default: eu}, version: {default: v2}}}]
security: [{key: []}]
paths:
  /teams/{team-id}/members:
    parameters:
      - {$ref: "#/components/parameters/Team"}
      - {name: X-Version, in: header, required: true, schema: {type: string, const: "2024-01"}}
    get:
      operationId: listMembers
      summary: |
        Members of a team

        More text with {{ braces }}.
      parameters:
        - {$ref: "#/components/parameters/Cursor"}
        - {name: filter, in: query, required: true, schema: {type: [string, "null"], examples: [active]}}
      responses:
        "200":
          description: ok
          content:
            application/json:
              schema:
                allOf:
                  - {$ref: "#/components/schemas/Paged"}
                  - type: object
                    properties: {members: {type: array, items: {$ref: "#/components/schemas/Member"}}}
components:
  parameters:
    Team: {name: team-id, in: path, required: true, schema: {type: integer}}
    Cursor: {name: cursor, in: query, schema: {type: string}}
  schemas:
    Paged: {type: object, properties: {next_cursor: {type: [string, "null"]}, has_more: {type: boolean}}}
    Member:
      allOf:
        - {type: object, properties: {id: {type: string, format: uuid}}}
        - {type: object, properties: {name: {type: string}, boss: {$ref: "#/components/schemas/Member"}, secret: {type: string, example: SECRETa1b2}}}
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Team-Key}
`

const openAPI30 = `openapi: 3.0.3
info: {title: t, version: "1"}
servers: [{url: "https://me:SECRETpw1@api.test/base?api_key=SECRETa1b2c3"}]
paths:
  /jobs:
    post:
      security: [{oauth: [read]}]
      requestBody: {$ref: "#/components/requestBodies/Job"}
      responses:
        "201": {$ref: "#/components/responses/Job"}
components:
  requestBodies:
    Job: {content: {application/json: {schema: {$ref: "#/components/schemas/Job"}, example: {name: x, api_key: SECRETa1b2, callback: "https://x.test/?token=SECRETa1b2c3"}}}}
  responses:
    Job: {description: made, content: {application/json: {schema: {$ref: "#/components/schemas/Job"}}}}
  schemas:
    Job: {type: object, properties: {id: {type: integer}, status: {type: string, enum: [queued, done]}}}
  securitySchemes:
    oauth: {type: oauth2, flows: {clientCredentials: {tokenUrl: "https://auth.test/token", scopes: {read: r}}}}
`

const swagger20 = `swagger: "2.0"
info: {title: t, version: "1"}
host: api.test
basePath: /v1
schemes: [https]
securityDefinitions:
  key: {type: apiKey, in: query, name: appid}
security: [{key: []}]
parameters:
  page: {name: page, in: query, type: integer, default: 1}
paths:
  /items:
    get:
      operationId: items
      produces: [application/json]
      parameters:
        - {$ref: "#/parameters/page"}
        - {name: per_page, in: query, type: integer, maximum: 50}
      responses:
        200:
          description: ok
          schema:
            type: object
            properties:
              total_pages: {type: integer}
              items: {type: array, items: {$ref: "#/definitions/Item"}}
definitions:
  Item: {type: object, required: [id], properties: {id: {type: integer}, tags: {type: array, items: {type: string}}}}
`

// TestOpenAPIShapes: references within a document, allOf, types of 3.1, servers with variables, and how each
// version says what logs in.
func TestOpenAPIShapes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		document, operation, style string
		has                        []string // in the playbook
		form                       string   // of the connection, "" for none
	}{
		"3.1": {
			openAPI31, "listMembers", scaffold.StyleCursor,
			[]string{`api: "https://eu.api.test"`, "/v2/teams/{{ team_id }}/members", `x-version: "2024-01"`, "filter: active", "cursor: \"{{ response.next_cursor }}\""},
			"header:X-Team-Key: VALUE@https://eu.api.test",
		},
		"3.0": {openAPI30, "POST /jobs", "-", []string{"method: POST", `api: "https://api.test"`, "/base/jobs"}, `{"oauth2": {"token_url": "https://auth.test/token", "client_id": "ID", "client_secret": "SECRET"}}`},
		"2.0": {swagger20, "items", scaffold.StylePage, []string{"https://api.test", "/v1/items", "appid: \"{{ appid }}\"", "per_page"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, err := scaffold.ReadOpenAPI([]byte(row.document), "")
			require.NoError(t, err)
			of, err := document.DescribeOperation(row.operation)
			require.NoError(t, err)
			made := checked(t, of, scaffold.Options{Name: "rows"})
			require.Equal(t, row.style, styleOf(made), "%s", made.Playbook)
			for _, want := range row.has {
				require.Contains(t, string(made.Playbook), want)
			}
			if row.form == "" {
				require.Empty(t, made.Connections)
				return
			}
			require.Equal(t, row.form, made.Connections[0].Form)
		})
	}
}

// TestOpenAPIElsewhere: what a document does not have itself is not fetched, and the message says so.
func TestOpenAPIElsewhere(t *testing.T) {
	t.Parallel()
	_, err := scaffold.ReadOpenAPI([]byte(`{"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {"/a": {"$ref": "file:///etc/passwd"}}}`), "")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "root:")
}
