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
)

// Person is somebody who uses the pages.
type Person struct {
	Name string
	// Operator may change runs; others may see them.
	Operator bool
	// Owner has started the page, and may do what the Temporal server can.
	Owner bool
	// SignedIn says that the person has come with a token, and may sign out.
	SignedIn bool
}

// Access configures who may use the pages.
type Access struct {
	// Key is in the link with which a person comes first, and in a cookie afterwards; "" admits
	// nobody this way. Owner is the person who has it.
	Key, Owner string
	// UserHeader names the person in requests of Proxies; "" admits nobody in this way.
	UserHeader string
	Proxies    []netip.Prefix
	// Holder finds the holder of a token with which people sign in; nil disables tokens.
	Holder func(token string) (Person, bool)
	// ReadOnly keeps everybody from changing runs.
	ReadOnly bool
	// Hosts are the names, with ports where they have one, that requests may be for.
	Hosts []string
}

// KeyOf derives the key of the pages from the key of a local server, which must not appear in an address. The key of
// read-only pages opens no others.
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

// Link returns the address with which a person opens the pages for the first time.
func (a Access) Link(base string) string {
	if a.Key == "" {
		return base
	}
	return base + "/?key=" + url.QueryEscape(a.Key)
}

// LinkTo turns a link to the start page, as Link returns it, into a link to a run.
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

// checkHost refuses requests for other names: a page elsewhere whose name leads here
// would be of the same origin as these.
func (a Access) checkHost(r *http.Request) error {
	if slices.Contains(a.Hosts, strings.ToLower(r.Host)) {
		return nil
	}
	return &pageError{http.StatusMisdirectedRequest, "This server is not known by the name in the address. Start it with --host NAME to use that name."}
}

// cookieName is of the port, since the servers of a machine share its cookies. With TLS no other host of the domain can
// set one of this name.
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

// enterByLink answers a request whose link has the key: it becomes a cookie, and leaves the
// address. A page does that, since a redirect from another site would not send the
// cookie.
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

// personOf finds out who sends a request.
func (a Access) personOf(r *http.Request) (Person, error) {
	if given, err := r.Cookie(cookieName(r)); err == nil {
		if a.Key != "" && subtle.ConstantTimeCompare([]byte(given.Value), []byte(a.Key)) == 1 {
			return Person{Name: a.Owner, Operator: !a.ReadOnly, Owner: !a.ReadOnly}, nil
		}
		if person, found := a.holderOf(given.Value); found {
			return person, nil
		}
	}
	if name := a.namedByProxy(r); name != "" {
		return Person{Name: name, Operator: !a.ReadOnly}, nil
	}
	text := "Open the link that starter has printed. It signs you in."
	switch {
	case a.Holder != nil:
		return Person{}, errSignIn
	case a.UserHeader != "":
		text = "Nobody is signed in. The page is reached through the proxy that signs people in."
	}
	return Person{}, &pageError{http.StatusUnauthorized, text}
}

// errSignIn has a person sign in with a token.
var errSignIn = errors.New("nobody is signed in")

// holderOf returns the caller who has a token. It is asked at each request, so a token that is taken out of
// the file counts no longer.
func (a Access) holderOf(token string) (Person, bool) {
	if a.Holder == nil || token == "" {
		return Person{}, false
	}
	person, found := a.Holder(token)
	person.SignedIn, person.Operator, person.Owner = true, person.Operator && !a.ReadOnly, false
	return person, found
}

// signIn has a token become a cookie.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	setSecurity(w.Header())
	v := &visit{}
	err := s.Access.checkHost(r)
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	switch {
	case err != nil:
	case http.NewCrossOriginProtection().Check(r) != nil || r.ParseForm() != nil:
		err = &pageError{http.StatusForbidden, "The form was not sent by a page of this server. Open the page again, and repeat what you did."}
	default:
		token := strings.TrimSpace(r.PostForm.Get("secret"))
		if _, found := s.Access.holderOf(token); !found {
			s.requireSignIn(w, v, "Nobody has this token, or it has no role here.")
			return
		}
		http.SetCookie(w, newCookie(r, cookieName(r), token))
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	s.showError(w, v, err)
}

// signOut takes the cookie away.
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

// formToken is in the forms of a person, so that pages of others cannot make one.
func (s *Server) formToken(person Person) string { return signText(s.secret, person.Name) }

// flash is the outcome of the last change, which the next page shows once.
type flash struct {
	Text string `json:"text"`
	Bad  bool   `json:"bad,omitempty"`
	// Run is a run to go to, "" for none.
	Run string `json:"run,omitempty"`
}

const flashCookie = "_said"

// turnTo has the browser turn to a page, which shows what came of a change.
func (s *Server) turnTo(w http.ResponseWriter, r *http.Request, v *visit, address string, said flash) {
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

// What signed texts are for: one is not taken for another.
const (
	flashOf = "flash of "
	pageOf  = "page"
)

// signData returns data as a text that only this server makes.
func (s *Server) signData(purpose string, data []byte) string {
	text := base64.RawURLEncoding.EncodeToString(data)
	return text + "." + signText(s.secret, purpose+"\x00"+text)
}

// openSigned returns the data of such a text; false where somebody else has made it.
func (s *Server) openSigned(purpose, text string) ([]byte, bool) {
	encoded, signature, _ := strings.Cut(text, ".")
	if subtle.ConstantTimeCompare([]byte(signature), []byte(signText(s.secret, purpose+"\x00"+encoded))) != 1 {
		return nil, false
	}
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	return data, err == nil
}

// pageToken returns the place in a list that an address names, nil for its beginning. One that this server has not
// made would have the Temporal server look for it, for seconds.
func (s *Server) pageToken(r *http.Request) ([]byte, error) {
	given := r.URL.Query().Get("page")
	if given == "" {
		return nil, nil
	}
	token, ours := s.openSigned(pageOf, given)
	if !ours {
		return nil, &pageError{http.StatusBadRequest, "The address of the page is not whole, or the server was started again since. Begin at the first page of the list."}
	}
	return token, nil
}

// nextPage returns such a place as an address names it.
func (s *Server) nextPage(token []byte) string { return s.signData(pageOf, token) }
