package scaffold

import (
	"encoding/base64"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"reprise/internal/base/secrets"
	"reprise/internal/program/node"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
)

// Description is a request as somebody described it, and what is known about its responses. After hideSecrets was
// called, nothing in it is secret.
type Description struct {
	Name string // of what is requested, "" for not said
	Desc string // one line, "" for none
	Request
	// Accepts are parameters that the API supports but the request does not use, with their usual values, or nil.
	Accepts []Pair
	Answer  *Response // nil where none is known
	// Later are later requests of the same kind, in order.
	Later []Request
	// Poll is the request for the progress of a job that Request starts; nil if there is none.
	Poll *Request
	// Notes are remarks for people about how the description was read.
	Notes []string
	// login is how requests authenticate; nil if they do not.
	login *login
	// given are the names of values that each run must be given, because they must not be in a file.
	given []string
	// probed is set if Answer came from a probe. rows is the number of rows in it.
	probed bool
	rows   int
	// known are the secrets that were removed, which may occur elsewhere too.
	known secrets.Masker
}

// Request is one request.
type Request struct {
	Method  string // in upper case
	Base    string // scheme and host, with a prefix of the path where the document says so
	Path    string // with {names} where something is filled in
	Params  []Pair
	Headers []Pair // by names in lower case
	Body    any    // of JSON, canonical; nil for none
	Form    []Pair
	Text    string // a body that is neither
}

// Response is an HTTP response.
type Response struct {
	Body   any  // canonical
	Linked bool // the header Link leads to the next page
}

// Pair is a name with a value.
type Pair struct {
	Name  string
	Value any // canonical, or a template
}

// findPair returns the value of a name, ignoring case.
func findPair(pairs []Pair, name string) (any, bool) {
	for _, pair := range pairs {
		if strings.EqualFold(pair.Name, name) {
			return pair.Value, true
		}
	}
	return nil, false
}

func dropPairs(pairs []Pair, drop func(Pair) bool) []Pair {
	return slices.DeleteFunc(slices.Clone(pairs), drop)
}

// login is how a request authenticates, without the secret itself.
type login struct {
	name string // of the connection
	// below is set if the connection's address has a path, to which the request's path is relative.
	below bool
	form  string // what it looks like
}

// isSecret reports whether a value must not be written to a file.
func isSecret(name string, value any) bool {
	text, isText := value.(string)
	switch {
	case !isText:
		return value != nil && credential.NamesSecret(name)
	case credential.IsToken(text), credential.HasInside(text):
		return true
	case credential.NamesPage(name):
		return false
	case credential.NamesSecret(name):
		return true
	}
	return credential.MayName(name) && credential.LooksSecret(text)
}

// browser matches headers that browsers add by themselves, and those that the http tool sets.
var browser = regexp.MustCompile(`^(sec-.*|user-agent|origin|referer|accept-language|accept-encoding|priority|pragma|cache-control|dnt|te|connection|content-length|host|if-none-match|if-modified-since|upgrade-insecure-requests|x-requested-with|:.*|postman-token|traceparent|tracestate|newrelic|x-client-data)$`)

// hideSecrets removes all secrets from the description: credentials become a connection, and other secrets become
// values that each run is given.
func (d *Description) hideSecrets() {
	d.hideUser()
	d.filterHeaders()
	d.learnSecrets(&d.Request)
	for i := range d.Later {
		d.learnSecrets(&d.Later[i])
	}
	d.Params = d.hidePairs(d.Params, "parameter")
	d.Form = d.hidePairs(d.Form, "form field")
	d.Body = d.hideIn(d.Body, "")
	if d.Text != "" && (credential.HasInside(d.Text) || credential.AssignsSecret(d.Text) || d.known.MaskText(d.Text) != d.Text) {
		d.Text, d.Body = "", d.passTemplate("body", "text")
	}
	d.hidePath()
	for i := range d.Later {
		d.Later[i] = Request{
			Params: dropPairs(d.Later[i].Params, func(p Pair) bool { return d.isSecret(p.Name, p.Value) }), Body: d.hideIn(d.Later[i].Body, ""),
		}
	}
	d.Desc = d.known.MaskText(d.Desc)
	for i := range d.Headers {
		d.Headers[i].Value = d.known.Value(d.Headers[i].Value)
	}
	if d.Answer != nil {
		d.Answer.Body = d.known.Value(hideStrings(d.Answer.Body))
	}
}

