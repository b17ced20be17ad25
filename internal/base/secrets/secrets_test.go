package secrets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/secrets"
)

func masking(values ...string) *secrets.Masker {
	set := &secrets.Masker{}
	set.Add(values...)
	return set
}

// used is a set of one connection that is in use.
func used(raw string) (*secrets.Masker, *secrets.ConnectionSecrets) {
	set := &secrets.Masker{}
	connection := set.AddConnection(raw)
	set.UseConnection(connection)
	return set, connection
}

func TestEveryFormOfASecretIsMasked(t *testing.T) {
	t.Parallel()
	const secret = `Q7x a&<">'/+=%41\n äß😀 zz`
	quoted, err := json.Marshal(secret)
	require.NoError(t, err)
	twice, err := json.Marshal(string(quoted))
	require.NoError(t, err)
	set := masking(secret)
	for form, text := range map[string]string{
		"as it is": secret,
		"query":    url.QueryEscape(secret), "path": url.PathEscape(secret), "query twice": url.QueryEscape(url.QueryEscape(secret)),
		"lower query": strings.ToLower(url.QueryEscape(secret)),
		"JSON":        string(quoted[1 : len(quoted)-1]), "JSON twice": string(twice[3 : len(twice)-3]),
		"HTML": html.EscapeString(secret), "HTML twice": html.EscapeString(html.EscapeString(secret)),
		"some entities": strings.NewReplacer("&", "&#038;", "ä", "&auml;", "<", "&#X3c;", "+", "&plus;").Replace(secret),
		"%q":            strings.Trim(fmt.Sprintf("%q", secret), `"`), "%+q": strings.Trim(fmt.Sprintf("%+q", secret), `"`),
		"%x": fmt.Sprintf("%x", secret), "%X": fmt.Sprintf("%X", secret),
		"SQL": strings.ReplaceAll(secret, "'", "''"), "CSV": strings.ReplaceAll(secret, `"`, `""`),
		"misread": strings.NewReplacer("ä", "Ã¤", "ß", "ÃŸ", "😀", "ðŸ˜€").Replace(secret),
		"octal":   strings.ReplaceAll(secret, "ä", `\303\244`),
	} {
		require.Equal(t, "x: *** y", set.MaskText("x: "+text+" y"), form)
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			for after := range 3 {
				text := encoding.EncodeToString([]byte(strings.Repeat("x", before) + secret + strings.Repeat("y", after)))
				masked := set.MaskText("a: " + text + " b")
				require.LessOrEqual(t, len(strings.ReplaceAll(masked, secrets.Stars, "")), len("a:  b")+4+4, masked)
				require.Contains(t, masked, secrets.Stars)
			}
		}
	}
}

// TestOrdinaryTextStays: what only looks a little like a secret is no secret.
func TestOrdinaryTextStays(t *testing.T) {
	t.Parallel()
	set := masking("sesame", "abc", "xy")
	set.AddNames("ana", "me")
	for _, text := range []string{
		"", "a", "100% of it & more \\ less", "sesam is open", "abcd, xabc and abc-d", "xy me", "banana ana.example.org ana-b",
		"%zz &unknown; &#xffffffff; \\q \\u12", strings.Repeat("%2541", 100),
	} {
		require.Equal(t, text, set.MaskText(text))
	}
	require.Equal(t, `*** says: the password of "***" is *** or "***".`, set.MaskText(`ana says: the password of "ana" is abc or "sesame".`))
}

func TestPiecesOfASecretAtTheEndsOfATextAreMasked(t *testing.T) {
	t.Parallel()
	set := masking("Q7xAbCdEfGhIjKl")
	require.Equal(t, "sent ***", set.MaskText("sent Q7xAbCd"))
	require.Equal(t, "*** was sent", set.MaskText("CdEfGhIjKl was sent"))
	require.Equal(t, "sent Q7xAb", set.MaskText("sent Q7xAb"), "too little to tell")
	require.Equal(t, "***", set.MaskText("***"))
	require.Equal(t, "1: ***\n2: ***\r\nrow (7, ***...) of ***… and ***", set.MaskText("1: Q7xAbCd\n2: Q7xAbCdE\r\nrow (7, Q7xAbCdEf...) of Q7xAbCdEfG… and Q7xAbCdEfGh"))
	require.Equal(t, "Q7xAbCd is not all of it. ...", set.MaskText("Q7xAbCd is not all of it. ..."))
	require.Equal(t, "(***...)", set.MaskText(fmt.Sprintf("(%x...)", "Q7xAbCdEf")), "as PostgreSQL shows bytes of a row that fails")
}

