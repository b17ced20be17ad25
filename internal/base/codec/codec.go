// Package codec encrypts what Temporal keeps of a namespace: every payload, and the texts of failures, with AES-256-GCM and
// keys that the server does not have. It works between the SDK and the network (Intercept), so that all other code sees plain
// values. docs/how-to/encryption.md says what stays readable.
package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/keyring"
	"reprise/interpreter/lists"
)

// Variable is the environment variable of the keys, separated by commas: the first key encrypts, all keys decrypt.
// FileVariable names a file with the same text.
const (
	Variable     = "REPRISE_CODEC_KEY"
	FileVariable = "REPRISE_CODEC_KEY_FILE"
)

// RequiredVariable is the environment variable that refuses plain payloads, as --codec-required does.
const RequiredVariable = "REPRISE_CODEC_REQUIRED"

// The metadata of an encrypted payload: how it is encoded, and with which key. Histories depend on both.
const (
	Encoding   = "binary/encrypted"
	keyIDField = "encryption-key-id"
)

// version is authenticated with each value, and part of what keys are derived for.
const version = "reprise payloads v1"

// Codec encrypts and decrypts payloads. It is safe for concurrent use. Nil has no key and accepts plain payloads.
type Codec struct {
	ring *keyring.Ring[key]
	// required refuses payloads that are not encrypted.
	required bool
	held     heldTasks
}

// key is what is derived of one key.
type key struct {
	id    string
	aead  cipher.AEAD
	nonce []byte // the key of the HMAC that a nonce is
}

var variables = keyring.Variables{Text: Variable, File: FileVariable}

// Parse returns a codec with the keys in the text of Variable; "" has none. Errors do not reveal keys.
func Parse(text string) (*Codec, error) {
	ring, err := keyring.Parse(text, variables, newKey)
	return &Codec{ring: ring}, err
}

// FromEnvironment returns a codec with the keys of Variable or of the file that FileVariable names, which is read again when
// it has changed. required refuses payloads that are not encrypted, as does RequiredVariable. lookup is usually
// os.LookupEnv.
func FromEnvironment(lookup func(name string) (string, bool), required bool) (*Codec, error) {
	ring, err := keyring.FromEnvironment(variables, lookup, newKey)
	if err != nil {
		return nil, err
	}
	if text, _ := lookup(RequiredVariable); text != "" {
		set, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%s is %q, expected true or false", RequiredVariable, text)
		}
		required = required || set
	}
	if required && ring == nil {
		return nil, fmt.Errorf("--codec-required, or %s, needs a key in %s or %s; %s", RequiredVariable, Variable, FileVariable, keyring.Advice)
	}
	return &Codec{ring: ring, required: required}, nil
}

// Watch sets who gets what is wrong with a changed file of keys, and the texts of keys, which logs must not show.
func (c *Codec) Watch(logger *slog.Logger, mask func(text string)) {
	if c != nil {
		c.ring.Watch(logger, mask)
	}
}

func newKey(secret string) (key, error) {
	derived, err := keyring.Derive(secret, version)
	if err != nil {
		return key{}, err
	}
	nonce, err := keyring.Derive(secret, version+" nonces")
	if err != nil {
		return key{}, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return key{}, err
	}
	return key{id: keyring.ID(derived), aead: aead, nonce: nonce}, nil
}

func (c *Codec) keys() []key {
	if c == nil || c.ring == nil {
		return nil
	}
	return c.ring.Current()
}

// IDs returns the IDs of the keys, that of the encrypting key first; nil without keys.
func (c *Codec) IDs() []string {
	return lists.Map(c.keys(), func(one key) string { return one.id })
}

// Required reports whether payloads that are not encrypted are refused.
func (c *Codec) Required() bool { return c != nil && c.required }

