package connection

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"reprise/interpreter/lists"
)

// kinds are the ways to authenticate, which a map may combine; settings may be added to them.
var (
	kinds    = []string{"bearer", "basic", "header", "headers", "query", "oauth2", "session", "jwt", "aws", "tls"}
	settings = []string{"host", "cookies", "url", "user", "password", "uses"}
)

var notAConnection = &Problem{Message: "must be text such as bearer:TOKEN or a URL, or a map with one or more of " + strings.Join(kinds, ", ")}

// decodeMap decodes an http connection written as a map.
func decodeMap(entry map[string]any) (*Login, *Problem) {
	d := &decoder{}
	s := section{d: d, values: entry}
	if isSource(entry) { // of a text as a whole
		s.readSource()
		return &Login{}, d.problem
	}
	s.refuseUnknown(slices.Concat(kinds, settings))
	s.readUses()
	if s.hasKey("url") || s.hasKey("user") || s.hasKey("password") {
		s.readDatabase()
		return &Login{}, d.problem
	}
	if !slices.ContainsFunc(kinds, s.hasKey) && d.problem == nil {
		return nil, notAConnection
	}
	c := &Login{Host: s.optionalHost("host"), Headers: s.readHeaders(), Query: s.queryParams(), TLS: s.readTLS(), StoreCookies: s.storesCookies()}
	if c.OAuth2 = s.readOAuth2(); c.OAuth2 != nil && c.OAuth2.Host != nil {
		if c.Host != nil {
			d.recordProblem([]string{"host"}, "has both host and oauth2.host; keep one")
		}
		c.Host = c.OAuth2.Host
	}
	c.Session, c.JWT, c.AWS = s.readSession(c), s.readJWT(), s.readAWS()
	s.refuseTwice(c)
	if d.problem != nil {
		return nil, d.problem
	}
	return c, nil
}

// readDatabase reads url, user and password, the only keys of a database connection besides uses.
func (s section) readDatabase() {
	s.requiredSecret("url")
	s.readSecret("user")
	s.readSecret("password")
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		if !slices.Contains([]string{"url", "user", "password", "uses"}, key) {
			s.d.recordProblem(s.pathOf(key), "has url (for a database) and %s (for http); keep one", key)
		}
	}
}

// readHeaders returns the headers of bearer, basic, header and headers, in this order; those of headers by name.
func (s section) readHeaders() (all []NameValue) {
	if s.hasKey("bearer") {
		all = append(all, s.headerPair("bearer", bearerHeader(s.requiredSecret("bearer"))))
	}
	if login := s.subsection("basic", "user", "password"); login != nil {
		all = append(all, basicHeader(login.requiredSecret("user"), login.readSecret("password")))
	}
	if s.hasKey("header") {
		name, value, _ := strings.Cut(s.requiredSecret("header"), ":")
		pair := NameValue{strings.TrimSpace(name), strings.TrimSpace(value)}
		if !s.isSourced("header") && (!httpguts.ValidHeaderFieldName(pair.Name) || pair.Value == "") {
			s.d.recordProblem(s.pathOf("header"), `must have header as text with name and value, such as "X-Api-Key: VALUE"`)
		}
		all = append(all, s.headerPair("header", pair))
	}
	if headers := s.subsection("headers"); headers != nil {
		all = append(all, headers.namedHeaders()...)
	}
	return lists.Map(all, func(p NameValue) NameValue { return NameValue{http.CanonicalHeaderKey(p.Name), p.Value} })
}

// namedHeaders returns headers with canonical names, and reports invalid names.
func (s section) namedHeaders() (all []NameValue) {
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		if !httpguts.ValidHeaderFieldName(name) {
			s.d.recordProblem(s.pathOf(name), "has an invalid header name in %s", s.keyName(""))
			continue
		}
		all = append(all, s.headerPair(name, NameValue{http.CanonicalHeaderKey(name), s.requiredSecret(name)}))
	}
	return all
}

// headerPair returns a header unchanged, and reports a value that cannot be sent.
func (s section) headerPair(key string, pair NameValue) NameValue {
	if !httpguts.ValidHeaderFieldValue(pair.Value) {
		s.d.recordProblem(s.pathOf(key), "has a line break or another control character in %s, which is not allowed in a header", s.keyName(key))
	}
	return pair
}

// queryParams returns the query parameters, by name.
func (s section) queryParams() []NameValue {
	parameters := s.subsection("query")
	if parameters == nil {
		return nil
	}
	return lists.Map(slices.Sorted(maps.Keys(parameters.values)), func(name string) NameValue { return NameValue{name, parameters.requiredSecret(name)} })
}

// refuseTwice reports what two kinds of authentication would both set, such as the same header or parameter.
func (s section) refuseTwice(c *Login) {
	names := lists.Map(c.Headers, func(p NameValue) string { return p.Name })
	if c.OAuth2 != nil || c.JWT != nil {
		names = append(names, authorization)
	}
	if c.AWS != nil {
		names = append(names, authorization)
	}
	if tokens := slices.DeleteFunc([]string{"oauth2", "session", "jwt"}, func(kind string) bool { return !s.hasKey(kind) }); len(tokens) > 1 {
		s.d.recordProblem([]string{tokens[1]}, "has %s and %s, which both give tokens; keep one", tokens[0], tokens[1])
	}
	if c.Session != nil && c.Session.Send.Header != "" {
		names = append(names, c.Session.Send.Header)
	}
	if c.Session != nil && slices.ContainsFunc(c.Query, func(p NameValue) bool { return p.Name == c.Session.Send.Query }) {
		s.d.recordProblem([]string{"query"}, "has query and session.send, which send one parameter; keep one")
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			shown := "one header"
			if name == authorization {
				shown = "the header Authorization"
			}
			s.d.recordProblem(nil, "has two settings that send %s; keep one", shown)
		}
	}
}

// storesCookies reports whether cookies are kept.
func (s section) storesCookies() bool {
	if s.hasKey("cookies") && s.values["cookies"] != "keep" {
		s.d.recordProblem(s.pathOf("cookies"), "accepts only cookies as keep; without the key, cookies are not kept")
	}
	return s.hasKey("cookies")
}

// readTLS reads the certificates and the key, in PEM.
func (s section) readTLS() *tls.Config {
	files := s.subsection("tls", "certificate", "key", "ca")
	if files == nil {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if files.hasKey("certificate") || files.hasKey("key") {
		pair, err := tls.X509KeyPair([]byte(files.requiredSecret("certificate")), []byte(files.requiredSecret("key")))
		if err != nil && !files.isSourced("certificate") && !files.isSourced("key") {
			s.d.recordProblem(files.path, "must have a certificate in PEM as tls.certificate, and its key in PEM as tls.key")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if files.hasKey("ca") {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(files.readSecret("ca"))) && !files.isSourced("ca") {
			s.d.recordProblem(files.pathOf("ca"), "must have certificates in PEM as tls.ca")
		}
	}
	return config
}
