// Package secretstore reads secrets from HashiCorp Vault, AWS Secrets Manager and Google Cloud Secret Manager, for connections
// that have them there.
package secretstore

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"reprise/internal/base/connection"
)

// FromEnvironment returns the stores, by the kind of source. Their settings are in environment variables, which are read when a
// secret is first needed.
func FromEnvironment(lookup func(name string) (string, bool)) map[string]connection.SecretStore {
	return map[string]connection.SecretStore{
		connection.FromVault: newVault(lookup, time.Now),
		connection.FromAWS:   newSecretsManager(lookup),
		connection.FromGCP:   newSecretManager(lookup, loginToGoogle),
	}
}

// mostAnswer bounds the answer of a store, in bytes: secrets are small, and what is no store may send anything.
const mostAnswer = 1 << 20

// newClient returns a client that follows no redirects, which would take tokens to other hosts.
func newClient(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// send sends a request, and returns the status and the body of the answer. Errors have nothing of the request but its host.
func send(client *http.Client, request *http.Request) (int, []byte, error) {
	response, err := client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %s: %w", connection.ErrUnreadable, request.URL.Host, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("%w: %s: %w", connection.ErrUnreadable, request.URL.Host, err)
	case len(body) > mostAnswer:
		return 0, nil, fmt.Errorf("%w: %s: the answer has more than %d bytes", connection.ErrUnreadable, request.URL.Host, mostAnswer)
	}
	return response.StatusCode, body, nil
}

// unreadable returns an error for a secret that cannot be read now.
func unreadable(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{connection.ErrUnreadable}, args...)...)
}
