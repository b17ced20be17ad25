package serve

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"time"
)

// certificateAge is how long the files of a certificate are not read again.
const certificateAge = time.Second

// Certificate is a certificate in two files. Changes to them apply from the next connection on. It is safe for
// concurrent use.
type Certificate struct {
	certificate, key string // paths

	mu      sync.Mutex
	checked time.Time
	read    [2]fileState
	failed  [2]fileState // of files that cannot be used, and that the log has
	pair    *tls.Certificate
}

// OpenCertificate reads a certificate with its intermediate certificates, and its key, in PEM.
func OpenCertificate(certificate, key string) (*Certificate, error) {
	c := &Certificate{certificate: certificate, key: key}
	_, err := c.readChanged()
	return c, err
}

// readChanged reads the files again if one of them has changed. known says that the error has been logged already.
func (c *Certificate) readChanged() (known bool, err error) {
	var state [2]fileState
	for i, path := range []string{c.certificate, c.key} {
		if state[i], err = stateOf(path); err != nil {
			absent := [2]fileState{{size: -1}}
			known, c.failed = c.failed == absent, absent
			return known, err
		}
	}
	if state == c.read {
		return false, nil
	}
	pair, err := tls.LoadX509KeyPair(c.certificate, c.key)
	if err != nil { // one of them may not be written yet
		known, c.failed = c.failed == state, state
		return known, err
	}
	c.read, c.failed, c.pair = state, [2]fileState{}, &pair
	return false, nil
}

// newestCertificate returns the certificate for a new connection: the last one that could be read.
func (c *Certificate) newestCertificate(logger *slog.Logger) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) < certificateAge {
		return c.pair
	}
	c.checked = time.Now()
	before := c.pair
	switch known, err := c.readChanged(); {
	case err != nil && !known:
		logger.Error("cannot reload the TLS certificate; the previous one stays in use", "error", err)
	case c.pair != before:
		logger.Info("TLS certificate reloaded", "valid_until", c.pair.Leaf.NotAfter)
	}
	return c.pair
}
