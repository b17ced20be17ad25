package secretstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/base/connection"
	"reprise/internal/base/regular"
)

// Environment variables of Vault: its own, and those that say how to log in.
const (
	vaultAddress   = "VAULT_ADDR"
	vaultNamespace = "VAULT_NAMESPACE"
	vaultAuthority = "VAULT_CACERT"
	vaultToken     = "VAULT_TOKEN"
	loginVariable  = "REPRISE_VAULT_LOGIN" // loginToken, loginRole or loginPod
	roleVariable   = "REPRISE_VAULT_ROLE"
	mountVariable  = "REPRISE_VAULT_MOUNT"
)

// LoginFileVariable names the file with what a program logs in to Vault with.
const LoginFileVariable = "REPRISE_VAULT_LOGIN_FILE"

// The ways to log in.
const (
	loginToken = "token"
	loginRole  = "approle"
	loginPod   = "kubernetes"
)

// loginPause is how old a login is at least that is replaced because Vault has refused it: a policy may be missing, and Vault
// keeps each login.
const loginPause = time.Minute

// podToken is where Kubernetes puts the token of a pod's service account.
const podToken = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // a path

// vault reads secrets from HashiCorp Vault, or what has its API.
type vault struct {
	lookup func(string) (string, bool)
	now    func() time.Time

	mu     sync.Mutex
	client *http.Client  // nil before it is needed
	logins []*vaultLogin // the newest last; without those that have ended
}

// vaultLogin is a token of Vault, and what was made with it ends with it.
type vaultLogin struct {
	token   string
	own     bool // it was made by a login of this program
	refused bool // by Vault: it has ended, or a policy is missing
	madeAt  time.Time
	renewAt time.Time
	until   time.Time // zero if it is unknown
}

func newVault(lookup func(string) (string, bool), now func() time.Time) *vault {
	return &vault{lookup: lookup, now: now}
}

func (v *vault) setting(name string) string {
	value, _ := v.lookup(name)
	return value
}

// vaultAnswer is an answer of Vault.
type vaultAnswer struct {
	Data     json.RawMessage `json:"data"`
	Warnings []string        `json:"warnings"`
	LeaseID  string          `json:"lease_id"`
	Seconds  int64           `json:"lease_duration"`
	Extends  bool            `json:"renewable"`
	Login    *struct {
		Token   string `json:"client_token"`
		Seconds int64  `json:"lease_duration"`
	} `json:"auth"`
}

// FetchSecret reads a path. In a secret of version 2 of the KV engine, the fields are those of its data.
func (v *vault) FetchSecret(ctx context.Context, source connection.SecretSource) (connection.StoredSecret, error) {
	login, err := v.login(ctx, nil)
	if err != nil {
		return connection.StoredSecret{}, err
	}
	began := v.now()
	status, answer, err := v.call(ctx, http.MethodGet, source.Path, login.token, nil)
	if err == nil && status == http.StatusForbidden { // perhaps because the login has ended
		renewed, failed := v.login(ctx, login)
		if failed != nil {
			return connection.StoredSecret{}, failed
		}
		if renewed.token != login.token {
			login, began = renewed, v.now()
			status, answer, err = v.call(ctx, http.MethodGet, source.Path, login.token, nil)
		}
	}
	switch {
	case err != nil:
		return connection.StoredSecret{}, err
	case status == http.StatusNotFound:
		return connection.StoredSecret{}, missingPath(answer)
	case status != http.StatusOK:
		return connection.StoredSecret{}, refusal(status)
	}
	data, err := dataOf(answer)
	if err != nil || answer.LeaseID == "" {
		return connection.StoredSecret{Value: string(data)}, err
	}
	return connection.StoredSecret{Value: string(data), Lease: v.leaseOf(answer, login, began)}, nil
}

// missingPath returns the error for a path without a secret.
func missingPath(answer vaultAnswer) error {
	if slices.ContainsFunc(answer.Warnings, func(one string) bool { return strings.Contains(one, "versioned K/V") }) {
		return fmt.Errorf("%w: in version 2 of the KV engine, write MOUNT/data/PATH", connection.ErrMissing)
	}
	return connection.ErrMissing
}

