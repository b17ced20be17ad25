package ui

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"reprise/internal/base/audit"
)

// Person is a user of the pages.
type Person struct {
	Name string
	// Operator is set if the person may change runs; others may only see them.
	Operator bool
	// Owner is set if the person started the pages, and may do whatever the Temporal server can.
	Owner bool
	// SignedIn is set if the person signed in with a token, and may sign out.
	SignedIn bool

	proof audit.ActorProof // of the name
}

// Access configures who may use the pages.
type Access struct {
	// Key is in the link with which a person first opens the pages, and in a cookie afterwards; "" admits nobody in
	// this way. Owner is the name of a person admitted with it.
	Key, Owner string
	// UserHeader is the header in which Proxies name the person; "" admits nobody in this way.
	UserHeader string
	Proxies    []netip.Prefix
	// Holder returns the owner of a token with which people sign in; nil disables tokens.
	Holder func(token string) (Person, bool)
	// ReadOnly allows nobody to change runs.
	ReadOnly bool
	// Hosts are the accepted host names of requests, with their ports.
	Hosts []string
}

// KeyOf derives the key of the pages from the key of a local server, which must not appear in a URL. The key of
// read-only pages is not valid for other pages.
func KeyOf(key string, readOnly bool) string {
	purpose := "web page"
	if readOnly {
		purpose = "web page, read-only"
	}
	if key == "" {
		return ""
	}
	const letters = 22 // of 6 bits each: links are short, and nobody guesses 132 bits
	return signText([]byte(key), purpose)[:letters]
}

func signText(secret []byte, text string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Link returns the URL with which a person first opens the pages.
func (a Access) Link(base string) string {
	if a.Key == "" {
		return base
	}
	return base + "/?key=" + url.QueryEscape(a.Key)
}

// LinkTo converts a link to the start page, as returned by Link, to a link to a run.
func LinkTo(link, workflowID string) string {
	at, err := url.Parse(link)
	if err != nil {
		return link
	}
	return at.Scheme + "://" + at.Host + runPath(workflowID) + "?" + at.RawQuery
}

// Loopback returns the names by which a browser on this machine reaches a port.
func Loopback(port string) []string {
	return []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
}

// checkHost refuses requests for other host names: a page on another site whose name leads here would have the same
// origin as ours.
func (a Access) checkHost(r *http.Request) error {
	if slices.Contains(a.Hosts, strings.ToLower(r.Host)) {
		return nil
	}
	return &pageError{http.StatusMisdirectedRequest, "This server does not accept the host name in the address. To use that name, start it with --host NAME."}
}

// cookieName includes the port, since all servers of a machine share its cookies. With TLS, it has a prefix that
// keeps other hosts of the domain from setting the cookie.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "web"
	}
	if r.TLS != nil {
		return "__Host-reprise_" + port
	}
	return "reprise_" + port
}

// enterByLink answers a request whose link has the key: the key becomes a cookie, and is removed from the URL. A page
// does that, since after a redirect from another site the browser would not send the cookie.
func (a Access) enterByLink(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	key := query.Get("key")
	if key == "" || a.Key == "" || r.Method != http.MethodGet || subtle.ConstantTimeCompare([]byte(key), []byte(a.Key)) != 1 {
		return false
	}
	http.SetCookie(w, newCookie(r, cookieName(r), key))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	query.Del("key")
	to := template.HTMLEscapeString((&url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/"), RawPath: r.URL.RawPath, RawQuery: query.Encode()}).String())
	_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=%s">`+
		`<title>Reprise</title><p><a href="%s">Continue</a></p></html>`, to, to)
	return true
}

func newCookie(r *http.Request, name, value string) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
}

// personOf returns the person who sends a request.
func (a Access) personOf(r *http.Request) (Person, error) {
	if given, err := r.Cookie(cookieName(r)); err == nil {
		if a.Key != "" && subtle.ConstantTimeCompare([]byte(given.Value), []byte(a.Key)) == 1 {
			return Person{Name: a.Owner, Operator: !a.ReadOnly, Owner: !a.ReadOnly, proof: audit.ProofLink}, nil
		}
		if person, found := a.holderOf(given.Value); found {
			return person, nil
		}
	}
	if name := a.namedByProxy(r); name != "" {
		return Person{Name: name, Operator: !a.ReadOnly, proof: audit.ProofProxy}, nil
	}
	text := "Open the link that starter printed. It signs you in."
	switch {
	case a.Holder != nil:
		return Person{}, errSignIn
	case a.UserHeader != "":
		text = "You are not signed in. Open the page through the proxy that signs people in."
	}
	return Person{}, &pageError{http.StatusUnauthorized, text}
}

// errSignIn means that the person must sign in with a token.
var errSignIn = errors.New("nobody is signed in")

