package known

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"reprise/internal/base/regular"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// ErrKey is the cause of an error of a file of keys.
var ErrKey = errors.New("not a key for signatures")

// howToMake says how keys are made.
const howToMake = "make one with: openssl genpkey -algorithm ed25519 -out sign.pem; openssl pkey -in sign.pem -pubout -out keys.pem"

// readPublicKeys reads ed25519 keys in PEM.
func readPublicKeys(path string) (keys []ed25519.PublicKey, err error) {
	data, err := regular.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read the playbook keys: %w", err)
	}
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		key, isKey := parsed.(ed25519.PublicKey)
		if err != nil || !isKey || block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("read the playbook keys: %s: block %d (%s) is %w: expected public ed25519 keys in PEM; %s", path, len(keys)+1, block.Type, ErrKey, howToMake)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("read the playbook keys: %s has no PEM block, so it is %w; %s", path, ErrKey, howToMake)
	}
	return keys, nil
}

// ReadSigner reads a private ed25519 key in PEM. The error quotes nothing of it.
func ReadSigner(path string) (ed25519.PrivateKey, error) {
	data, err := regular.Read(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%s is %w: expected a private ed25519 key in PEM; %s", path, ErrKey, howToMake)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, isKey := parsed.(ed25519.PrivateKey)
	if err != nil || !isKey {
		return nil, fmt.Errorf("%s is %w: expected a private ed25519 key in PEM; %s", path, ErrKey, howToMake)
	}
	return key, nil
}

// SignPlaybook is the text of a playbook with signatures of a key behind it, for the playbook and those within it, in place of all
// signatures that it had. file names it in the error of what is no playbook.
func SignPlaybook(file string, text []byte, key ed25519.PrivateKey) (signed []byte, name string, err error) {
	text, _ = playbook.SplitSignatures(text)
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(bytes.Clone(text), '\n')
	}
	book, found := playbook.Decode(source.NewFile(file, text))
	if book == nil || found.HasErrors() {
		return nil, "", found
	}
	signatures := lists.Map(book.WithInlined(), func(one *playbook.Playbook) playbook.Signature {
		message := playbook.SignedMessage(one.Name, one.Attestation().Digest)
		return playbook.Signature{Name: one.Name, Text: base64.StdEncoding.EncodeToString(ed25519.Sign(key, message))}
	})
	return playbook.JoinSignatures(text, signatures), book.Name, nil
}
