package serve_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"reprise/internal/base/codec"
	"reprise/internal/base/keyring"
	"reprise/internal/base/payload"
	"reprise/internal/base/seal"
	"reprise/internal/program/serve"
)

const uiOrigin = "https://temporal.example.com"

// decoder is a world that decodes, with a caller each for the role and without.
type decoder struct {
	*staff

	encryption *codec.Codec
	store      *payload.Store
	audit      string
}

func newDecoder(t *testing.T) *decoder {
	t.Helper()
	d := &decoder{}
	var err error
	d.encryption, err = codec.Parse(keyring.NewKey())
	require.NoError(t, err)
	keys, err := seal.Parse(seal.NewKey())
	require.NoError(t, err)
	address, err := payload.DirectoryAddress(filepath.Join(t.TempDir(), "payloads"))
	require.NoError(t, err)
	d.store, err = payload.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.store.Close()) })
	d.store.SetEncryption(d.encryption)
	d.staff = newStaff(t, map[string][]string{"decoder": {"*=decode"}, "admin": {"*=admin"}, "reader": {"*=read,steer", "hello=admin"}},
		withAudit(t, &d.audit), func(o *serve.Options) {
			o.Decodes, o.Encryption, o.Store, o.Origins, o.Keys = true, d.encryption, d.store, []string{uiOrigin}, keys
		})
	return d
}

// send sends payloads to a path.
func (d *decoder) send(who, path string, body string, header ...string) (*http.Response, *commonpb.Payloads) {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.url+path, strings.NewReader(body))
	require.NoError(d.t, err)
	request.Header.Set("Authorization", "Bearer "+d.tokens[who])
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(d.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(d.t, err)
	var given commonpb.Payloads
	if response.StatusCode == http.StatusOK {
		require.NoError(d.t, protojson.Unmarshal(text, &given), string(text))
	}
	response.Body = io.NopCloser(strings.NewReader(string(text)))
	return response, &given
}

// encoded is a value as the server has it, in a body.
func encoded(t *testing.T, encryption *codec.Codec, value any) string {
	t.Helper()
	one, err := converter.GetDefaultDataConverter().ToPayload(value)
	require.NoError(t, err)
	one, err = encryption.EncodePayload(one)
	require.NoError(t, err)
	return payloadsBody(t, one)
}

// TestPayloadsAreDecoded: callers with the role decode what the server has, below the namespace and without, and the SDK's own
// client of codec servers reads it; each request is in the audit log, and no value is.
func TestPayloadsAreDecoded(t *testing.T) {
	t.Parallel()
	d := newDecoder(t)
	body := encoded(t, d.encryption, "a value of a run")
	for _, path := range []string{"/decode", "/" + d.env.Namespace + "/decode"} {
		response, given := d.send("decoder", path, body, "Origin", uiOrigin, "X-Namespace", d.env.Namespace)
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		require.Equal(t, `"a value of a run"`, string(given.GetPayloads()[0].GetData()))
		require.Equal(t, uiOrigin, response.Header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "true", response.Header.Get("Access-Control-Allow-Credentials"), "for the login of a proxy in front")
		require.Equal(t, "Origin", response.Header.Get("Vary"))
	}
	remote := converter.NewRemoteDataConverter(converter.GetDefaultDataConverter(), converter.RemoteDataConverterOptions{
		Endpoint: d.url, ModifyRequest: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer "+d.tokens["admin"]); return nil },
	})
	sent, err := remote.ToPayload("there and back")
	require.NoError(t, err)
	require.True(t, codec.IsEncoded(sent))
	var back string
	require.NoError(t, remote.FromPayload(sent, &back))
	require.Equal(t, "there and back", back)

	counts := map[string]int{}
	for _, line := range auditedLines(t, d.audit)[1:] { // behind that of the changed file
		require.Equal(t, "token", line["proof"])
		counts[fmt.Sprint(line["actor"], " ", line["action"], " ", line["outcome"])]++
	}
	require.Equal(t, map[string]int{
		"decoder decode done": 2, "admin encode done": 1, "admin decode done": 1,
	}, counts)
	require.NotContains(t, d.log.String(), "a value of a run")
	require.NoError(t, os.Rename(d.audit, d.audit+".away"))
	response, _ := d.send("decoder", "/decode", body)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode, "what cannot be logged is not done")
}

// storeValue puts a value into the payload store, and returns its reference as a history has it.
func (d *decoder) storeValue(value any) *commonpb.Payload {
	d.t.Helper()
	one, err := converter.GetDefaultDataConverter().ToPayload(value)
	require.NoError(d.t, err)
	driver := d.store.ExternalStorage().Drivers[0]
	claims, err := driver.Store(converter.StorageDriverStoreContext{Context: d.t.Context()}, []*commonpb.Payload{one})
	require.NoError(d.t, err)
	reference, err := converter.NewProtoJSONPayloadConverter().ToPayload(&sdkpb.ExternalStorageReference{DriverName: driver.Name(), ClaimData: claims[0].ClaimData})
	require.NoError(d.t, err)
	return reference
}

// payloadsBody is a body with payloads.
func payloadsBody(t *testing.T, payloads ...*commonpb.Payload) string {
	t.Helper()
	text, err := protojson.Marshal(&commonpb.Payloads{Payloads: payloads})
	require.NoError(t, err)
	return string(text)
}

