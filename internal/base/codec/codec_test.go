package codec_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/codec"
	"reprise/internal/base/keyring"
)

func parse(t *testing.T, text string) *codec.Codec {
	t.Helper()
	c, err := codec.Parse(text)
	require.NoError(t, err)
	return c
}

func payloadOf(t *testing.T, value any) *commonpb.Payload {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(value)
	require.NoError(t, err)
	return payload
}

func encode(t *testing.T, c *codec.Codec, payload *commonpb.Payload) *commonpb.Payload {
	t.Helper()
	encoded, err := c.EncodePayload(payload)
	require.NoError(t, err)
	return encoded
}

// TestPayloads: values come back with their metadata, equal ones are equal under one key, and nothing of a value or a key shows.
func TestPayloads(t *testing.T) {
	t.Parallel()
	key, other := keyring.NewKey(), keyring.NewKey()
	c, text := parse(t, key), "a value that nobody may read"
	for _, value := range []any{text, nil, "", map[string]any{"text": text}, []byte(text)} {
		payload := payloadOf(t, value)
		payload.Metadata["reprise-inline"] = []byte("1")
		encoded := encode(t, c, payload)
		require.True(t, codec.IsEncoded(encoded))
		require.True(t, proto.Equal(encoded, encode(t, c, payload)), "equal values are stored once")
		require.False(t, proto.Equal(encoded, encode(t, parse(t, other), payload)))
		bytes, err := proto.Marshal(encoded)
		require.NoError(t, err)
		for _, hidden := range []string{text, key, "reprise-inline", "json/plain", "binary/plain"} {
			require.NotContains(t, string(bytes), hidden)
		}
		require.Contains(t, string(bytes), c.IDs()[0])
		decoded, err := c.DecodePayload(encoded)
		require.NoError(t, err)
		require.True(t, proto.Equal(payload, decoded))
	}
	require.NotEqual(t, encode(t, c, payloadOf(t, text)).GetData()[:12], encode(t, c, payloadOf(t, text+"x")).GetData()[:12], "nonces differ")
}

// TestKeysOfPayloads: the first key encrypts and all decrypt; what cannot be decrypted is an error that names key and variable.
func TestKeysOfPayloads(t *testing.T) {
	t.Parallel()
	old, next := keyring.NewKey(), keyring.NewKey()
	payload := payloadOf(t, "x")
	byOld := encode(t, parse(t, old), payload)
	decoded, err := parse(t, next+","+old).DecodePayload(byOld)
	require.NoError(t, err)
	require.True(t, proto.Equal(payload, decoded))
	_, err = parse(t, old).DecodePayload(encode(t, parse(t, next+","+old), payload))
	require.EqualError(t, err, "values are encrypted with the key "+parse(t, next).IDs()[0]+", but this program has the keys "+parse(t, old).IDs()[0]+
		": set REPRISE_CODEC_KEY, or the file of REPRISE_CODEC_KEY_FILE, to the keys of all workers and starters")
	require.Equal(t, codes.DataLoss, status.Code(err), "a response that is not asked for again")
	for _, none := range []*codec.Codec{nil, {}, parse(t, "")} {
		_, err = none.DecodePayload(byOld)
		require.ErrorContains(t, err, "but this program has no key")
		require.Same(t, payload, encode(t, none, payload))
		decoded, err = none.DecodePayload(payload)
		require.NoError(t, err)
		require.Same(t, payload, decoded)
	}
}

// TestModifiedPayloads: a value that was changed, shortened, or moved under another key is an error, never another value.
func TestModifiedPayloads(t *testing.T) {
	t.Parallel()
	c := parse(t, keyring.NewKey()+","+keyring.NewKey())
	encoded := encode(t, c, payloadOf(t, "x"))
	for at := range encoded.GetData() {
		changed := proto.CloneOf(encoded)
		changed.Data[at] ^= 1
		_, err := c.DecodePayload(changed)
		require.ErrorContains(t, err, "was not encrypted with it, or was modified")
		changed.Data = changed.GetData()[:at]
		_, err = c.DecodePayload(changed)
		require.Error(t, err)
	}
	for _, id := range []string{c.IDs()[1], "", "00000000", "\x00", "x y"} {
		changed := proto.CloneOf(encoded)
		changed.Metadata["encryption-key-id"] = []byte(id)
		_, err := c.DecodePayload(changed)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "\x00")
	}
}