// TestWrappedBase64IsMasked: PostgreSQL's encode and Python's encodebytes break base64 into lines of 76 characters.
func TestWrappedBase64IsMasked(t *testing.T) {
	t.Parallel()
	token := strings.Repeat("tok-7fA9-Zq31_xYw2.8kLmN0pQ-", 5)
	text := base64.StdEncoding.EncodeToString([]byte("ana:" + token + "?"))
	for _, end := range []string{"\n", "\r\n", `\n`, `\r\n`} {
		masked := masking(token).MaskText("it is " + text[:76] + end + text[76:152] + end + text[152:] + ", an" + end + "other line")
		require.Equal(t, "it is "+text[:5]+"***"+text[len(text)-3:]+", an"+end+"other line", masked)
	}
	const lines = "words of a text\nin lines"
	require.Equal(t, lines, masking("text-in").MaskText(lines))
}

// TestLayersOfEscapes passes maxLayers: escaped four times a secret is found, five times it is left.
func TestLayersOfEscapes(t *testing.T) {
	t.Parallel()
	set := masking("a secret/of mine")
	text := "a secret/of mine"
	for range 4 {
		text = url.QueryEscape(text)
		require.Equal(t, "it is ***", set.MaskText("it is "+text))
	}
	require.NotContains(t, set.MaskText("it is "+url.QueryEscape(text)), secrets.Stars)
}

// TestSetsOfSets passes maxAdded.
func TestSetsOfSets(t *testing.T) {
	t.Parallel()
	worker := masking("of-the-worker")
	attempt := worker.With()
	attempt.Add("of-the-attempt")
	require.Equal(t, "*** ***", attempt.MaskText("of-the-worker of-the-attempt"))
	require.Equal(t, "*** of-the-attempt", worker.MaskText("of-the-worker of-the-attempt"))
	worker.Add("fetched-later")
	require.Equal(t, "***", attempt.MaskText("fetched-later"))
	for i := range 1000 {
		worker.Add(fmt.Sprintf("token-%04d", i))
	}
	require.Equal(t, "*** token-0001", worker.MaskText("token-0999 token-0001"), "what was added long ago is forgotten")
}

// TestSecretsOfConnections: whatever the form of a connection, what is meant as
// a secret is one.
func TestSecretsOfConnections(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		"bearer:tok-123456":                         {"tok-123456"},
		"Bearer: tok-123456":                        {"tok-123456"},
		"BEARER:tok-123456":                         {"tok-123456"},
		" bearer:  tok-123456 ":                     {"tok-123456"},
		"header:X-Key: value1":                      {"value1"},
		"Header: X-Key : value1":                    {"value1"},
		"header:Authorization: Token abcdef":        {"abcdef"},
		"header:Cookie: sid=abcdef; other=ghijkl90": {"abcdef", "ghijkl90"},
		"header:Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("ana:open-it")): {"open-it", "ana:open-it"},
		"https://ana:open-it@api.test":                           {"open-it", "ana:open-it", "YW5hOm9wZW4taXQ="},
		"https://sk_live_12@api.test":                            {"sk_live_12", "c2tfbGl2ZV8xMjo="},
		"https://hooks.test/services/T0001ABC/s3cr3tPath":        {"T0001ABC", "s3cr3tPath"},
		"https://api.test/v1?api_key=abcdef&x=s3cr3t-q":          {"abcdef", "s3cr3t-q"},
		"postgres://ana:p%40ss%2Fw@db.test/app?sslpassword=key9": {"p@ss/w", "p%40ss%2Fw", "key9"},
		"postgres://ana:open%zz@:port/x":                         {"open%zz"},
		"postgres://clinic_app_7@db.test/app":                    {"clinic_app_7"},
		"host=db.test user=ana password='open it'":               {"open it"},
		"Authorization: Bearer tok-123456":                       {"tok-123456"},
		"bearer tok-123456":                                      {"tok-123456"},
		"tok-123456":                                             {"tok-123456"},
		"bearer:tok-123456@https://api.test":                     {"tok-123456"},
		"bearer:t@https://api.test":                              {"t@https://api.test"},
	} {
		set, _ := used(raw)
		require.NotContains(t, set.MaskText("it is "+raw), strings.TrimSpace(raw), raw)
		for _, secret := range want {
			require.Equal(t, "it is ***", set.MaskText("it is "+secret), raw)
		}
	}
	for raw, text := range map[string]string{
		"postgres://ana:open-it@db.test:5432/app?sslmode=disable": "cannot reach db.test:5432, database app, sslmode=disable",
		"https://ana:open-it@api.test/api/v1/patients":            "GET https://api.test/api/v1/patients",
		"https://api.test":                         "GET https://api.test",
		"bearer:tok-123456@https://api.test":       "https://api.test/users",
		"header:X-Key: value1@https://api.test/v1": "https://api.test/v1/users",
		"sqlite:/var/lib/reprise/data-12.db":       "open /var/lib/reprise/data-12.db",
		"/var/lib/reprise/data-12.db":              "open /var/lib/reprise/data-12.db",
	} {
		set, _ := used(raw)
		require.Equal(t, text, set.MaskText(text), raw)
	}
	set, _ := used("postgres://ana:pw@db.test/app")
	require.Equal(t, `user "***" at db.test`, set.MaskText(`user "ana" at db.test`))
	require.Equal(t, `connect to ***`, set.MaskText(`connect to postgres://ana:pw@db.test/app`))
}

