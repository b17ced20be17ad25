package http_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities/tooltest"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{certificate, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// sign makes a certificate and its key, in PEM.
func (a *authority) sign(t *testing.T, name string) (certificate, key string) {
	t.Helper()

	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, own.Public(), a.key)
	require.NoError(t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(own)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes}))
}

func TestAConnectionHasCertificates(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	certificate, key := ca.sign(t, "server")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	require.NoError(t, err)

	clients := x509.NewCertPool()
	clients.AddCert(ca.certificate)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s as %s", r.TLS.PeerCertificates[0].Subject.CommonName, user)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)

	certificate, key = ca.sign(t, "partner")
	settings := map[string]any{
		"basic": map[string]any{"user": "ana", "password": canary}, "host": server.URL,
		"tls": map[string]any{"certificate": certificate, "key": key, "ca": ca.pem},
	}
	send := func() (string, error) {
		text, err := json.Marshal(settings)
		require.NoError(t, err)
		result, err := tooltest.CallHTTP(t, withTokens(t, string(text)), queryInput(t, map[string]any{"url": "/"}))
		text, _ = json.Marshal(result.Data)
		return string(text), err
	}

	body, err := send()
	require.NoError(t, err)
	require.Contains(t, body, "partner as ana")

	settings["tls"] = map[string]any{"ca": ca.pem}
	_, err = send()
	require.Error(t, err, "the server asks for a certificate")

	delete(settings, "tls")
	_, err = send()
	require.Equal(t, "tls", tooltest.ErrorObject(t, err).Type, "nobody here knows the authority")
}

func TestAConnectionStoresCookies(t *testing.T) {
	t.Parallel()

	other := tooltest.NewRecordingServer(t, "127.0.0.2", nil)
	api := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		if cookie, err := r.Cookie("sid"); err == nil {
			fmt.Fprint(w, "known by ", cookie.Value)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: canary + "-cookie-1", Path: "/"})
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
		}
	})
	storing := fmt.Sprintf(`{"bearer": "tok", "host": %q, "cookies": "keep"}`, api.URL)
	c, forgets := withTokens(t, storing), withTokens(t, fmt.Sprintf(`{"bearer": "tok", "host": %q}`, api.URL))

	result, err := tooltest.CallHTTP(t, c, queryInput(t, map[string]any{"url": "/away"}))
	require.NoError(t, err)
	requireNoCanary(t, result)

	result, err = tooltest.CallHTTP(t, c, queryInput(t, map[string]any{"url": "/"}))
	require.NoError(t, err)
	require.Equal(t, "known by ***", result.Data.Data)

	for range 2 {
		result, err = tooltest.CallHTTP(t, forgets, queryInput(t, map[string]any{"url": "/"}))
		require.NoError(t, err)
		require.Nil(t, result.Data.Data)
	}

	for _, received := range other.ReceivedRequests() {
		require.NotContains(t, received, canary)
	}
}
