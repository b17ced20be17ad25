package secrets

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reprise/interpreter/credential"
)

// ConnectionSecrets are the parts of a connection that must be masked.
type ConnectionSecrets struct {
	secrets []string
	names   []string // of users
	short   []string // secrets that are masked only where the connection is used

	logins []string // users that were added later; with the lock of the set

	build sync.Once // of what follows, by ready

	patterns []pattern
	// distinct masks the secrets that cannot be mistaken for ordinary words, and echo is a quick check for them.
	distinct *masker
	echo     *matcher
}

// newConnection splits a configured connection into its secrets. It need not be well-formed: an unreadable connection
// is secret as a whole and in its parts.
func newConnection(raw string) *ConnectionSecrets {
	c := &ConnectionSecrets{}
	c.readConnection(strings.TrimSpace(raw))
	return c
}

// withPatterns returns the connection with its patterns, built on first use: most secrets are never searched for.
func (c *ConnectionSecrets) withPatterns() *ConnectionSecrets {
	c.build.Do(func() {
		var distinct, echoes []pattern
		for _, secret := range c.secrets {
			found := secretForms(secret)
			c.patterns = append(c.patterns, found...)
			if credential.LooksSecret(secret) {
				distinct, echoes = append(distinct, found...), append(echoes, echoedForms(secret, found)...)
			}
		}
		for _, name := range c.names {
			if credential.LooksSecret(name) {
				c.patterns = append(c.patterns, secretForms(name)...)
			}
		}
		c.distinct, c.echo = newMasker(distinct), newMatcher(echoes)
	})
	return c
}

// ResponseEchoes reports whether a response repeats a secret of the connection that cannot be mistaken for an ordinary word.
// It knows the usual forms, and reads the response once.
func ResponseEchoes[T string | []byte](c *ConnectionSecrets, answer T) (echoes bool) {
	eachMatch(c.withPatterns().echo, answer, func(int, int) bool { echoes = true; return false })
	return echoes
}

// MaskEchoes masks the secrets that Echoes finds in a text of a successful response.
func (c *ConnectionSecrets) MaskEchoes(text string) string {
	return maskText([]*masker{c.withPatterns().distinct}, text)
}

// Value is MaskEchoes for all texts and keys of a JSON value. v is not changed.
func (c *ConnectionSecrets) Value(v any) any {
	return maskValue([]*masker{c.withPatterns().distinct}, v)
}

func (c *ConnectionSecrets) addSecrets(values ...string) {
	for _, value := range values {
		switch {
		case len(value) >= minSecret:
			c.secrets = append(c.secrets, value)
		case len(value) >= minWord:
			c.short = append(c.short, value)
		}
	}
}

func (c *ConnectionSecrets) addName(name string) {
	if name != "" {
		c.names = append(c.names, name)
	}
}

func (c *ConnectionSecrets) readConnection(raw string) {
	scheme, rest, found := strings.Cut(raw, ":")
	scheme = strings.ToLower(strings.TrimSpace(scheme))
	switch {
	case strings.HasPrefix(raw, "{"):
		c.readObject(raw)
	case strings.HasPrefix(rest, "//"):
		c.readURL(raw, scheme)
	case found && (scheme == "sqlite" || scheme == "file"):
		// A file path is not a secret.
	case found && scheme == "bearer":
		c.readCredentials(rest, func(token string) { c.addSecrets(token); c.addParts(token) })
	case found && scheme == "header":
		_, value, _ := strings.Cut(rest, ":")
		c.readCredentials(value, c.readHeader)
	default:
		c.addMalformed(raw)
	}
}

// readCredentials reads a secret that may be followed by a host, which is not secret: otherwise a text that begins
// with the host would be masked as the end of the secret. A secret that is too short to be masked alone is masked
// together with its host.
func (c *ConnectionSecrets) readCredentials(text string, read func(string)) {
	secret, host := CutHost(text)
	if host != "" && len(secret) < minWord {
		c.addSecrets(strings.TrimSpace(text))
	}
	read(secret)
}

// CutHost splits the host off a secret: what follows the last @http:// or @https://, which no token contains (RFC
// 6750, section 2.1). host is "" if there is none.
func CutHost(text string) (secret, host string) {
	lower := strings.ToLower(text)
	at := max(strings.LastIndex(lower, "@http://"), strings.LastIndex(lower, "@https://"))
	if at < 0 {
		return strings.TrimSpace(text), ""
	}
	return strings.TrimSpace(text[:at]), text[at+1:]
}

// public are the keys of a connection map whose texts may be shown. All other texts are secrets.
var public = []string{
	"host", "cookies", "grant", "token_url", "authorize_url", "device_url", "scopes", "audience", "ca", "certificate", "issuer", "subject", "key_id", "algorithm", "lifetime", "service", "region",
}