// refusal returns the error for an answer that has no secret.
func refusal(status int) error {
	switch status {
	case http.StatusForbidden:
		return unreadable("Vault does not allow it (status 403): the path needs read in a policy of the login")
	case http.StatusServiceUnavailable:
		return unreadable("Vault is sealed (status 503)")
	}
	return unreadable("Vault answered with status %d", status)
}

// dataOf returns the fields of a secret as JSON.
func dataOf(answer vaultAnswer) ([]byte, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(answer.Data, &fields) != nil || len(fields) == 0 {
		return nil, connection.ErrMissing
	}
	inner, versioned := fields["data"], fields["metadata"]
	if len(fields) != 2 || versioned == nil || inner == nil {
		return answer.Data, nil
	}
	var data map[string]json.RawMessage
	switch {
	case json.Unmarshal(inner, &data) != nil: // fields that are called like that
		return answer.Data, nil
	case len(data) == 0: // a deleted version
		return nil, connection.ErrMissing
	}
	return inner, nil
}

// leaseOf returns the lease of a secret that Vault has made for a login.
func (v *vault) leaseOf(answer vaultAnswer, login *vaultLogin, began time.Time) *connection.SecretLease {
	id := answer.LeaseID
	end := func(from time.Time, seconds int64) time.Time {
		until := from.Add(time.Duration(seconds) * time.Second)
		if !login.until.IsZero() && login.until.Before(until) {
			return login.until
		}
		return until
	}
	lease := &connection.SecretLease{Until: end(began, answer.Seconds)}
	if answer.Extends {
		lease.Renew = func(ctx context.Context) (time.Time, error) {
			began := v.now()
			status, renewed, err := v.call(ctx, http.MethodPost, "sys/leases/renew", login.token, map[string]any{"lease_id": id, "increment": answer.Seconds})
			if err == nil && status != http.StatusOK {
				err = refusal(status)
			}
			return end(began, renewed.Seconds), err
		}
	}
	if !login.own { // Vault revokes what was made by a login together with it
		lease.Revoke = func(ctx context.Context) error {
			status, _, err := v.call(ctx, http.MethodPost, "sys/leases/revoke", login.token, map[string]any{"lease_id": id})
			if err == nil && status >= http.StatusMultipleChoices {
				err = refusal(status)
			}
			return err
		}
	}
	return lease
}

// Close revokes the tokens of own logins, with everything that was made by them.
func (v *vault) Close(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var errs []error
	for _, one := range v.logins {
		if !v.now().Before(one.until) {
			continue
		}
		status, _, err := v.request(ctx, http.MethodPost, "auth/token/revoke-self", one.token, nil)
		if err == nil && status >= http.StatusMultipleChoices && status != http.StatusForbidden { // by which it has ended
			err = refusal(status)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the login to Vault counts until %s: %w", one.until.UTC().Format(time.RFC3339), err))
		}
	}
	v.logins = nil
	return errors.Join(errs...)
}

// login returns a token that counts, by a new login if the last one ends soon, or is the one that was refused.
func (v *vault) login(ctx context.Context, refused *vaultLogin) (*vaultLogin, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	way := cmp.Or(v.setting(loginVariable), loginToken)
	if way == loginToken {
		token, err := v.givenToken()
		return &vaultLogin{token: token}, err
	}
	now := v.now()
	if refused != nil {
		if now.Sub(refused.madeAt) < loginPause {
			return refused, nil
		}
		refused.refused = true
	}
	v.logins = slices.DeleteFunc(v.logins, func(one *vaultLogin) bool { return !now.Before(one.until) })
	if n := len(v.logins); n > 0 && !v.logins[n-1].refused && now.Before(v.logins[n-1].renewAt) {
		return v.logins[n-1], nil
	}
	if err := v.prepare(); err != nil {
		return nil, err
	}
	body, err := v.loginBody(way)
	if err != nil {
		return nil, err
	}
	mount := strings.Trim(cmp.Or(v.setting(mountVariable), way), "/")
	status, answer, err := v.request(ctx, http.MethodPost, "auth/"+mount+"/login", "", body)
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK || answer.Login == nil || answer.Login.Token == "":
		return nil, unreadable("Vault refuses the login by %s at auth/%s (status %d)", way, mount, status)
	}
	duration := time.Duration(answer.Login.Seconds) * time.Second
	made := &vaultLogin{token: answer.Login.Token, own: true, madeAt: now, renewAt: now.Add(duration * 2 / 3), until: now.Add(duration)}
	if duration <= 0 { // a root token
		const long = 24 * time.Hour
		made.renewAt, made.until = now.Add(long), now.Add(2*long)
	}
	v.logins = append(v.logins, made)
	return made, nil
}

