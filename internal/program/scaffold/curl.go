package scaffold

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"reprise/interpreter/expression"
)

// maxCurl is the longest accepted curl command line, in bytes: it comes from standard input, and parsing it takes
// quadratic time.
const maxCurl = 1 << 20

// FromCurl describes a curl command line, as people type it or browsers copy it. The error says what cannot be read,
// without its value.
func FromCurl(line string) (*Description, error) {
	d, err := readCurl(line, func(name string) string { return "$" + name })
	if err != nil {
		return nil, err
	}
	d.hideSecrets()
	return d, nil
}

// readCurl reads the request of a command line with everything in it; variable returns the text for a shell variable.
func readCurl(line string, variable func(name string) string) (*Description, error) {
	words, err := curlWords(line, variable)
	if err != nil {
		return nil, err
	}
	c := &curl{d: &Description{}}
	for len(words) > 0 {
		if words, err = c.readWord(words); err != nil {
			return nil, err
		}
	}
	if err := c.buildRequest(); err != nil {
		return nil, err
	}
	return c.d, nil
}

// curlWords returns the arguments of the first curl command in a shell script.
func curlWords(line string, variable func(name string) string) (words []string, err error) {
	line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
	switch {
	case len(line) > maxCurl:
		return nil, fmt.Errorf("the command is %d bytes long; the limit is %d", len(line), maxCurl)
	case strings.Contains(line, "Invoke-WebRequest"):
		return nil, errors.New(`this is a PowerShell command; copy it as "cURL (bash)" instead`)
	case ofCmd.MatchString(line):
		return cmdWords(line)
	}
	defer func() { // the parser and the expansion are not ours
		if failure := recover(); failure != nil {
			words, err = nil, errors.New("the command is not valid shell syntax")
		}
	}()
	script, err := syntax.NewParser().Parse(strings.NewReader(joinAmpersands(line)), "")
	if err != nil {
		return nil, errors.New("the command is not valid shell syntax: " + reasonOf(err))
	}
	found := firstCurl(script)
	if found == nil {
		return nil, errors.New("expected a curl command, such as: curl https://api.example.com/users")
	}
	config := &expand.Config{Env: expand.FuncEnviron(func(name string) string {
		if name == "IFS" {
			return ""
		}
		return variable(name)
	})}
	for _, word := range found[1:] { // each is one word: nothing is split, and {1..9} stays as it is
		literal, err := expand.Literal(config, word)
		if err != nil {
			return nil, errors.New("the command contains something that only a shell can evaluate, such as $(…); replace it with its value")
		}
		words = append(words, literal)
	}
	return words, nil
}

// firstCurl returns the words of the first curl command in a script; nil if there is none.
func firstCurl(script *syntax.File) (found []*syntax.Word) {
	syntax.Walk(script, func(node syntax.Node) bool {
		call, isCall := node.(*syntax.CallExpr)
		if isCall && found == nil && len(call.Args) > 0 && isCurl(call.Args[0].Lit()) {
			found = call.Args
		}
		return found == nil
	})
	return found
}

