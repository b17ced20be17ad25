package http_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/format"
	"reprise/activities/tooltest"
)

func zstandard(t *testing.T, text string) string {
	t.Helper()

	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return string(w.EncodeAll([]byte(text), nil))
}

// parquetText is a row as Parquet.
func parquetText(t *testing.T) string {
	t.Helper()

	id, err := format.NewParquetColumn("id", "text")
	require.NoError(t, err)

	name := id
	name.Name = "name"

	var content strings.Builder

	w, err := format.NewParquetWriter(&content, []format.ParquetColumn{id, name}, "")
	require.NoError(t, err)
	require.NoError(t, w.WriteRows([]any{map[string]any{"id": "1", "name": "Ana"}}))
	require.NoError(t, w.Close())
	return content.String()
}

// TestHTTPFormats: the author's word counts, then the content type, then the name, and
// packed bytes are what they are.
func TestHTTPFormats(t *testing.T) {
	t.Parallel()

	row := []any{map[string]any{"id": "1", "name": "Ana"}}
	numbered := []any{map[string]any{"id": 1}}

	for name, test := range map[string]struct {
		path, contentType, disposition, body string
		fields                               map[string]any
		want                                 any
	}{
		"text/csv":                         {"", "text/csv", "", "id,name\n1,Ana\n", nil, row},
		"CSV by the author":                {"", "text/plain", "", "id,name\n1,Ana\n", map[string]any{"format": "csv"}, row},
		"CSV of another kind":              {"", "text/plain", "", "id;name\n1;Ana\n", map[string]any{"csv": map[string]any{"delimiter": ";"}}, row},
		"its charset is that of the field": {"", "text/csv; charset=utf-8", "", "id\ncaf\xe9", map[string]any{"csv": map[string]any{"encoding": "windows-1252"}}, []any{map[string]any{"id": "café"}}},
		"CSV as text":                      {"", "text/csv", "", "id\n1\n", map[string]any{"format": "text"}, "id\n1\n"},
		"CSV without rows":                 {"", "text/csv", "", "", nil, []any{}},
		"JSON as text":                     {"", "application/json", "", "[1]", map[string]any{"format": "text"}, "[1]"},
		"JSON by the author":               {"", "text/html", "", `[{"id": 1}]`, map[string]any{"format": "json"}, numbered},
		"ndjson":                           {"", "application/x-ndjson", "", "{\"id\": 1}\n", nil, numbered},
		"no lines":                         {"", "application/x-ndjson", "", "", nil, []any{}},
		"octets with a name":               {"/orders.json", "application/octet-stream", "", `[{"id": 1}]`, nil, numbered},
		"a name and a query":               {"/orders.csv?day=1", "application/octet-stream", "", "id,name\n1,Ana", nil, row},
		"the name that the answer says":    {"/download", "application/octet-stream", `attachment; filename="orders.csv"`, "id,name\n1,Ana", nil, row},
		"the content type says more":       {"/orders.json", "text/plain", "", "[1]", nil, "[1]"},
		"packed JSON as gzip":              {"/orders.json.gz", "application/gzip", "", tooltest.Gzip(`[{"id": 1}]`), nil, numbered},
		"packed JSON as octets":            {"/orders.json.gz", "application/octet-stream", "", tooltest.Gzip(`[{"id": 1}]`), nil, numbered},
		"packed JSON without a name":       {"/export", "application/gzip", "", tooltest.Gzip(`[{"id": 1}]`), nil, numbered},
		"packed JSON Lines":                {"/export", "application/gzip", "", tooltest.Gzip("{\"id\": 1}\n{\"id\": 2}\n"), nil, []any{map[string]any{"id": 1}, map[string]any{"id": 2}}},
		"packed CSV":                       {"/orders.csv.zst", "application/zstd", "", zstandard(t, "id,name\n1,Ana\n"), nil, row},
		"compression":                      {"/x", "text/csv", "", zstandard(t, "id,name\n1,Ana\n"), map[string]any{"compression": "zstd"}, row},
		"an archive of CSV":                {"/export", "application/zip", "", tooltest.Zip(t, [2]string{"orders.csv", "id,name\n1,Ana\n"}), nil, row},
		"a member of an archive":           {"/export.zip", "application/octet-stream", "", tooltest.Zip(t, [2]string{"a.txt", "x"}, [2]string{"b/orders.json", `[{"id": 1}]`}), map[string]any{"member": "*.json"}, numbered},
		"Parquet":                          {"", "application/vnd.apache.parquet", "", parquetText(t), nil, row},
		"Parquet by its name":              {"/orders.parquet", "application/octet-stream", "", parquetText(t), nil, row},
		"Parquet by the author":            {"", "text/plain", "", parquetText(t), map[string]any{"format": "parquet"}, row},
		"packed Parquet":                   {"/orders.parquet.gz", "application/octet-stream", "", tooltest.Gzip(parquetText(t)), nil, row},
		"XML":                              {"", "text/xml; charset=utf-8", "", "<r><id>1</id></r>", nil, map[string]any{"r": map[string]any{"id": "1"}}},
		"XML with lists":                   {"", "text/plain", "", "<r><id>1</id></r>", map[string]any{"xml": map[string]any{"lists": "id"}}, map[string]any{"r": map[string]any{"id": []any{"1"}}}},
		"XML in its own charset":           {"", "application/xml", "", "<?xml version='1.0' encoding='windows-1252'?><r>\x80</r>", nil, map[string]any{"r": "€"}},
		"XML as text":                      {"", "application/xml", "", "<r/>", map[string]any{"format": "text"}, "<r/>"},
		"one column with a sign":           {"", "text/csv", "", "id;v\n1;a\n", map[string]any{"csv": map[string]any{"delimiter": ","}}, []any{map[string]any{"id;v": "1;a"}}},
		"an empty answer in XML":           {"", "application/xml", "", "", nil, nil},
		"an empty file":                    {"/x.json.gz", "application/gzip", "", "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				if test.disposition != "" {
					w.Header().Set("Content-Disposition", test.disposition)
				}
				_, _ = io.WriteString(w, test.body)
			})
			fields := map[string]any{"url": url + test.path}
			for field, value := range test.fields {
				fields[field] = value
			}

			result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(fields)(t))
			require.NoError(t, err)
			require.Equal(t, test.want, result.Data.Data)
		})
	}
}