// EncodePayload encrypts a payload, with its metadata. Equal payloads stay equal under one key: the nonce is an HMAC of the text.
// References to the payload store stay readable, because the SDK follows them before it decodes. Without a key, the payload is
// returned as it is.
func (c *Codec) EncodePayload(payload *commonpb.Payload) (*commonpb.Payload, error) {
	all := c.keys()
	if len(all) == 0 || payload == nil || IsReference(payload) {
		return payload, nil
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encode a value to encrypt it: %w", err)
	}
	return &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Encoding), keyIDField: []byte(all[0].id)},
		Data:     all[0].seal(text),
	}, nil
}

// seal returns nonce and ciphertext.
func (k key) seal(text []byte) []byte {
	mac := hmac.New(sha256.New, k.nonce)
	mac.Write(text)
	size := k.aead.NonceSize()
	sealed := make([]byte, size, size+len(text)+k.aead.Overhead())
	copy(sealed, mac.Sum(nil))
	return k.aead.Seal(sealed, sealed, text, []byte(version))
}

// IsEncoded reports whether a payload is encrypted.
func IsEncoded(payload *commonpb.Payload) bool {
	return string(payload.GetMetadata()[converter.MetadataEncoding]) == Encoding
}

var referenceName = string((*sdkpb.ExternalStorageReference)(nil).ProtoReflect().Descriptor().FullName())

// IsReference reports whether a payload is a reference to a value in a payload store, as the SDK writes it.
func IsReference(payload *commonpb.Payload) bool {
	metadata := payload.GetMetadata()
	return string(metadata[converter.MetadataEncoding]) == converter.MetadataEncodingProtoJSON &&
		string(metadata[converter.MetadataMessageType]) == referenceName
}

// DecodePayload decrypts a payload. A payload that is not encrypted is returned as it is, or refused if encryption is required. The
// error is a *KeyError.
func (c *Codec) DecodePayload(payload *commonpb.Payload) (*commonpb.Payload, error) {
	switch {
	case IsEncoded(payload):
	case c.Required() && payload != nil && !IsReference(payload) && !proto.Equal(payload, UnbegunDelivery()):
		return nil, &KeyError{text: "a value is not encrypted, and --codec-required refuses it"}
	default:
		return payload, nil
	}
	all, id := c.keys(), string(payload.GetMetadata()[keyIDField])
	at := slices.IndexFunc(all, func(one key) bool { return one.id == id })
	if at < 0 {
		return nil, &KeyError{text: missingKey(id, all)}
	}
	text, err := all[at].open(payload.GetData())
	decoded := &commonpb.Payload{}
	if err == nil {
		err = proto.Unmarshal(text, decoded)
	}
	if err != nil {
		return nil, &KeyError{text: fmt.Sprintf("a value that names the key %s was not encrypted with it, or was modified", id)}
	}
	return decoded, nil
}

func (k key) open(sealed []byte) ([]byte, error) {
	size := k.aead.NonceSize()
	if len(sealed) < size {
		return nil, errors.New("it is too short")
	}
	return k.aead.Open(nil, sealed[:size], sealed[size:], []byte(version))
}

// missingKey says which key is missing, and where to set it.
func missingKey(id string, all []key) string {
	has := "has no key"
	if len(all) > 0 {
		has = "has the keys " + strings.Join(lists.Map(all, func(one key) string { return one.id }), ", ")
	}
	return fmt.Sprintf("values are encrypted with the key %s, but this program %s: set %s, or the file of %s, to the keys of all workers and starters",
		shownID(id), has, Variable, FileVariable)
}

// shownID is the ID of a key as errors quote it: what others wrote may be anything.
func shownID(id string) string {
	const longest = 64
	if id == "" || len(id) > longest || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "without a known ID"
	}
	return id
}

// FailureType is the type of a *KeyError in failures of workflow tasks, queries and activities.
const FailureType = "CodecKeyError"

// KeyError is the error if a payload cannot be decrypted, or is plain where encryption is required. The text is complete without
// context: it has the ID of the key and the variable to set.
type KeyError struct{ text string }

func (e *KeyError) Error() string { return e.text }

// GRPCStatus is the status of a request whose response cannot be decrypted: it is not sent again, because nothing would change.
func (e *KeyError) GRPCStatus() *status.Status { return status.New(codes.DataLoss, e.text) }