// learnSecrets records the secrets of a request.
func (d *Description) learnSecrets(r *Request) {
	for _, header := range r.Headers {
		if isLoginHeader(header) {
			d.learnHeader(header.Name, expression.Text(header.Value))
		}
	}
	for _, pair := range slices.Concat(r.Params, r.Form) {
		d.learnValue(pair.Name, pair.Value)
	}
	d.learnValue("", r.Body)
	d.known.Add(d.pathSecrets(r.Path)...)
}

// learnValue records the secrets in a value.
func (d *Description) learnValue(name string, value any) {
	switch of := value.(type) {
	case map[string]any:
		for _, key := range playbook.SortedKeys(of) {
			d.learnValue(key, of[key])
		}
	case []any:
		for _, item := range of {
			d.learnValue(name, item)
		}
	case string:
		inside := credential.FindSecrets(of)
		d.known.Add(inside...)
		if len(inside) == 0 && isSecret(name, of) {
			d.known.Add(of)
		}
	}
}

// learnHeader records the secrets in a header that authenticates.
func (d *Description) learnHeader(name, value string) {
	d.known.Add(value)
	switch name {
	case "cookie":
		for _, cookie := range strings.Split(value, ";") {
			if _, text, _ := strings.Cut(cookie, "="); credential.LooksSecret(strings.TrimSpace(text)) {
				d.known.Add(strings.TrimSpace(text))
			}
		}
	case "authorization":
		_, rest, _ := strings.Cut(value, " ")
		d.known.Add(rest)
		if decoded, err := base64.StdEncoding.DecodeString(rest); err == nil {
			_, password, _ := strings.Cut(string(decoded), ":")
			d.known.Add(password)
		}
	}
}

// isSecret reports whether a value must not be written to a file, because it looks like a secret or is a known one.
func (d *Description) isSecret(name string, value any) bool {
	if text, isText := value.(string); isText && d.known.MaskText(text) != text {
		return true
	}
	return isSecret(name, value)
}