// TestRequiredPayloads: what is plain is refused, except references, whose values are encrypted, and one note that has no value.
func TestRequiredPayloads(t *testing.T) {
	t.Parallel()
	key := keyring.NewKey()
	lookup := func(vars map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { text, found := vars[name]; return text, found }
	}
	for _, vars := range []map[string]string{{codec.Variable: key}, {codec.Variable: key, codec.RequiredVariable: "true"}} {
		required, err := codec.FromEnvironment(lookup(vars), len(vars) == 1)
		require.NoError(t, err)
		require.True(t, required.Required())
		_, err = required.DecodePayload(payloadOf(t, "x"))
		require.EqualError(t, err, "a value is not encrypted, and --codec-required refuses it")
		disguised := payloadOf(t, "x")
		disguised.Metadata[converter.MetadataMessageType] = []byte("temporal.api.sdk.v1.ExternalStorageReference")
		_, err = required.DecodePayload(disguised)
		require.Error(t, err, "what is no reference cannot claim to be one")
		reference := proto.CloneOf(disguised)
		reference.Metadata[converter.MetadataEncoding] = []byte(converter.MetadataEncodingProtoJSON)
		for _, plain := range []*commonpb.Payload{nil, reference, codec.UnbegunDelivery()} {
			_, err = required.DecodePayload(plain)
			require.NoError(t, err)
		}
		require.Same(t, reference, encode(t, required, reference))
		decoded, err := required.DecodePayload(encode(t, required, payloadOf(t, "x")))
		require.NoError(t, err)
		require.Equal(t, `"x"`, string(decoded.GetData()))
	}
	for vars, problem := range map[string]string{
		`{"REPRISE_CODEC_REQUIRED": "true"}`:                        "--codec-required, or REPRISE_CODEC_REQUIRED, needs a key in REPRISE_CODEC_KEY or REPRISE_CODEC_KEY_FILE",
		`{"REPRISE_CODEC_REQUIRED": "yes please"}`:                  `REPRISE_CODEC_REQUIRED is "yes please", expected true or false`,
		`{"REPRISE_CODEC_KEY": "short"}`:                            "REPRISE_CODEC_KEY: key 1 is too short: it must have at least 32 characters",
		`{"REPRISE_CODEC_KEY": "x", "REPRISE_CODEC_KEY_FILE": "y"}`: "REPRISE_CODEC_KEY and REPRISE_CODEC_KEY_FILE are both set",
		`{"REPRISE_CODEC_KEY_FILE": "/nowhere"}`:                    "read REPRISE_CODEC_KEY_FILE: open /nowhere",
	} {
		given := map[string]string{}
		require.NoError(t, json.Unmarshal([]byte(vars), &given))
		_, err := codec.FromEnvironment(lookup(given), false)
		require.ErrorContains(t, err, problem)
	}
}

// TestKeyFile: a rotated file is read without a restart, and its keys are masked.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	old, next := keyring.NewKey(), keyring.NewKey()
	path := filepath.Join(t.TempDir(), "codec-key")
	require.NoError(t, os.WriteFile(path, []byte(old+"\n"), 0o600))
	c, err := codec.FromEnvironment(func(name string) (string, bool) {
		return map[string]string{codec.FileVariable: path}[name], name == codec.FileVariable
	}, false)
	require.NoError(t, err)
	var masked []string
	c.Watch(slog.New(slog.DiscardHandler), func(text string) { masked = append(masked, text) })
	require.NoError(t, os.WriteFile(path+".new", []byte(next+","+old+"\n"), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
	require.Equal(t, parse(t, next+","+old).IDs(), c.IDs())
	require.Equal(t, []string{old, next, old}, masked)
}