// TestHTTPFormatsThatAreNot: what is not of its format is an error with its line, and
// an answer that failed is told as ever.
func TestHTTPFormatsThatAreNot(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		body   string
		fields map[string]any
		class  string
		typ    string
		says   string
	}{
		"json":              {"{\n]", map[string]any{"format": "json"}, "retryable", "invalid_json", "is declared as JSON but is not: not JSON: "},
		"jsonl":             {"{}\n{", map[string]any{"format": "jsonl"}, "retryable", "invalid_jsonl", "cannot be read as JSON Lines: line 2: not JSON"},
		"csv":               {"a,b\n1", map[string]any{"format": "csv"}, "retryable", "invalid_csv", "cannot be read as CSV: line 2: 1 value, and there are 2 columns"},
		"another delimiter": {"id;v\n1;a\n", map[string]any{"format": "csv"}, "retryable", "invalid_csv", "line 1: there is one column, \"id;v\"; if ';' separates columns, write csv: {delimiter: \";\"}"},
		"and no header":     {"1|a\n", map[string]any{"format": "csv", "csv": map[string]any{"header": false}}, "retryable", "invalid_csv", "line 1: there is one column, \"1|a\"; if '|' separates columns"},
		"a page as CSV":     {"<!DOCTYPE html>\n<p>log in</p>\n", map[string]any{"format": "csv"}, "retryable", "invalid_csv", "line 1: the text is HTML, and not CSV"},
		"a page as rows":    {"<HTML>\n<p>log in</p>\n", map[string]any{"format": "csv", "csv": map[string]any{"header": false}}, "retryable", "invalid_csv", "line 1: the text is HTML"},
		"xml":               {"<a>", map[string]any{"format": "xml"}, "retryable", "invalid_xml", "cannot be read as XML: line 1: the element a does not end"},
		"several members":   {tooltest.Zip(t, [2]string{"a.csv", ""}, [2]string{"b.csv", ""}), nil, "final", "compression", "it has 2 files, \"a.csv\", \"b.csv\"; name one with member"},
		"a torn archive":    {tooltest.Zip(t, [2]string{"a.csv", "a"})[:60], nil, "retryable", "", "the archive cannot be read: zip: not a valid zip file"},
		"a bomb of zip":     {tooltest.Zip(t, [2]string{"a.csv", strings.Repeat("a", 5000)}), nil, "final", "", "is larger than the limit of 2000 bytes"},
		"not packed":        {"text", map[string]any{"compression": "gzip"}, "final", "compression", "cannot be unpacked: the bytes are not gzip"},
		"packed, as it is":  {tooltest.Gzip("text"), map[string]any{"compression": "none", "format": "text"}, "final", "not_text", "is not text"},
		"a bomb":            {zstandard(t, strings.Repeat("a", 5000)), nil, "final", "", "is larger than the limit of 2000 bytes"},
		"torn":              {zstandard(t, strings.Repeat("a", 5000))[:12], nil, "retryable", "eof", "the body was cut short"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := activities.NewCatalogue(activities.Resources{MaxResponseBytes: 2000})
			t.Cleanup(func() { require.NoError(t, c.Close()) })

			url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				if r.URL.Path == "/missing" {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, `{"why": "gone"}`)
					return
				}
				_, _ = io.WriteString(w, test.body)
			})
			fields := map[string]any{"url": url}
			for field, value := range test.fields {
				fields[field] = value
			}

			_, err := tooltest.CallHTTP(t, c, tooltest.Input(fields)(t))
			object := tooltest.ErrorObject(t, err)
			require.Contains(t, object.Message, test.says)
			require.Equal(t, [2]string{test.class, test.typ}, [2]string{string(object.Class), object.Type})

			fields["url"] = url + "/missing"
			_, err = tooltest.CallHTTP(t, c, tooltest.Input(fields)(t))
			object = tooltest.ErrorObject(t, err)
			require.Equal(t, 404, object.Status)
			require.Equal(t, map[string]any{"why": "gone"}, object.Body.Data)
		})
	}
}