// TestLoginsOfElsewhere: what a driver finds in a file or the environment is
// known to the set as if it had been configured.
func TestLoginsOfElsewhere(t *testing.T) {
	t.Parallel()
	set := &secrets.Masker{}
	connection := set.AddConnection("postgres://db.test/app")
	set.AddLogin(connection, "root", "from-a-file")
	attempt := set.With()
	attempt.UseConnection(connection)
	require.Equal(t, `user "***" with ***`, attempt.MaskText(`user "root" with from-a-file`))
	require.Equal(t, `user "root" with ***`, set.MaskText(`user "root" with from-a-file`))
}

func TestAnswersThatRepeatASecret(t *testing.T) {
	t.Parallel()
	_, connection := used(`https://ana:t0ken<12345>@api.test`)
	const secret = `t0ken<12345>`
	quoted, err := json.Marshal(secret)
	require.NoError(t, err)
	for _, text := range []string{
		secret, string(quoted), html.EscapeString(secret), url.QueryEscape(secret),
		base64.StdEncoding.EncodeToString([]byte("ana:" + secret)),
	} {
		require.True(t, secrets.ResponseEchoes(connection, strings.Repeat(`{"a": 1}`, 100)+text), text)
	}
	require.False(t, secrets.ResponseEchoes(connection, strings.Repeat(`{"a": "t0ken 12345"}`, 100)))
	set := &secrets.Masker{}
	require.True(t, secrets.ResponseEchoes(set.AddToken("fetched-12345"), "it is fetched-12345"))
	require.Equal(t, "it is ***", set.MaskText("it is fetched-12345"))
	require.False(t, secrets.ResponseEchoes(set.AddToken(""), "nothing"))
	_, weak := used("postgres://app:patients@db.test/app")
	require.False(t, secrets.ResponseEchoes(weak, "patients of app"), "a word is no secret that data could not have")
}

type loggedValue struct{ Token string }

func TestLogsAreMasked(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := slog.New(masking("tok-123456").Handler(slog.NewTextHandler(&out, nil)))
	logger.With("a", "tok-123456").WithGroup("g").Error("with tok-123456", "error", errors.New("of tok-123456"),
		slog.Group("inner", "b", "tok-123456"), "value", loggedValue{"tok-123456"}, "n", 7)
	require.NotContains(t, out.String(), "tok-123456")
	require.Contains(t, out.String(), "g.n=7")
	require.Equal(t, 5, strings.Count(out.String(), secrets.Stars))
}

func BenchmarkMaskText(b *testing.B) {
	set := masking("tok-7fA9-Zq31_xYw2.8kLmN0pQ-rest", "another-s3cr3t")
	for name, piece := range map[string]string{
		"words": "an ordinary text of an answer, and more. ", "almost": "tok-7fA9-Zq31_xYw2.8kLmN0pQ-", "cuts": "tok-7f...\n", "points": "...",
		"wrapped": strings.Repeat("q7Zw", 19) + "\n",
	} {
		for _, size := range []int{64 << 10, 256 << 10} {
			text := strings.Repeat(piece, size/len(piece))
			b.Run(fmt.Sprintf("%s %d KiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					set.MaskText(text)
				}
			})
		}
	}
}

// BenchmarkEchoes is what an answer of 1 MB costs.
func BenchmarkEchoes(b *testing.B) {
	_, connection := used("bearer:eyJhbGciOiJIUzI1NiJ9.x8Yz12.Q7xAbCdEfGhIjKl")
	row := `{"id":12345,"patient_id":"p77","name":"Somebody Else","score":71,"at":"2024-05-01T10:00:00Z"},`
	answer := "[" + strings.Repeat(row, 1<<20/len(row)) + "null]"
	b.SetBytes(int64(len(answer)))
	for b.Loop() {
		secrets.ResponseEchoes(connection, answer)
	}
}