// TestStoredValuesAreDownloaded: references lead to the values of the payload store, which are encrypted there, unless the client
// keeps them; secret results stay sealed, also where the server has their key; and mostDecoded bounds a response.
func TestStoredValuesAreDownloaded(t *testing.T) {
	t.Parallel()
	d := newDecoder(t)
	sealed, err := d.options.Keys.Seal([]byte("a secret result"), "a place")
	require.NoError(t, err)
	reference := d.storeValue(map[string]any{"text": strings.Repeat("large ", 200_000), "sealed": sealed})
	body := payloadsBody(t, reference)
	for path, data := range map[string]string{"/decode": "large large", "/download": sealed, "/" + d.env.Namespace + "/download": "large large", "/decode?preserveStorageRefs=true": "claimData"} {
		response, given := d.send("decoder", path, body)
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		text := string(given.GetPayloads()[0].GetData())
		require.True(t, strings.Contains(text, data), path)
		require.False(t, strings.Contains(text, "a secret result"), path)
	}
	many := payloadsBody(t, slices.Repeat([]*commonpb.Payload{reference}, 30)...)
	foreign, err := converter.NewProtoJSONPayloadConverter().ToPayload(&sdkpb.ExternalStorageReference{DriverName: "other"})
	require.NoError(t, err)
	for body, says := range map[string]string{
		many: "more than 33554432 bytes together",
		encoded(t, d.encryption, "a value of a run"): "download needs references",
		payloadsBody(t, foreign):                     `driver \"other\"`,
	} {
		response, _ := d.send("decoder", "/download", body)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.GreaterOrEqual(t, response.StatusCode, http.StatusBadRequest)
		require.Contains(t, string(text), says)
	}
}

// TestPayloadsAreRefused: pages of other origins, callers without the role, other namespaces, keys that are not there, and bodies
// that are too large.
func TestPayloadsAreRefused(t *testing.T) {
	t.Parallel()
	d := newDecoder(t)
	other, err := codec.Parse(keyring.NewKey())
	require.NoError(t, err)
	body := encoded(t, d.encryption, "a value of a run")
	forged := strings.Replace(body, `"data":"`, `"data":"AAAA`, 1)
	for name, row := range map[string]struct {
		who, path, body string
		header          []string
		status          int
		says            string
	}{
		"another origin":    {"decoder", "/decode", body, []string{"Origin", "https://evil.example.com"}, http.StatusForbidden, "cross-origin"},
		"no origin of its":  {"decoder", "/decode", body, []string{"Origin", "null"}, http.StatusForbidden, "cross-origin"},
		"another role":      {"reader", "/decode", body, nil, http.StatusNotFound, "not-found"},
		"no token":          {"nobody", "/decode", body, nil, http.StatusUnauthorized, "unauthorized"},
		"another namespace": {"decoder", "/other/decode", body, nil, http.StatusNotFound, "not-found"},
		"another header":    {"decoder", "/decode", body, []string{"X-Namespace", "other"}, http.StatusNotFound, "not-found"},
		"an unknown key":    {"decoder", "/decode", encoded(t, other, "x"), nil, http.StatusUnprocessableEntity, "values are encrypted with the key " + other.IDs()[0] + ", but this program has the keys " + d.encryption.IDs()[0]},
		"modified":          {"decoder", "/decode", forged, nil, http.StatusUnprocessableEntity, "was not encrypted with it, or was modified"},
		"too large":         {"decoder", "/decode", strings.Repeat(" ", serve.MaxCodecBody+1), nil, http.StatusRequestEntityTooLarge, "at most 8388608 bytes"},
		"no payloads":       {"decoder", "/decode", `{"payloads": 1}`, nil, http.StatusBadRequest, "the body must be payloads"},
		"no JSON":           {"decoder", "/decode", body, []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType, "must be JSON"},
		"a query":           {"decoder", "/decode?x=1", body, nil, http.StatusBadRequest, "unknown query parameter"},
	} {
		response, _ := d.send(row.who, row.path, row.body, row.header...)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, row.status, response.StatusCode, "%s: %s", name, text)
		require.Contains(t, string(text), row.says, name)
		require.NotContains(t, string(text), "a value of a run", name)
		require.Empty(t, response.Header.Get("Access-Control-Allow-Origin"), name)
	}
	denied := 0
	for _, line := range auditedLines(t, d.audit) {
		if line["outcome"] == "denied" {
			denied++
		}
	}
	require.Equal(t, 3, denied, "those whose token is known")

	for origin, status := range map[string]int{uiOrigin: http.StatusNoContent, "https://evil.example.com": http.StatusForbidden} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, d.url+"/"+d.env.Namespace+"/decode", nil)
		require.NoError(t, err)
		request.Header.Set("Origin", origin)
		request.Header.Set("Access-Control-Request-Headers", "authorization,content-type,x-namespace")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, status, response.StatusCode)
		require.Equal(t, status == http.StatusNoContent, response.Header.Get("Access-Control-Allow-Headers") == "Authorization, Content-Type, X-Namespace")
	}
	silent := *d.world
	silent.options.Decodes = false
	silent.serve()
	require.Equal(t, http.StatusNotFound, silent.ask(http.MethodPost, "/decode", d.tokens["decoder"], strings.NewReader(body), "Content-Type", "application/json").status)
	for _, text := range []string{"*", "temporal.example.com", "https://x/", "https://X", "ftp://x", "https://x?y", ""} {
		require.Error(t, serve.CheckOrigin(text), text)
	}
	require.NoError(t, serve.CheckOrigin("http://127.0.0.1:8233"))
}
