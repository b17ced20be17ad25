package demoapi_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
)

func TestBodySizes(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	for path, size := range map[string]int{
		"/body?bytes=2": 2, "/body": 1024, "/body?bytes=200001": 200_001, "/body?bytes=5000000&gzip=1": 5_000_000,
	} {
		body := get(t, base+path).text // the client decompresses
		require.Len(t, body, size, path)
		require.Equal(t, `"`+strings.Repeat("x", size-2)+`"`, body, path)
	}

	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(base + "/body?bytes=5000000&gzip=1")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, "gzip", response.Header.Get("Content-Encoding"))
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Less(t, len(raw), 50_000)
	_, err = gzip.NewReader(strings.NewReader(string(raw)))
	require.NoError(t, err)
}

func TestBrokenTransport(t *testing.T) {
	t.Parallel()
	base := start(t, demoapi.Options{}).URL()
	client := &http.Client{}

	response, err := client.Get(base + "/truncated?times=1")
	require.NoError(t, err)
	raw, err := io.ReadAll(response.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, `{"data":[1,2`, string(raw))
	_ = response.Body.Close()
	require.Equal(t, true, get(t, base+"/truncated?times=1").at("ok"), "the second request is whole")

	// A POST is not repeated by the client when a reused connection breaks.
	_, err = client.Post(base+"/drop?times=1", "text/plain", strings.NewReader("x"))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, true, get(t, base+"/drop?times=1").at("ok"))
	_, err = client.Post(base+"/drop", "text/plain", strings.NewReader("x"))
	require.ErrorIs(t, err, io.EOF)

	html := get(t, base+"/not-json")
	require.Equal(t, "application/json", html.header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(html.text, "<html>"))
}
