package http_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter/expression"
)

// packedBy is a text as a packer writes it.
func packedBy(t *testing.T, text string, packer func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var packed bytes.Buffer
	w := packer(&packed)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return packed.String()
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	return packedBy(t, text, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
}

func zlibbed(t *testing.T, text string) string {
	t.Helper()
	return packedBy(t, text, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
}

func deflated(t *testing.T, text string) string {
	t.Helper()
	return packedBy(t, text, func(w io.Writer) io.WriteCloser {
		packer, err := flate.NewWriter(w, flate.DefaultCompression)
		require.NoError(t, err)
		return packer
	})
}

// TestHTTPContentEncodings: what a server has packed without being asked is unpacked, or its packing is in the error.
// It passes maxEncodings.
func TestHTTPContentEncodings(t *testing.T) {
	t.Parallel()
	const text = `{"v":"é"}`
	packed := map[string]string{"gzip": gzipped(t, text), "zlib": zlibbed(t, text), "raw": deflated(t, text), "zstd": zstandard(t, text)}
	for name, test := range map[string]struct{ encoding, body, wrong string }{
		"zlib":                     {encoding: "deflate", body: packed["zlib"]},
		"without a frame":          {encoding: "DEFLATE", body: packed["raw"]},
		"zstd":                     {encoding: "zstd", body: packed["zstd"]},
		"gzip":                     {encoding: "GZIP", body: packed["gzip"]},
		"x-gzip":                   {encoding: "x-gzip", body: packed["gzip"]},
		"twice":                    {encoding: "gzip, gzip", body: gzipped(t, packed["gzip"])},
		"two of them":              {encoding: "deflate, gzip", body: gzipped(t, packed["zlib"])},
		"identity":                 {encoding: "identity", body: text},
		"a charset":                {encoding: "utf-8", body: text},
		"brotli":                   {encoding: "br", body: "\x0b\x04\x80{}xx\x03", wrong: `has the Content-Encoding "br", and only gzip, deflate and zstd are supported`},
		"brotli below gzip":        {encoding: "br, x-gzip", body: gzipped(t, "\x0b\x04\x80{}xx\x03"), wrong: `has the Content-Encoding "br"`},
		"a dictionary":             {encoding: "dcz", body: "x", wrong: `has the Content-Encoding "dcz"`},
		"said and not done":        {encoding: "gzip", body: text, wrong: "is not encoded as its Content-Encoding says: gzip: invalid header"},
		"deflate and not done":     {encoding: "deflate", body: "\xff\xff\xff", wrong: "is not encoded as its Content-Encoding says: flate: corrupt input"},
		"zstd and not done":        {encoding: "zstd", body: text, wrong: "is not encoded as its Content-Encoding says: invalid input: magic number mismatch"},
		"too often":                {encoding: "gzip,gzip,gzip,gzip,gzip", body: text, wrong: "has more than 4 encodings"},
		"br without a body":        {encoding: "br"},
		"deflate without a body":   {encoding: "deflate"},
		"a sum that does not hold": {encoding: "deflate", body: packed["zlib"][:len(packed["zlib"])-1] + "x", wrong: "is not encoded as its Content-Encoding says: zlib: invalid checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", test.encoding)
				_, _ = io.WriteString(w, test.body)
			}))
			t.Cleanup(server.Close)
			result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server.URL})(t))
			sink := tooltest.Input(map[string]any{"url": server.URL})(t)
			sink.Result = tooltest.Value("x")
			_, errSink := tooltest.Call(t, activities.DefaultCatalogue(), "http.write", "http", sink)
			require.NoError(t, errSink, "what a sink is answered is not used")
			if test.wrong != "" {
				object := tooltest.ErrorObject(t, err)
				require.Equal(t, "encoding", object.Type)
				require.Contains(t, object.Message, test.wrong)
				return
			}
			require.NoError(t, err)
			if test.body == "" {
				require.Equal(t, expression.Of(nil), result.Data)
				return
			}
			require.Equal(t, map[string]any{"v": "é"}, result.Data.Data)
		})
	}
}