// readObject adds the secrets of a connection that is a map.
func (c *ConnectionSecrets) readObject(raw string) {
	var entry map[string]any
	if err := json.Unmarshal([]byte(raw), &entry); err != nil {
		c.addMalformed(raw)
		return
	}
	if _, limited := entry["uses"]; limited { // it has names of tools and task queues
		delete(entry, "uses")
		bare, _ := json.Marshal(entry) // of what was JSON
		raw = string(bare)
	}
	switch {
	case c.readMembers(entry):
		c.addSecrets(raw)
	case !isElsewhere(entry):
		c.addMalformed(raw)
	}
}

// readMembers adds the secrets of a map within a connection, and reports whether there were any.
func (c *ConnectionSecrets) readMembers(of map[string]any) bool {
	if isSource(of) {
		return false
	}
	before := len(c.secrets) + len(c.short)
	for _, key := range slices.Sorted(maps.Keys(of)) {
		switch value := of[key].(type) {
		case map[string]any:
			switch key {
			case "headers", "query":
				for _, sent := range value {
					text, _ := sent.(string)
					c.readHeader(text)
				}
			case "claims": // whoever gets a token reads them
			case "session":
				login, _ := value["login"].(map[string]any)
				c.readLogin(login)
			default:
				c.readMembers(value)
			}
		case string:
			c.readMember(key, value)
		}
	}
	c.readPair(of, "user", "password")
	c.readPair(of, "client_id", "client_secret")
	return len(c.secrets)+len(c.short) > before
}

// isSource reports whether a map says where to read a secret, and so contains none.
func isSource(of map[string]any) bool {
	_, has := of["from"].(string)
	return has
}

// isElsewhere reports whether all secrets of a part of a connection are read from sources.
func isElsewhere(part any) bool {
	if list, isList := part.([]any); isList {
		return slices.ContainsFunc(list, isElsewhere)
	}
	of, isMap := part.(map[string]any)
	return isMap && (isSource(of) || slices.ContainsFunc(slices.Collect(maps.Values(of)), isElsewhere))
}

func (c *ConnectionSecrets) readMember(key, value string) {
	switch {
	case slices.Contains(public, key):
	case key == "user" || key == "client_id" || key == "access_key_id":
		c.addName(value)
	case key == "header":
		_, value, _ = strings.Cut(value, ":")
		c.readHeader(strings.TrimSpace(value))
	case strings.Contains(value, "://"):
		c.readConnection(value)
	case strings.HasPrefix(value, "-----BEGIN"):
		c.addSecrets(value)
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); credential.LooksSecret(line) && !strings.HasPrefix(line, "-----") {
				c.addSecrets(line)
			}
		}
	default:
		c.readHeader(value)
	}
}

// readPair adds a login whose user and password have separate keys, in the form in which it is sent (RFC 6749,
// section 2.3.1).
func (c *ConnectionSecrets) readPair(of map[string]any, user, password string) {
	id, _ := of[user].(string)
	secret, isText := of[password].(string)
	if isText && secret != "" {
		c.addSecrets(id+":"+secret, url.QueryEscape(id)+":"+url.QueryEscape(secret))
	}
}

// readHeader adds the value of a header, which may be basic authentication.
func (c *ConnectionSecrets) readHeader(value string) {
	c.addSecrets(value)
	c.addParts(value)
	scheme, rest, _ := strings.Cut(value, " ")
	if strings.EqualFold(scheme, "basic") {
		if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest)); err == nil {
			c.pairOf(string(decoded))
		}
	}
}

// users are the names of members that hold user names.
var users = []string{"user", "username", "user_name", "login", "email", "mail", "account", "tenant", "client_id"}

// ordinary are the names of members of a login that hold nothing secret.
var ordinary = []string{"grant_type", "type", "method", "scope", "locale", "language"}

// readLogin adds the secrets of a login request: everything in its body and headers except user names.
func (c *ConnectionSecrets) readLogin(of map[string]any) {
	if address, _ := of["url"].(string); strings.Contains(address, "://") {
		c.readConnection(address)
	}
	for _, part := range []string{"headers", "form"} {
		members, _ := of[part].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			c.readSent(name, members[name])
		}
	}
	c.readSent("", of["body"])
}

// readSent adds a value that a login sends, according to the name it is sent by.
func (c *ConnectionSecrets) readSent(name string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if isSource(value) {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			c.readSent(key, value[key])
		}
	case []any:
		for _, item := range value {
			c.readSent(name, item)
		}
	case string:
		switch lower := strings.ToLower(name); {
		case slices.Contains(users, lower):
			c.addName(value)
		case !slices.Contains(ordinary, lower):
			c.readHeader(value)
		}
	case float64:
		c.addSecrets(strconv.FormatFloat(value, 'f', -1, 64))
	}
}

