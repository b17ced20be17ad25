package main

import (
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

// Environment variables of a web UI behind another program. They are no flags, so
// that the official CLI can stand in for this server: it ignores them, and has a port.
const (
	uiSocketVariable = "DEVSERVER_UI_SOCKET"
	uiPathVariable   = "DEVSERVER_UI_PATH"
)

// uiPlace is where the web UI is.
type uiPlace int

const (
	uiNowhere uiPlace = iota
	uiOnPort
	uiAtSocket
)

// uiPlace is where the web UI is: it sends the key for whoever asks it, so with a key
// it is at no place that other users of this machine reach.
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

// uiAddress returns the network and the address of the web UI, on an IP address unless it is
// at a socket.
func (s *server) uiAddress(ip string) (network, at string) {
	if s.opts.uiPlace() == uiAtSocket {
		return "unix", s.opts.uiSocket
	}
	return "tcp", address(ip, s.ports.ui)
}

// readEnvironment reads what everybody on the machine would see in flags, and what the
// official CLI has no flags for.
func (o *options) readEnvironment(getenv func(string) string) error {
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

// onlyThisProcess keeps everybody out of the ports at which the parts of the server
// reach each other: they trust whoever asks. Both sides show a certificate whose key is
// in the memory of this process alone.
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
