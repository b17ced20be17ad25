package known_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/known"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

const nightly = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: nightly}
workflow:
  - step: load
    tool: playbook
    workflow:
      - step: fetch
        tool: http
        url: https://shop.example.com/orders
`

// newKey writes a key and its public half.
func newKey(t *testing.T, dir, name string) (ed25519.PrivateKey, string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	return private, path
}

// attested are the names and attestations of a text and of the playbooks within it.
func attested(t *testing.T, text string) map[string]playbook.Attestation {
	t.Helper()
	book, found := playbook.Decode(source.NewFile("x.yaml", []byte(text)))
	require.Empty(t, found.Errors())
	all := map[string]playbook.Attestation{}
	for _, one := range book.WithInlined() {
		all[one.Name] = one.Attestation()
		alone, found := playbook.Decode(source.NewFile("x.yaml", []byte(one.SourceText()))) // as its run reads it
		require.Empty(t, found.Errors())
		require.Equal(t, one.Attestation(), alone.Attestation(), one.Name)
	}
	return all
}

func signed(t *testing.T, text string, key ed25519.PrivateKey) string {
	t.Helper()
	made, _, err := known.SignPlaybook("x.yaml", []byte(text), key)
	require.NoError(t, err)
	return string(made)
}

// TestKnownBySignature: a playbook and those within it are known by a signature of a key that the worker has, under their own names,
// as long as nothing but the signatures has changed.
func TestKnownBySignature(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, path := newKey(t, dir, "keys.pem")
	other, _ := newKey(t, dir, "other.pem")
	p, err := known.OpenFolder("", path)
	require.NoError(t, err)
	text := signed(t, nightly, key)
	require.Equal(t, text, signed(t, text, key), "signing again changes nothing")
	require.True(t, strings.HasPrefix(text, nightly))
	for name, of := range attested(t, text) {
		require.Empty(t, p.DoubtReason(name, of), name)
		require.Contains(t, p.DoubtReason("other", of), "was changed after it was signed", "another name")
		require.Contains(t, p.DoubtReason(name, playbook.Attestation{Digest: of.Digest}), "has no signature")
		require.Contains(t, p.DoubtReason(name, playbook.Attestation{Signature: of.Signature}), "does not say which bytes")
	}
	for why, forged := range map[string]string{
		"another host":           strings.Replace(text, "shop.example.com", "evil.example.com", 1),
		"a byte before the end":  strings.Replace(text, "/orders\n", "/orders \n", 1),
		"another key":            signed(t, nightly, other),
		"a line between":         strings.Replace(text, "# reprise-signature", "# a comment\n# reprise-signature", 1),
		"a playbook behind it":   text + "state: nightly\n",
		"a name that is another": strings.Replace(strings.ReplaceAll(text, "nightly", "billing"), "nightly.load", "billing.load", 1),
		"no signature":           nightly,
	} {
		of, is := attested(t, forged)["nightly"]
		if !is {
			of = attested(t, forged)["billing"]
		}
		require.NotEmpty(t, p.DoubtReason("nightly", of), why)
		require.NotEmpty(t, p.DoubtReason("billing", of), why)
	}
	for _, hidden := range []string{"\r", "\u0085", "\u2028", "\u2029"} { // each breaks a line of YAML
		for _, line := range []string{"nightly" + hidden + "output: 7 # x: " + strings.Repeat("A", 86) + "==", "nightly: " + strings.Repeat("A", 86) + "==" + hidden + "output: 7"} {
			forged := text + "# reprise-signature " + line + "\n"
			require.NotEmpty(t, p.DoubtReason("nightly", attested(t, forged)["nightly"]), "%q", line)
		}
	}
	more := text + "# reprise-signature nightly: " + strings.Repeat("A", 86) + "==\n"
	require.NotEmpty(t, p.DoubtReason("nightly", attested(t, more)["nightly"]), "the last one counts")
	require.Empty(t, p.RefusalText("nightly", playbook.Attestation{}))
	p.Only = true
	require.Contains(t, p.RefusalText("nightly", attested(t, nightly)["nightly"]), "this worker runs only playbooks that it knows (--only-known), and playbook nightly has no signature")
	require.Empty(t, p.RefusalText("nightly", attested(t, text)["nightly"]))
	_, _ = newKey(t, dir, "keys.pem")
	require.NotEmpty(t, p.DoubtReason("nightly", attested(t, text)["nightly"]), "the key was replaced")
	require.NoError(t, os.WriteFile(path, []byte("-----BEGIN"), 0o600))
	require.NotEmpty(t, p.DoubtReason("nightly", attested(t, text)["nightly"]))
}

// TestKnownByFolder: a playbook is known as long as its bytes lie in the folder, also those within it, and in folders below.
func TestKnownByFolder(t *testing.T) {
	t.Parallel()
	folder, outside := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	p, err := known.OpenFolder(folder, "")
	require.NoError(t, err)
	of := attested(t, nightly)
	require.Contains(t, p.DoubtReason("nightly", of["nightly"]), "the bytes of playbook nightly are in no file of this worker's folder")
	write(filepath.Join(outside, "nightly.yaml"), nightly)
	require.NoError(t, os.Symlink(filepath.Join(outside, "nightly.yaml"), filepath.Join(folder, "link.yaml")))
	write(filepath.Join(folder, ".hidden.yaml"), nightly)
	write(filepath.Join(folder, "nightly.txt"), nightly)
	require.NotEmpty(t, p.DoubtReason("nightly", of["nightly"]), "links that lead out, hidden files, other files")
	for _, name := range []string{"nightly.yaml", "team/other.yml"} {
		path := filepath.Join(folder, name)
		write(path, nightly)
		for name, one := range of {
			require.Empty(t, p.DoubtReason(name, one))
			require.NotEmpty(t, p.DoubtReason("other", one))
		}
		write(path, strings.Replace(nightly, "orders", "customers", 1))
		require.NotEmpty(t, p.DoubtReason("nightly", of["nightly"]))
		require.NoError(t, os.Remove(path))
		require.NotEmpty(t, p.DoubtReason("nightly", attested(t, strings.Replace(nightly, "orders", "customers", 1))["nightly"]))
	}
	require.NoError(t, os.RemoveAll(folder))
	require.NotEmpty(t, p.DoubtReason("nightly", of["nightly"]))
	var none *known.Playbooks
	require.Empty(t, none.DoubtReason("nightly", playbook.Attestation{}))
}

// TestFilesOfKeys: a file without an ed25519 key of the right kind is an error that quotes nothing of it.
func TestFilesOfKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, public := newKey(t, dir, "keys.pem")
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	private := filepath.Join(dir, "sign.pem")
	require.NoError(t, os.WriteFile(private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	read, err := known.ReadSigner(private)
	require.NoError(t, err)
	require.Equal(t, key, read)
	_, err = known.ReadSigner(public)
	require.ErrorIs(t, err, known.ErrKey)
	_, err = known.OpenFolder("", private)
	require.ErrorIs(t, err, known.ErrKey)
	empty := filepath.Join(dir, "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = known.OpenFolder("", empty)
	require.ErrorIs(t, err, known.ErrKey)
	_, err = known.OpenFolder("", filepath.Join(dir, "absent.pem"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