// pairOf adds the parts of user:password.
func (c *ConnectionSecrets) pairOf(pair string) {
	user, password, _ := strings.Cut(pair, ":")
	c.addName(user)
	c.addSecrets(password, pair)
}

// addParts adds the words of a text that look like secrets, such as the token in "Token abc…".
func (c *ConnectionSecrets) addParts(text string) {
	for _, separators := range []string{" \t", " \t;,&=", " \t;,&=:?'\"/@"} {
		for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
			if part != text && credential.LooksSecret(part) {
				c.addSecrets(part)
			}
		}
	}
	if _, value, found := strings.Cut(text, " "); found { // behind the name of a scheme
		c.addSecrets(strings.TrimSpace(value))
	}
	if _, value, found := strings.Cut(text, "="); found { // a cookie's
		c.addSecrets(strings.TrimSpace(value))
	}
}

func (c *ConnectionSecrets) readURL(raw, scheme string) {
	u, err := url.Parse(raw)
	if err != nil {
		c.brokenURL(raw)
		return
	}
	web := scheme == "http" || scheme == "https"
	before := len(c.secrets) + len(c.short)
	if password, has := u.User.Password(); has {
		c.pairOf(u.User.Username() + ":" + password)
	} else if user := u.User.Username(); web && user != "" { // a key in the place of the user
		c.addSecrets(user, user+":")
	} else {
		c.addName(user)
	}
	if web {
		for _, segment := range strings.Split(u.EscapedPath(), "/") {
			c.addGuessed(segment, url.PathUnescape)
		}
	}
	for _, pair := range strings.Split(u.RawQuery, "&") {
		key, value, _ := strings.Cut(pair, "=")
		switch {
		case credential.HasPart(key):
			if decoded, err := url.QueryUnescape(value); err == nil {
				c.addSecrets(decoded)
			}
			c.addSecrets(value)
		case key == "user":
			c.addName(value)
		default:
			c.addGuessed(value, url.QueryUnescape)
		}
	}
	if len(c.secrets)+len(c.short) > before {
		c.addSecrets(raw)
	}
}

// addGuessed adds a part of a URL that looks like a secret.
func (c *ConnectionSecrets) addGuessed(text string, decode func(string) (string, error)) {
	decoded, err := decode(text)
	if err != nil {
		decoded = text
	}
	if credential.LooksSecret(decoded) {
		c.addSecrets(decoded, text)
	}
}

// brokenURL adds the login, and the rest, of a text that is not a valid URL.
func (c *ConnectionSecrets) brokenURL(raw string) {
	c.addSecrets(raw)
	_, rest, _ := strings.Cut(raw, "://")
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		c.pairOf(rest[:at])
		rest = rest[at+1:]
	}
	c.addParts(rest)
}

// setting matches a setting of a connection string, such as host=db password='a b'.
var setting = regexp.MustCompile(`([A-Za-z_]+)\s*=\s*('(?:[^'\\]|\\.)*'|\S+)`)

// addMalformed adds a text that no tool understands, or that is a token. A file path is not added.
func (c *ConnectionSecrets) addMalformed(raw string) {
	if isPath(raw) {
		return
	}
	c.addSecrets(raw)
	for _, found := range setting.FindAllStringSubmatch(raw, -1) {
		value := strings.Trim(found[2], "'")
		switch {
		case credential.HasPart(found[1]):
			c.addSecrets(value)
		case found[1] == "user":
			c.addName(value)
		}
	}
	_, rest, _ := strings.Cut(raw, ":")
	c.addSecrets(strings.TrimSpace(rest))
	c.addParts(raw)
}

// isPath reports whether a connection is a file path.
func isPath(raw string) bool {
	return !strings.ContainsAny(raw, " \t@?&=") &&
		(strings.HasPrefix(raw, "/") || strings.HasPrefix(raw, "./") || strings.HasSuffix(raw, ".db") || strings.HasSuffix(raw, ".sqlite"))
}

// asInURL undoes the escapes of characters that a query may contain unescaped: many clients send them so.
var asInURL = strings.NewReplacer("%2C", ",", "%3A", ":", "%2F", "/", "%40", "@")

// echoedForms returns the forms in which responses repeat a secret: unchanged, or with the usual escapes.
func echoedForms(secret string, found []pattern) []pattern {
	all := found
	for _, text := range []string{
		url.QueryEscape(secret), url.PathEscape(secret), asInURL.Replace(url.QueryEscape(secret)), asInURL.Replace(url.PathEscape(secret)), jsonPlain(secret), strings.ReplaceAll(jsonPlain(secret), "/", `\/`),
	} {
		all = append(all, pattern{text: text})
	}
	for _, text := range escapedForHTML(secret) {
		all = append(all, pattern{text: text})
	}
	distinct := all[:0:0]
	for _, p := range all {
		if len(p.text) >= credential.MinDistinct {
			distinct = append(distinct, p)
		}
	}
	return distinct
}