// BenchmarkText is what an error costs that a worker with 40 connections tells.
func BenchmarkText(b *testing.B) {
	set := &secrets.Masker{}
	for i := range 40 {
		set.AddConnection(fmt.Sprintf("https://ana%d:Q7xAbCdEfGh%dIjKl@api.test", i, i))
	}
	text := strings.Repeat("nothing of it is \\u0041 secret and 100% true ", 16<<10/44)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		set.MaskText(text)
	}
}

// TestAConnectionThatIsAMap has all of its secrets masked, and the rest shown.
func TestAConnectionThatIsAMap(t *testing.T) {
	t.Parallel()
	set, _ := used(`{"basic": {"user": "ana", "password": "b-hunter-1"}, "bearer": "r-hunter-2", "header": "X-A: h-hunter-3", ` +
		`"headers": {"X-B": "Token t-hunter-4", "host": "o-hunter-5"}, "query": {"scopes": "q-hunter-6/+"}, "tls": {"key": "k-hunter-7", "ca": "CA"}, ` +
		`"oauth2": {"client_id": "id", "client_secret": "c-hunter-8", "token_url": "https://login.test/token"}, "host": "https://api.test"}`)
	for _, secret := range []string{
		"b-hunter-1", base64.StdEncoding.EncodeToString([]byte("ana:b-hunter-1")), "r-hunter-2", "h-hunter-3", "Token t-hunter-4", "t-hunter-4",
		"o-hunter-5", "q-hunter-6/+", url.QueryEscape("q-hunter-6/+"), "k-hunter-7", "c-hunter-8", "ana",
	} {
		require.NotContains(t, set.MaskText("it says "+secret+" here"), secret)
	}
	require.Equal(t, "https://login.test/token or https://api.test", set.MaskText("https://login.test/token or https://api.test"))
}

// TestALoginIsMasked has all that is sent in it masked but names of users, and nothing else of its session.
func TestALoginIsMasked(t *testing.T) {
	t.Parallel()
	set, _ := used(`{"host": "https://api.test", "session": {"login": {"url": "/login", "method": "POST", "headers": {"X-App": "h-hunter-1"}, ` +
		`"body": {"username": "ana", "grant_type": "password", "pw": "b-hunter-2", "list": [{"pin": 123456}, "i-hunter-3"], "client": {"from": "file", "path": "login.txt"}}}, ` +
		`"token": "{{ response.token }}", "send": {"header": "X-Session", "value": "Session {{ token }}"}, "expires": "30m", "logout": {"url": "/logout", "method": "DELETE"}}}`)
	for _, secret := range []string{"h-hunter-1", "b-hunter-2", "i-hunter-3", "123456", "ana"} {
		require.NotContains(t, set.MaskText("it says "+secret+" here"), secret)
	}
	const said = "POST /login with password of login.txt, X-Session: Session, {{ response.token }} for 30m, DELETE /logout, header"
	require.Equal(t, said, set.MaskText(said))
	set, _ = used(`{"jwt": {"issuer": "robot@acme.test", "claims": {"tenant": "acme-tenant-1"}, "private_key": "-----BEGIN KEY-----\nk3ybytes0123456789abcd\n-----END KEY-----"}}`)
	require.Equal(t, "robot@acme.test acme-tenant-1 ***", set.MaskText("robot@acme.test acme-tenant-1 k3ybytes0123456789abcd"))
	set, _ = used(`{"session": {"login": {"url": "https://api.test/login", "form": {"from": "f-hunter-1", "to": "t-hunter-2"}}}}`)
	require.Equal(t, "*** ***", set.MaskText("f-hunter-1 t-hunter-2"))
}

// TestWhereASecretIsMayBeShown has no word of a source masked, and the rest of its connection is.
func TestWhereASecretIsMayBeShown(t *testing.T) {
	t.Parallel()
	const said = `file shop.json, field password, variable SHOP_PASSWORD at postgres://db.test/shop and https://api.test`
	for _, raw := range []string{
		`{"from": "file", "path": "shop.json", "field": "password"}`, `{"bearer": {"from": "env", "name": "SHOP_PASSWORD"}, "host": "https://api.test"}`,
		`{"url": "postgres://db.test/shop", "password": {"from": "file", "path": "shop.json", "field": "password"}}`,
		`{"query": {"api_key": {"from": "file", "path": "shop.json", "field": "password"}}}`,
	} {
		set, _ := used(raw)
		require.Equal(t, said, set.MaskText(said), raw)
	}
	set, _ := used(`{"headers": {"X-Key": {"from": "file", "path": "shop.json"}, "X-Token": "t-hunter-4"}}`)
	require.Equal(t, "shop.json ***", set.MaskText("shop.json t-hunter-4"))
}