// hostURL returns the scheme and host of the requests.
func (d *Description) hostURL() string {
	parsed, err := url.Parse(d.Base)
	if err != nil || parsed.Host == "" {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}

// hideUser removes user and password from the URL.
func (d *Description) hideUser() {
	parsed, err := url.Parse(d.Base)
	if err != nil || parsed.User == nil {
		return
	}
	password, _ := parsed.User.Password()
	if password == "" { // a key alone
		password = parsed.User.Username()
	}
	d.known.Add(password)
	parsed.User = nil
	d.Base = parsed.String()
	d.loginBy(parsed.Scheme + "://USER:PASSWORD@" + parsed.Host)
}

// loginBy makes the request authenticate with a connection. Only the first method that is found is used.
func (d *Description) loginBy(form string) bool {
	if d.login != nil {
		return false
	}
	d.login = &login{name: d.connectionName(), form: form}
	return true
}

// connectionName returns a name derived from the host: github for api.github.com.
func (d *Description) connectionName() string {
	parsed, err := url.Parse(d.hostURL())
	if err != nil || parsed.Hostname() == "" || net.ParseIP(parsed.Hostname()) != nil || parsed.Hostname() == "localhost" {
		return "api"
	}
	labels := strings.Split(parsed.Hostname(), ".")
	labels = slices.DeleteFunc(labels, func(label string) bool { return slices.Contains([]string{"www", "api", "rest", "app"}, label) })
	if len(labels) > 1 {
		labels = labels[:len(labels)-1]
	}
	if len(labels) == 0 {
		return "api"
	}
	return NameOf(labels[len(labels)-1], "api")
}

// filterHeaders keeps only the headers that the request needs.
func (d *Description) filterHeaders() {
	var needed []Pair
	isLogin := func(p Pair) bool { return p.Name == "authorization" }
	slices.SortStableFunc(d.Headers, func(a, b Pair) int { // what logs in most surely goes first
		switch {
		case isLogin(a) == isLogin(b):
			return 0
		case isLogin(a):
			return -1
		}
		return 1
	})
	for _, header := range d.Headers {
		text := expression.Text(header.Value)
		if isLoginHeader(header) {
			d.learnHeader(header.Name, text)
		}
		switch {
		case header.Name == "authorization":
			d.useAuthorization(text)
		case header.Name == "cookie":
			if d.login != nil || !d.loginBy("header:Cookie: COOKIES@"+d.hostURL()) {
				d.Notes = append(d.Notes, "cookies were left out, because the request authenticates with another header")
			}
		case browser.MatchString(header.Name):
		case isLoginHeader(header):
			d.headerLogin(header.Name)
		case header.Name == "accept" && (text == "*/*" || strings.HasPrefix(text, "application/json") && !strings.Contains(text, "version")):
		case header.Name == "content-type" && d.impliesType(text):
		default:
			needed = append(needed, header)
		}
	}
	d.Headers = needed
}

// isLoginHeader reports whether a header contains credentials.
func isLoginHeader(header Pair) bool {
	return header.Name == "authorization" || header.Name == "cookie" || credential.HeaderMayHoldSecret(header.Name) || isSecret(header.Name, header.Value)
}

// impliesType reports whether the tool sets the content type by itself.
func (d *Description) impliesType(contentType string) bool {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	switch strings.TrimSpace(media) {
	case "application/json":
		return d.Body != nil || d.Text == ""
	case "application/x-www-form-urlencoded":
		return d.Form != nil || d.Text == ""
	}
	return false
}

func (d *Description) headerLogin(name string) {
	if d.loginBy("header:" + canonicalHeader(name) + ": VALUE@" + d.hostURL()) {
		return
	}
	d.Notes = append(d.Notes, "the header "+canonicalHeader(name)+" holds a secret and was left out, because a connection has only one header")
}

func canonicalHeader(name string) string {
	words := strings.Split(name, "-")
	for i, word := range words {
		if word != "" {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "-")
}

// useAuthorization converts an Authorization header to a connection.
func (d *Description) useAuthorization(value string) {
	scheme, rest, _ := strings.Cut(value, " ")
	switch strings.ToLower(scheme) {
	case "bearer":
		d.loginBy("bearer:TOKEN@" + d.hostURL())
	case "basic":
		form := strings.Replace(d.hostURL(), "://", "://USER:PASSWORD@", 1)
		if decoded, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.HasSuffix(string(decoded), ":") {
			form = strings.Replace(form, "USER:PASSWORD", "KEY", 1)
		}
		d.loginBy(form)
	default:
		form := "header:Authorization: " + scheme + " VALUE@" + d.hostURL()
		if rest == "" { // the value itself is the secret
			form = "header:Authorization: VALUE@" + d.hostURL()
		}
		d.loginBy(form)
	}
}

// hidePairs replaces secret values of pairs by values that each run is given.
func (d *Description) hidePairs(pairs []Pair, what string) []Pair {
	all := slices.Clone(pairs)
	for i, pair := range all {
		if d.isSecret(pair.Name, pair.Value) {
			all[i].Value = d.passTemplate(pair.Name, what)
		}
	}
	return all
}

// passTemplate returns the template for a value that each run is given.
func (d *Description) passTemplate(name, what string) node.Verbatim {
	key := check.FreeName(NameOf(name, "secret"))
	if !slices.Contains(d.given, key) {
		d.given = append(d.given, key)
		d.Notes = append(d.Notes, "the "+what+" "+name+" holds a secret, so its value was left out: pass it with --set "+key+
			"=VALUE. The value is then stored in the run's history; if the API accepts a header instead, use a connection (docs/how-to/secrets.md)")
	}
	return node.Verbatim("{{ " + key + " }}")
}

// hideIn removes secrets from a body.
func (d *Description) hideIn(value any, name string) any {
	switch of := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(of))
		for _, key := range playbook.SortedKeys(of) {
			shown[key] = d.hideIn(of[key], key)
		}
		return shown
	case []any:
		return lists.Map(of, func(item any) any { return d.hideIn(item, name) })
	case string:
		if d.isSecret(name, of) {
			return d.passTemplate(name, "member")
		}
	default:
		if _, isBool := value.(bool); !isBool && isSecret(name, value) {
			return d.passTemplate(name, "member")
		}
	}
	return value
}

