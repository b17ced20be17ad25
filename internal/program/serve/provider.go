package serve

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"reprise/internal/base/audit"
	"reprise/internal/base/bearer"
	"reprise/interpreter/lists"
)

// providerKey is the key of the file of callers that names an identity provider. No caller has this name.
const providerKey = "jwt"

// readProvider reads the entry of an identity provider. The error is a *callerProblem.
func readProvider(entry any) (*bearer.Settings, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return nil, problemAt(nil, "expected a map such as {issuer: URL, audience: reprise, jwks_url: URL, roles_claim: roles}; it is no caller")
	}
	settings := &bearer.Settings{}
	keys := []struct {
		name string
		into *string
	}{{"issuer", &settings.Issuer}, {"jwks_url", &settings.KeysURL}, {"roles_claim", &settings.RolesClaim}}
	known := []string{"issuer", "audience", "jwks_url", "roles_claim"}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return nil, problemAt([]string{name}, "%s", unknownKey(name, known))
		}
	}
	for _, key := range keys {
		if *key.into, ok = fields[key.name].(string); !ok || *key.into == "" {
			return nil, problemAt(pathOf(fields, key.name), "needs %s, as text", key.name)
		}
	}
	if settings.Audience, ok = textsOf(fields["audience"]); !ok || len(settings.Audience) == 0 || slices.Contains(settings.Audience, "") {
		return nil, problemAt(pathOf(fields, "audience"), "needs audience, as text or a list of texts: whom the tokens are for")
	}
	if err := bearer.CheckKeysURL(settings.KeysURL); err != nil {
		return nil, problemAt([]string{"jwks_url"}, "jwks_url: %w", err)
	}
	return settings, nil
}

// pathOf returns the path of a key of an entry, or that of the entry if it lacks the key.
func pathOf(fields map[string]any, key string) []string {
	if _, has := fields[key]; has {
		return []string{key}
	}
	return nil
}

// trust sets whose tokens count, nil for none. Keys that were read stay if the settings do.
func (c *Callers) trust(settings *bearer.Settings) {
	switch {
	case settings == nil:
		c.tokens = nil
	case c.tokens == nil || !reflect.DeepEqual(c.tokens.Settings(), *settings):
		c.tokens = bearer.New(*settings, c.now)
	}
}

// provider returns what checks the tokens of the identity provider; nil if there is none.
func (c *Callers) provider() *bearer.Verifier {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens
}

// ReadProviderKeys reads the keys of the identity provider, if there is one, so that a wrong address is noticed early.
func (c *Callers) ReadProviderKeys(ctx context.Context) error {
	if tokens := c.provider(); tokens != nil {
		return tokens.ReadKeys(ctx)
	}
	return nil
}

// callerOf returns the caller of a request with a token.
func (s *Server) callerOf(r *http.Request) (*caller, error) {
	if s.Callers != nil {
		if err := s.Callers.readChanged(); err != nil {
			s.Logger.Error("cannot read the file of callers; every token is refused until it can be read", "error", err)
			return nil, newProblem(http.StatusServiceUnavailable, "callers", "the file of callers cannot be read; see the log of starter serve").withHeader("Retry-After", "10")
		}
	}
	token, has := bearerToken(r.Header)
	if caller := s.Callers.findCaller(token); has && caller != nil {
		return caller, nil
	}
	tokens := s.Callers.provider()
	if !has || tokens == nil || !bearer.IsToken(token) {
		return nil, unauthorizedProblem()
	}
	holder, err := tokens.Verify(r.Context(), token)
	if unread, ok := errors.AsType[*bearer.KeysError](err); ok {
		s.Logger.Error("cannot read the keys of the identity provider; its tokens are refused until they can be read", "error", unread)
		return nil, newProblem(http.StatusServiceUnavailable, "jwt-keys", "the keys of the identity provider cannot be read; see the log of starter serve").withHeader("Retry-After", "10")
	}
	if refused, ok := errors.AsType[*bearer.InvalidTokenError](err); ok {
		logWith(r, "refused", refused.Reason)
		return nil, unauthorizedProblem()
	}
	if err != nil {
		return nil, err
	}
	grants, unknown := grantsOf(holder.Roles)
	if unknown > 0 {
		logWith(r, "roles_ignored", unknown)
	}
	return &caller{name: holder.Subject, id: holderID(holder.Subject), proof: audit.ProofJWT, grants: grants}, nil
}

// plainSubject matches subjects that can be part of a workflow ID unchanged. Addresses of people are no part of IDs, which are never
// encrypted.
var plainSubject = regexp.MustCompile(`^[A-Za-z0-9_.|+=-]{1,100}$`)

// holderID returns the ID of the subject of a token. Names of callers have no dots, and senders begin with @.
func holderID(subject string) string {
	if !plainSubject.MatchString(subject) {
		subject = "~" + hashOf([]byte(subject))
	}
	return providerKey + "." + subject
}

// grantsOf returns the grants of the roles in a token: ROLE for all playbooks, or PATTERN=ROLE,ROLE. Providers also put roles of
// other programs into a token: unknown is how many texts are none of these.
func grantsOf(texts []string) (grants []grant, unknown int) {
	for _, text := range texts {
		pattern, given, found := strings.Cut(text, "=")
		if !found {
			pattern, given = anyPlaybook, text
		}
		roles := lists.Map(strings.Split(given, ","), func(role string) any { return role })
		read, err := readGrants([]string{"roles"}, map[string]any{pattern: roles})
		if err != nil {
			unknown++
			continue
		}
		grants = append(grants, read...)
	}
	return grants, unknown
}
