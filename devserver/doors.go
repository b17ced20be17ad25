package main

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/server/common/config"
)

// Environment variables for a web UI that another program proxies. They are not flags, because the official CLI can
// replace this server: it ignores these variables, and serves its UI on a port.
const (
	uiSocketVariable = "DEVSERVER_UI_SOCKET"
	uiPathVariable   = "DEVSERVER_UI_PATH"
)

// uiPlace is where the web UI listens: nowhere, on a port, or at a socket.
type uiPlace int

const (
	uiNowhere uiPlace = iota
	uiOnPort
	uiAtSocket
)

// uiPlace returns where the web UI listens. The UI adds the key to every request, so a server with a key never serves
// it where other users of this machine could reach it.
func (o *options) uiPlace() uiPlace {
	switch {
	case o.headless:
		return uiNowhere
	case o.uiSocket != "":
		return uiAtSocket
	case o.key != "":
		return uiNowhere
	}
	return uiOnPort
}

// uiAddress returns the network and the address of the web UI: a Unix socket, or a port on ip.
func (s *server) uiAddress(ip string) (network, at string) {
	if s.opts.uiPlace() == uiAtSocket {
		return "unix", s.opts.uiSocket
	}
	return "tcp", address(ip, s.ports.ui)
}

// readEnvironment reads the options that are environment variables: those that would be visible to other users as
// flags, and those that the official CLI has no flags for.
func (o *options) readEnvironment(getenv func(string) string) error {
	o.postgres = cmp.Or(o.postgres, getenv(postgresVariable))
	if o.postgres != "" && o.dbFile != "" {
		return fmt.Errorf("--postgres (%s) and --db-filename are two places for the same state, give one of them", postgresVariable)
	}
	o.key, o.uiSocket, o.uiPath = getenv(keyVariable), getenv(uiSocketVariable), strings.TrimRight(getenv(uiPathVariable), "/")
	if o.uiPath != "" && (o.uiPath[0] != '/' || strings.ContainsAny(o.uiPath, "\"<>\\?#%")) {
		return fmt.Errorf("%s=%q: expected a path such as /temporal", uiPathVariable, o.uiPath)
	}
	if o.uiSocket == "" {
		return nil
	}
	info, err := os.Stat(filepath.Dir(o.uiSocket))
	if err != nil {
		return fmt.Errorf("%s: %w", uiSocketVariable, err)
	}
	if info.Mode().Perm()&private != 0 {
		return fmt.Errorf("%s: other users may look into the folder of %s; make it one of mode 0700", uiSocketVariable, o.uiSocket)
	}
	return nil
}

// onlyThisProcess returns a TLS configuration that keeps other processes from the server's internal ports, which have
// no other access control. Both sides present a certificate whose key exists in this process only.
func onlyThisProcess() (config.GroupTLS, error) {
	const name = "devserver"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return config.GroupTLS{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(100, 0, 0), // the clock may be moved
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return config.GroupTLS{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return config.GroupTLS{}, err
	}
	encoded := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	public := encoded("CERTIFICATE", certificate)
	return config.GroupTLS{
		Server: config.ServerTLS{
			CertData: public, KeyData: encoded("PRIVATE KEY", secret), ClientCAData: []string{public}, RequireClientAuth: true,
		},
		Client: config.ClientTLS{ServerName: name, RootCAData: []string{public}},
	}, nil
}