// hidePath removes segments from the path that are, or may be, secrets: the path up to the last of them becomes part
// of the connection. If nothing would be left after them, or the connection fetches tokens and so has no path, they
// become values of the workload, which each run needs.
func (d *Description) hidePath() {
	suspects := d.pathSecrets(d.Path)
	segments, end := strings.Split(d.Path, "/"), 0
	var hidden []int
	for i, segment := range segments {
		if slices.Contains(suspects, segment) || d.known.MaskText(segment) != segment {
			hidden, end = append(hidden, i), i+1
		}
	}
	if len(hidden) == 0 {
		return
	}
	if d.beginBelow(segments[:end], hidden, segments[end:]) {
		return
	}
	d.passTemplate("path_token", "part of the path")
	for _, i := range hidden {
		segments[i] = "{path_token}"
	}
	d.Path = strings.Join(segments, "/")
}

// beginBelow moves the first segments of the path into the connection's address, with hidden ones replaced. It
// returns false if there can be no such connection.
func (d *Description) beginBelow(first []string, hidden []int, rest []string) bool {
	_, host, _ := strings.Cut(d.hostURL(), "://")
	if strings.Join(rest, "") == "" || host == "" || !strings.HasSuffix(d.Base, host) || inPath.MatchString(strings.Join(first, "/")) {
		return false
	}
	d.loginBy(d.hostURL())
	if !strings.HasSuffix(d.login.form, host) {
		return false
	}
	segments := slices.Clone(first)
	for _, i := range hidden {
		segments[i] = "PATH_TOKEN"
	}
	d.login.form += strings.Join(segments, "/")
	d.login.below = true
	d.Path = "/" + strings.Join(rest, "/")
	d.Notes = append(d.Notes, "part of the path may be a secret and was moved to the connection "+d.login.name+"; the playbook's url is relative to its path")
	return true
}

// pathSecrets returns the segments of an API path that may be secrets.
func (d *Description) pathSecrets(path string) []string {
	host := ""
	if parsed, err := url.Parse(d.Base); err == nil {
		host = parsed.Hostname()
	}
	return credential.PathSuspects(host, path)
}

// hideStrings returns a response that may be in a test: without members whose names suggest secrets, with few rows
// and short texts.
func hideStrings(value any) any {
	const shownRows = 2
	switch of := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(of))
		for _, key := range playbook.SortedKeys(of) {
			name := credential.WithoutInside(key)
			switch member := of[key].(type) {
			case string:
				shown[name] = hiddenText(key, member)
			case bool, nil, map[string]any, []any:
				shown[name] = hideStrings(member)
			default: // a number
				if shown[name] = member; isSecret(key, member) {
					shown[name] = secrets.Stars
				}
			}
		}
		return shown
	case []any:
		return lists.Map(of[:min(len(of), shownRows)], hideStrings)
	case string:
		return hiddenText("", of)
	}
	return value
}

// hiddenText returns a text of a response without secrets, shortened.
func hiddenText(name, text string) string {
	const shownText = 200
	if shown := credential.WithoutInside(text); shown != text {
		text = shown
	} else if text != "" && isSecret(name, text) {
		return secrets.Stars
	}
	if of := []rune(text); len(of) > shownText {
		return string(of[:shownText])
	}
	return text
}