// holderOf returns the owner of a token. It is called for each request, so that a removed token is invalid at once.
func (a Access) holderOf(token string) (Person, bool) {
	if a.Holder == nil || token == "" {
		return Person{}, false
	}
	person, found := a.Holder(token)
	person.SignedIn, person.Operator, person.Owner, person.proof = true, person.Operator && !a.ReadOnly, false, audit.ProofToken
	return person, found
}

// signIn stores a valid token in a cookie.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	setSecurity(w.Header())
	v := &visit{}
	err := s.Access.checkHost(r)
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	switch {
	case err != nil:
	case http.NewCrossOriginProtection().Check(r) != nil || r.ParseForm() != nil:
		err = &pageError{http.StatusForbidden, "The form did not come from a page of this server. Open the page again and repeat what you did."}
	default:
		token := strings.TrimSpace(r.PostForm.Get("secret"))
		if _, found := s.Access.holderOf(token); !found {
			s.requireSignIn(w, v, "This token is unknown, or it has no role here.")
			return
		}
		http.SetCookie(w, newCookie(r, cookieName(r), token))
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	s.showError(w, v, err)
}

// signOut deletes the cookie.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request, _ *visit) error {
	over := newCookie(r, cookieName(r), "")
	over.MaxAge = -1
	http.SetCookie(w, over)
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

func (s *Server) requireSignIn(w http.ResponseWriter, v *visit, problem string) {
	v.frame = frame{Title: "Sign in", At: s.Now()}
	s.writePage(w, v, http.StatusUnauthorized, "signin", problem)
}

// namedByProxy returns the person that a proxy names.
func (a Access) namedByProxy(r *http.Request) string {
	names := r.Header.Values(a.UserHeader)
	if a.UserHeader == "" || len(names) != 1 {
		return ""
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !slices.ContainsFunc(a.Proxies, func(proxy netip.Prefix) bool { return proxy.Contains(from.Addr().Unmap()) }) {
		return ""
	}
	const most = 200
	if name := strings.TrimSpace(names[0]); len(name) <= most {
		return name
	}
	return ""
}

// formToken returns the token in a person's forms, without which other sites cannot forge them.
func (s *Server) formToken(person Person) string { return signText(s.secret, person.Name) }

// flash is the outcome of the last change, which the next page shows once.
type flash struct {
	Text string `json:"text"`
	Bad  bool   `json:"bad,omitempty"`
	Done bool   `json:"done,omitempty"` // what was asked for has happened, which a mark shows
	// Run is a run to link to; "" for none.
	Run string `json:"run,omitempty"`
}

const flashCookie = "_said"

// redirectTo redirects the browser to a page, which shows the outcome of a change.
func (s *Server) redirectTo(w http.ResponseWriter, r *http.Request, v *visit, address string, said flash) {
	const most = 1500
	if text := []rune(said.Text); len(text) > most {
		said.Text = string(text[:most]) + "…"
	}
	data, _ := json.Marshal(said) // of texts
	set := newCookie(r, cookieName(r)+flashCookie, s.signData(flashOf+v.person.Name, data))
	set.MaxAge = int(time.Minute.Seconds())
	http.SetCookie(w, set)
	http.Redirect(w, r, address, http.StatusSeeOther)
}

func (s *Server) popFlash(w http.ResponseWriter, r *http.Request, v *visit) *flash {
	given, err := r.Cookie(cookieName(r) + flashCookie)
	if err != nil {
		return nil
	}
	over := newCookie(r, given.Name, "")
	over.MaxAge = -1
	http.SetCookie(w, over)
	data, ours := s.openSigned(flashOf+v.person.Name, given.Value)
	said := &flash{}
	if !ours || json.Unmarshal(data, said) != nil {
		return nil
	}
	return said
}

// Purposes of signed texts, so that one cannot be used for another.
const (
	flashOf = "flash of "
	pageOf  = "page"
)

// signData returns data as signed text.
func (s *Server) signData(purpose string, data []byte) string {
	text := base64.RawURLEncoding.EncodeToString(data)
	return text + "." + signText(s.secret, purpose+"\x00"+text)
}

// openSigned returns the data of a signed text; false if the signature is invalid.
func (s *Server) openSigned(purpose, text string) ([]byte, bool) {
	encoded, signature, _ := strings.Cut(text, ".")
	if subtle.ConstantTimeCompare([]byte(signature), []byte(signText(s.secret, purpose+"\x00"+encoded))) != 1 {
		return nil, false
	}
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	return data, err == nil
}

// pageToken returns the page token in a URL, nil for the first page. It must be signed: the Temporal server would
// search for a forged one for seconds.
func (s *Server) pageToken(r *http.Request) ([]byte, error) {
	given := r.URL.Query().Get("page")
	if given == "" {
		return nil, nil
	}
	token, ours := s.openSigned(pageOf, given)
	if !ours {
		return nil, &pageError{http.StatusBadRequest, "The address is incomplete, or the server has restarted since. Go back to the first page of the list."}
	}
	return token, nil
}

// nextPage returns a page token in signed form.
func (s *Server) nextPage(token []byte) string { return s.signData(pageOf, token) }