// givenToken returns the token that somebody else renews.
func (v *vault) givenToken() (string, error) {
	path, token := v.setting(LoginFileVariable), v.setting(vaultToken)
	switch {
	case path != "" && token != "":
		return "", unreadable("%s and %s are both set; keep one", vaultToken, LoginFileVariable)
	case path != "":
		return readLoginFile(path)
	case token == "":
		return "", unreadable("there is no login to Vault: set %s, %s, or %s to approle or kubernetes", vaultToken, LoginFileVariable, loginVariable)
	}
	return token, nil
}

// loginBody returns what a login sends.
func (v *vault) loginBody(way string) (map[string]any, error) {
	role, path := v.setting(roleVariable), v.setting(LoginFileVariable)
	switch {
	case way != loginRole && way != loginPod:
		return nil, unreadable("%s must be token, approle or kubernetes", loginVariable)
	case role == "":
		return nil, unreadable("the login by %s needs %s", way, roleVariable)
	case way == loginPod:
		token, err := readLoginFile(cmp.Or(path, podToken))
		return map[string]any{"role": role, "jwt": token}, err
	case path == "":
		return map[string]any{"role_id": role}, nil
	}
	secret, err := readLoginFile(path)
	return map[string]any{"role_id": role, "secret_id": secret}, err
}

func readLoginFile(path string) (string, error) {
	text, err := regular.Read(path)
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		err = failed.Err
	}
	if err != nil {
		return "", unreadable("the file %s: %w", path, err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return "", unreadable("the file %s is empty", path)
	}
	return string(bytes.TrimSpace(text)), nil
}

func (v *vault) call(ctx context.Context, method, path, token string, body map[string]any) (int, vaultAnswer, error) {
	v.mu.Lock()
	err := v.prepare()
	v.mu.Unlock()
	if err != nil {
		return 0, vaultAnswer{}, err
	}
	return v.request(ctx, method, path, token, body)
}

// request sends a request to Vault, for which the client is there. An answer that is no JSON is empty.
func (v *vault) request(ctx context.Context, method, path, token string, body map[string]any) (status int, answer vaultAnswer, err error) {
	base, err := url.Parse(v.setting(vaultAddress))
	if err != nil || base.Host == "" {
		return 0, answer, unreadable("%s must be the URL of Vault, such as https://vault.example.com:8200", vaultAddress)
	}
	text := []byte(nil)
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return 0, answer, unreadable("the request cannot be encoded")
		}
	}
	target := &url.URL{Scheme: base.Scheme, Host: base.Host, Path: strings.TrimSuffix(base.Path, "/") + "/v1/" + path}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(text))
	if err != nil {
		return 0, answer, unreadable("%s is no URL of Vault", vaultAddress)
	}
	request.Header.Set("X-Vault-Request", "true")
	if token != "" {
		request.Header.Set("X-Vault-Token", token)
	}
	if namespace := v.setting(vaultNamespace); namespace != "" {
		request.Header.Set("X-Vault-Namespace", namespace)
	}
	status, text, err = send(v.client, request)
	if err == nil {
		_ = json.Unmarshal(text, &answer)
	}
	return status, answer, err
}

// prepare makes the client. v.mu is held.
func (v *vault) prepare() error {
	if v.client != nil {
		return nil
	}
	usual, _ := http.DefaultTransport.(*http.Transport)
	transport := usual.Clone()
	if path := v.setting(vaultAuthority); path != "" {
		text, err := regular.Read(path)
		if err != nil {
			return unreadable("%s: %w", vaultAuthority, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return unreadable("%s: %s has no certificate in PEM", vaultAuthority, path)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	v.client = newClient(transport)
	return nil
}
