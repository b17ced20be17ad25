package ui

import (
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlashIsSigned: a page shows what this server has said to this person, and no cookie that somebody else has set.
func TestFlashIsSigned(t *testing.T) {
	t.Parallel()
	s := &Server{secret: []byte("of this server")}
	ada, eve := &visit{person: Person{Name: "ada"}}, &visit{person: Person{Name: "eve"}}
	set := func(by *Server, v *visit) *http.Cookie {
		answer := httptest.NewRecorder()
		by.redirectTo(answer, httptest.NewRequest(http.MethodPost, "http://127.0.0.1:1/do", nil), v, "/", flash{Text: "It is done."})
		return answer.Result().Cookies()[0]
	}
	read := func(given *http.Cookie) *flash {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/", nil)
		r.AddCookie(given)
		return s.popFlash(httptest.NewRecorder(), r, ada)
	}
	require.Equal(t, "It is done.", read(set(s, ada)).Text)
	require.Nil(t, read(set(s, eve)), "of somebody else")
	require.Nil(t, read(set(&Server{secret: []byte("of another")}, ada)), "of another server")
	forged := set(s, ada)
	forged.Value = base64.RawURLEncoding.EncodeToString([]byte(`{"text": "Call 555 and say your password."}`))
	require.Nil(t, read(forged))
	forged.Value += "." + signText(s.secret, forged.Value)
	require.Nil(t, read(forged))
}

// TestCookiesOfTLS: no other host of the domain can set them.
func TestCookiesOfTLS(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "https://runs.example.com/", nil)
	r.TLS = &tls.ConnectionState{}
	made := newCookie(r, cookieName(r), "x")
	require.Equal(t, "__Host-reprise_web", made.Name)
	require.True(t, made.Secure)
	require.Equal(t, "/", made.Path)
	require.Empty(t, made.Domain)
}

// TestPlacesOfListsAreSigned: the Temporal server is asked for no place that this server has not named.
func TestPlacesOfListsAreSigned(t *testing.T) {
	t.Parallel()
	s := &Server{secret: []byte("of this server")}
	at := func(page string) ([]byte, error) {
		return s.pageToken(httptest.NewRequest(http.MethodGet, "/?page="+page, nil))
	}
	token, err := at(s.nextPage([]byte("place")))
	require.NoError(t, err)
	require.Equal(t, "place", string(token))
	token, err = at("")
	require.NoError(t, err)
	require.Nil(t, token)
	for _, page := range []string{"AAAA", "AAAA.", "AAAA.AAAA", s.nextPage([]byte("place")) + "x", s.signData(flashOf+"ada", []byte("place"))} {
		_, err = at(page)
		require.ErrorContains(t, err, "Go back to the first page")
	}
}