// joinAmpersands quotes each & in an unquoted URL, where a shell would end the command: people often paste such
// lines. Characters after a backslash outside of quotes are literal, as zsh pastes URLs.
func joinAmpersands(line string) string {
	var out strings.Builder
	quote, dollar := byte(0), false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && quote == 0 && i+1 < len(line) && strings.IndexByte("?&=#;()<>|*~!$[]{} \"'", line[i+1]) >= 0:
			i++
			mark := "'"
			if line[i] == '\'' {
				mark = `"`
			}
			out.WriteString(mark + line[i:i+1] + mark)
			continue
		case c == '\\' && (quote != '\'' || dollar) && i+1 < len(line):
			out.WriteByte(c)
			i++
			c = line[i]
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, dollar = c, c == '\'' && i > 0 && line[i-1] == '$'
		case quote == 0 && c == '&' && i > 0 && i+1 < len(line) && !strings.ContainsAny(line[i-1:i]+line[i+1:i+2], " \t\r\n&|;<>"):
			out.WriteString("'&'")
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

// isCurl reports whether a command is curl.
func isCurl(command string) bool {
	return strings.HasSuffix(strings.TrimSuffix(strings.ToLower(command), ".exe"), "curl")
}

// reasonOf returns the message of a parse error without quoted text.
func reasonOf(err error) string {
	if of, ok := errors.AsType[syntax.ParseError](err); ok {
		return fmt.Sprintf("line %d, column %d: %s", of.Pos.Line(), of.Pos.Col(), of.Text)
	}
	return "it is not one"
}

// curl collects the options of a command.
type curl struct {
	d       *Description
	address string
	data    []string // of -d, one after the other
	query   []Pair   // of --url-query
	isJSON  bool     // by --json
	get     bool
	plain   bool // by --globoff, brackets of the address are text
}

// Options of curl. Options that affect the request are listed by their long names; of the others it only matters
// whether they have a value.
var (
	curlShort = map[byte]string{
		'X': "request", 'H': "header", 'd': "data", 'F': "form", 'G': "get", 'g': "globoff", 'u': "user", 'b': "cookie", 'A': "user-agent", 'e': "referer",
		'I': "head", 'o': "output", 'm': "max-time", 'x': "proxy", 'E': "cert", 'c': "cookie-jar", 'w': "write-out", 'T': "upload-file",
		'D': "dump-header", 'r': "range", 'K': "config", 'C': "continue-at", 'y': "speed-time", 'Y': "speed-limit", 'z': "time-cond", 'U': "proxy-user", 'Q': "quote", 'P': "ftp-port",
	}
	curlReads = []string{
		"request", "header", "data", "data-raw", "data-binary", "data-ascii", "data-urlencode", "json", "form", "form-string", "user", "oauth2-bearer",
		"cookie", "user-agent", "referer", "url", "url-query",
	}
	curlSkips = []string{
		"abstract-unix-socket", "alt-svc", "aws-sigv4", "cacert", "capath", "cert", "cert-type", "ciphers", "config", "connect-timeout", "connect-to",
		"continue-at", "cookie-jar", "create-file-mode", "crlfile", "curves", "delegation", "dns-interface", "dns-ipv4-addr", "dns-ipv6-addr",
		"dns-servers", "doh-url", "dump-header", "ech", "egd-file", "engine", "etag-compare", "etag-save", "expect100-timeout", "ftp-account",
		"ftp-alternative-to-user", "ftp-method", "ftp-port", "ftp-ssl-ccc-mode", "happy-eyeballs-timeout-ms", "haproxy-clientip", "hostpubmd5",
		"hostpubsha256", "hsts", "interface", "ip-tos", "ipfs-gateway", "keepalive-cnt", "keepalive-time", "key", "key-type", "krb", "libcurl",
		"limit-rate", "local-port", "login-options", "mail-auth", "mail-from", "mail-rcpt", "max-filesize", "max-redirs", "max-time", "netrc-file",
		"noproxy", "output", "output-dir", "parallel-max", "pass", "pinnedpubkey", "preproxy", "proto", "proto-default", "proto-redir", "proxy",
		"proxy-cacert", "proxy-capath", "proxy-cert", "proxy-cert-type", "proxy-ciphers", "proxy-crlfile", "proxy-header", "proxy-key", "proxy-key-type",
		"proxy-pass", "proxy-pinnedpubkey", "proxy-service-name", "proxy-tls13-ciphers", "proxy-tlsauthtype", "proxy-tlspassword", "proxy-tlsuser",
		"proxy-user", "proxy1.0", "pubkey", "quote", "random-file", "range", "rate", "request-target", "resolve", "retry", "retry-delay", "retry-max-time",
		"sasl-authzid", "service-name", "sigalgs", "socks4", "socks4a", "socks5", "socks5-gssapi-service", "socks5-hostname", "speed-limit", "speed-time",
		"stderr", "telnet-option", "tftp-blksize", "time-cond", "tls-max", "tls13-ciphers", "tlsauthtype", "tlspassword", "tlsuser", "trace",
		"trace-ascii", "trace-config", "unix-socket", "upload-file", "variable", "vlan-priority", "write-out",
	}
)

// readWord reads the next option or URL, and returns the remaining words.
func (c *curl) readWord(words []string) ([]string, error) {
	word, rest := words[0], words[1:]
	switch {
	case word == "--":
		return rest, nil
	case strings.HasPrefix(word, "--"):
		name, value, attached := strings.Cut(word[2:], "=")
		if attached {
			return rest, c.readOption(name, value)
		}
		return c.readLongOption(name, rest)
	case len(word) > 1 && word[0] == '-':
		return c.readLetters(word[1:], rest)
	case c.address != "":
		return nil, errors.New("the command requests several URLs; keep one")
	}
	c.address = word
	return rest, nil
}

// readLetters reads combined short options, the last of which may have a value.
func (c *curl) readLetters(letters string, rest []string) ([]string, error) {
	for i := range len(letters) {
		name, known := curlShort[letters[i]]
		switch {
		case !known: // one such as -s, which says nothing of the request
		case name == "get" || name == "head" || name == "globoff":
			if err := c.readOption(name, ""); err != nil {
				return nil, err
			}
		case i+1 < len(letters):
			return rest, c.readOption(name, letters[i+1:])
		default:
			return c.readLongOption(name, rest)
		}
	}
	return rest, nil
}

// readLongOption reads an option by its long name, with the next word as its value if it has one.
func (c *curl) readLongOption(name string, rest []string) ([]string, error) {
	if !slices.Contains(curlReads, name) && !slices.Contains(curlSkips, name) {
		return rest, c.readOption(name, "")
	}
	if len(rest) == 0 {
		return nil, fmt.Errorf("curl option %q has no value", name)
	}
	return rest[1:], c.readOption(name, rest[0])
}

func (c *curl) readOption(name, value string) error {
	switch name {
	case "request":
		c.d.Method = strings.ToUpper(value)
	case "get":
		c.get = true
	case "head":
		c.d.Method = "HEAD"
	case "url":
		c.address = value
	case "globoff":
		c.plain = true
	case "header":
		if strings.HasPrefix(value, "@") {
			return errors.New("the headers are read from a file; write them into the command instead of @FILE")
		}
		name, text, _ := strings.Cut(value, ":")
		name, text = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(text)
		if name != "" && text != "" {
			c.d.Headers = append(c.d.Headers, Pair{name, text})
		}
	case "user-agent", "referer": // nobody's business but the browser's
	case "cookie":
		c.d.Headers = append(c.d.Headers, Pair{"cookie", value})
	case "user":
		if !strings.Contains(value, ":") {
			value += ":?"
		}
		c.d.Headers = append(c.d.Headers, Pair{"authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(value))})
	case "oauth2-bearer":
		c.d.Headers = append(c.d.Headers, Pair{"authorization", "Bearer " + value})
	case "json":
		c.isJSON = true
		return c.addContent(value)
	case "data", "data-raw", "data-binary", "data-ascii":
		return c.addContent(value)
	case "data-urlencode":
		if strings.Contains(strings.SplitN(value, "=", 2)[0], "@") {
			return errors.New("--data-urlencode reads from a file; write the value into the command instead of @FILE")
		}
		c.data = append(c.data, encodePair(value))
	case "url-query":
		c.query = append(c.query, pairsOf(encodePair(value))...)
	case "form", "form-string", "upload-file":
		return fmt.Errorf("curl --%s sends files, but the http tool sends only JSON, text or form fields", name)
	case "aws-sigv4":
		return errors.New("curl --aws-sigv4 signs requests; run the command without it and without -u, and configure the keys as a connection with aws")
	case "config":
		return errors.New("curl --config reads a file; write its options into the command")
	}
	return nil
}

// addContent adds a body. A body from a file is refused.
func (c *curl) addContent(value string) error {
	if strings.HasPrefix(value, "@") {
		return errors.New("the body is read from a file; write it into the command instead of @FILE")
	}
	c.data = append(c.data, value)
	return nil
}

// encodePair returns a value of --data-urlencode as an encoded form field.
func encodePair(value string) string {
	name, text, found := strings.Cut(value, "=")
	if !found {
		return url.QueryEscape(value)
	}
	return name + "=" + url.QueryEscape(text)
}

// globbed matches what curl expands to several URLs.
var globbed = regexp.MustCompile(`\{[^{}]*,[^{}]*\}|\[[0-9a-zA-Z]+-[0-9a-zA-Z]+(:[0-9]+)?\]`)

// buildRequest creates the request from the parsed options.
func (c *curl) buildRequest() error {
	if c.address == "" {
		return errors.New("the command has no URL, such as https://api.example.com/users")
	}
	if !c.plain && globbed.MatchString(c.address) {
		return errors.New("the URL expands to several, through {…,…} or […-…]; write one, with {NAME} for the part that varies")
	}
	if err := c.d.setAddress(c.address); err != nil {
		return err
	}
	c.d.Params = append(c.d.Params, c.query...)
	data := strings.Join(c.data, "&")
	switch {
	case c.get:
		c.d.Params = append(c.d.Params, pairsOf(data)...)
	case len(c.data) > 0:
		c.d.Method = cmp.Or(c.d.Method, "POST")
		if c.isJSON {
			data = strings.Join(c.data, "")
		}
		contentType, _ := findPair(c.d.Headers, "content-type")
		c.d.setBody(data, expression.Text(contentType))
	}
	c.d.Method = cmp.Or(c.d.Method, "GET")
	if !slices.Contains(methods, c.d.Method) {
		return errors.New("the request's method must be one of " + strings.Join(methods, ", "))
	}
	return nil
}

// methods are the methods that the http tool supports.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// setAddress splits an address into its parts.
func (r *Request) setAddress(address string) error {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	parsed, err := url.Parse(strings.NewReplacer("{", "%7B", "}", "%7D", " ", "%20").Replace(address))
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return errors.New("the URL is not valid; it must look like https://host/path")
	}
	base := url.URL{Scheme: parsed.Scheme, Host: parsed.Host, User: parsed.User}
	r.Base, r.Path = base.String(), parsed.Path
	r.Params = append(r.Params, pairsOf(parsed.RawQuery)...)
	return nil
}

// pairsOf returns the pairs of a query or form, in order; numbers become numbers.
func pairsOf(query string) (pairs []Pair) {
	for _, part := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		if name = unescapeText(name); name == "" {
			continue
		}
		pairs = addPair(pairs, name, numberOf(unescapeText(value)))
	}
	return pairs
}

// addPair adds a value; several values of one name become a list.
func addPair(pairs []Pair, name string, value any) []Pair {
	for i := range pairs {
		if pairs[i].Name != name {
			continue
		}
		list, isList := pairs[i].Value.([]any)
		if !isList {
			list = []any{pairs[i].Value}
		}
		pairs[i].Value = append(slices.Clip(list), value)
		return pairs
	}
	return append(pairs, Pair{name, value})
}

func unescapeText(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return strings.ToValidUTF8(plain, "\uFFFD")
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// numberOf returns the number that a text represents in the usual notation, else the text.
func numberOf(text string) any {
	const digits = 9 // digits of a number that is surely none of an identifier
	if len(text) == 0 || len(text) > digits || len(text) > 1 && text[0] == '0' || strings.Trim(text, "0123456789") != "" {
		return text
	}
	value, err := expression.Decode([]byte(text))
	if err != nil {
		return text
	}
	return value
}

// setBody parses a body according to its content type.
func (r *Request) setBody(text, contentType string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	value, err := expression.Decode([]byte(text))
	_, isMap := value.(map[string]any)
	_, isList := value.([]any)
	switch {
	case err == nil && (isMap || isList):
		r.Body = value
	case strings.Contains(contentType, "json") || strings.HasPrefix(strings.TrimSpace(text), "<") || !strings.Contains(text, "="):
		r.Text = text
	default:
		r.Form = pairsOf(text)
	}
}