// TestUnchangedThatNobodyAsked: HTTP 304 is an answer to a condition only; else it would look like a page without rows.
func TestUnchangedThatNobodyAsked(t *testing.T) {
	t.Parallel()
	url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": url})(t))
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, [2]string{"retryable", "not_modified"}, [2]string{string(object.Class), object.Type})
	result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": url, "headers": map[string]any{"If-None-Match": `"a"`}})(t))
	require.NoError(t, err)
	require.Nil(t, result.Data.Data)
}

// TestPartsThatNobodyRequested: some bytes of a body are not the answer to a request for all of them; rows of more are a page.
func TestPartsThatNobodyRequested(t *testing.T) {
	t.Parallel()
	url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Range", r.URL.Query().Get("part"))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, `[{"id": 1}]`)
	})
	for part, fails := range map[string]bool{"bytes 0-10/100": true, "bytes 0-10/*": true, "items 0-0/5": false, "0-0/5": false, "": false} {
		for _, ranged := range []string{"", "bytes=0-10"} {
			fields := map[string]any{"url": url, "params": map[string]any{"part": part}}
			if ranged != "" {
				fields["headers"] = map[string]any{"Range": ranged}
			}
			result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(fields)(t))
			if !fails || ranged != "" {
				require.NoError(t, err, part)
				require.Equal(t, []any{map[string]any{"id": 1}}, result.Data.Data)
				continue
			}
			object := tooltest.ErrorObject(t, err)
			require.Equal(t, [2]string{"retryable", "partial_content"}, [2]string{string(object.Class), object.Type})
			require.Contains(t, object.Message, "returned part of the body (HTTP 206, Content-Range: "+part+"), although no Range header requested that")
		}
	}
}
