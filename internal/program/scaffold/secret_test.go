package scaffold_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/scaffold"
)

// TestCurlSecrets: wherever a secret is in a line, it gets into no file. checked looks for the word SECRET.
func TestCurlSecrets(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"number in a body":           `curl https://api.test/login -d '{"password": 4711471147114711}' -H 'x: SECRET' -H 'x-api-key: SECRETa1'`,
		"form in a body of JSON":     `curl https://api.test/login -d '{"next": "/cb?access_token=SECRETa1b2"}'`,
		"JSON in a text of JSON":     `curl https://api.test/q -d '{"variables": "{\"password\":\"SECRETa1b2\"}"}'`,
		"JSON in a form":             `curl https://slack.test/api -d 'payload={"token":"SECRETa1b2","n":1}'`,
		"text of a GraphQL query":    `curl https://api.test/graphql -d '{"query": "{ viewer(token: \"SECRETa1b2\") { id } }"}'`,
		"XML":                        `curl https://api.test/soap -H 'content-type: text/xml' -d '<login><password>SECRETa1</password></login>'`,
		"a short one in XML":         `curl https://api.test/soap -d '<a><Password>SECRET</Password></a>'`,
		"plain text":                 `curl https://api.test/x -H 'content-type: text/plain' -d 'authorization: Bearer SECRETa1b2c3'`,
		"broken JSON":                `curl https://api.test/x -H 'content-type: application/json' -d '{"token":"SECRETa1b2",}'`,
		"address as a parameter":     `curl 'https://api.test/x?redirect=https%3A%2F%2Fapp.test%2F%3Faccess_token%3DSECRETa1b2'`,
		"repeated in the query":      `curl -H 'Authorization: Bearer SECRETa1b2c3d4' 'https://api.test/x?q=SECRETa1b2c3d4&page=1'`,
		"repeated in the path":       `curl -u me:SECRETa1b2c3d4 'https://api.test/u/SECRETa1b2c3d4/rows'`,
		"repeated in a body":         `curl https://api.test/x -H 'Authorization: Bearer SECRETa1b2c3d4' -d '{"jwt": "SECRETa1b2c3d4"}'`,
		"two parameters":             `curl 'https://api.test/x?api_key=SECRETa1b2&user=ada&api_secret=SECRETc3d4'`,
		"a cookie as a parameter":    `curl 'https://api.test/x?s=SECRETa1b2c3d4' -b 'sid=SECRETa1b2c3d4; theme=dark'`,
		"fragment":                   `curl 'https://api.test/x#access_token=SECRETa1b2'`,
		"userinfo and header":        `curl 'https://me:SECRETpw1@api.test/x' -H 'Authorization: Bearer SECRETa1b2'`,
		"a token alone as the user":  `curl 'https://SECRETtok1@api.test/x'`,
		"proxy":                      `curl -x http://me:SECRETpw1@proxy.test:3128 --proxy-header 'X-Token: SECRETa1' --proxy-user a:SECRETb2 https://api.test/x`,
		"options with values":        `curl --pass SECRETpw1 --key k.pem --tlspassword SECRETpw2 --login-options AUTH=SECRET --curves X25519 https://api.test/x`,
		"header with a strange name": `curl https://api.test/x -H 'X-Shop-Secret-Thing: SECRETa1b2c3d4'`,
		"dollar quotes":              `curl https://api.test/x --data-raw $'{"password":"SECRET\'a1b2"}'`,
		"webhook of Slack":           `curl https://hooks.slack.com/services/T0SECRET1/B0SECRET1/aSECRETb3c4d5e6f7g8h9i0 -d '{"text": "hi"}'`,
		"webhook of Discord":         `curl https://discord.com/api/webhooks/1234567890/abSECRET-1_xyz -d '{"content": "hi"}'`,
		"a key in hex":               `curl -H 'x: SECRET' -H 'x-api-key: SECRETa1' https://api.test/4711471147114711471147114711471a`,
		"letters and digits":         `curl https://api.test/u/Zx7Kd9SECRET3jdLd83jdKs0qP/rows`,
		"several lines":              "curl 'https://api.test/x' \\\n  -X 'POST' \\\n  -H 'Cookie: SECRETa=SECRETb' \\\n  --data-raw 'csrf_token=SECRETa1&q=1' \\\n  --compressed",
		"cmd of Windows":             "curl ^\"https://api.test/x?api_key=SECRETa1b2^&page=1^\" ^\r\n  -H ^\"accept: application/json^\" ^\r\n  -b ^\"sid=SECRETc3^\" ^\r\n  --data-raw ^\"^{^\\^\"token^\\^\":^\\^\"SECRETd4e5^\\^\"^}^\" ^\r\n  --compressed",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, err := scaffold.FromCurl(line)
			require.NoError(t, err)
			made := checked(t, of, scaffold.Options{Name: "rows"})
			require.NotContains(t, string(made.Playbook)+string(made.Test), "4711")
		})
	}
}

// TestSecretsInPaths: what may be a secret in a path is the connection's, below which the address is; the last part of a path is given to
// each run, as an address has to have one.
func TestSecretsInPaths(t *testing.T) {
	t.Parallel()
	const secret = "Zx7Kd9SECRET3jdLd83jdKs0qP"
	for line, want := range map[string][]string{
		"curl https://api.test/u/" + secret + "/rows":                                 {"url: rows", "https://api.test/u/PATH_TOKEN"},
		"curl https://api.test/u/" + secret + "/v1/" + secret + "/rows/7":             {"url: rows/7", "https://api.test/u/PATH_TOKEN/v1/PATH_TOKEN"},
		"curl -u me:pw https://api.test/u/" + secret + "/rows":                        {"url: rows", "https://USER:PASSWORD@api.test/u/PATH_TOKEN"},
		"curl -H 'Authorization: Bearer a1b2' https://api.test/u/" + secret + "/rows": {"url: rows", "bearer:TOKEN@https://api.test/u/PATH_TOKEN"},
		"curl https://api.test/u/" + secret:                                           {"{{ api }}/u/{{ path_token }}", ""},
	} {
		of, err := scaffold.FromCurl(line)
		require.NoError(t, err)
		made := checked(t, of, scaffold.Options{Name: "rows"})
		require.Contains(t, strings.ReplaceAll(string(made.Playbook), `"`, ""), want[0], line)
		if want[1] == "" {
			require.Empty(t, made.Connections)
			continue
		}
		require.Equal(t, want[1], made.Connections[0].Form, line)
		require.NotContains(t, string(made.Playbook), "path_token")
		require.NotContains(t, string(made.Playbook), "api:")
	}
}

// TestHARSecrets: an answer that repeats what logged in, or that leads on with it, has it no longer.
func TestHARSecrets(t *testing.T) {
	t.Parallel()
	answer := map[string]any{
		"data":   []any{map[string]any{"id": 1, "self": "https://api.test/rows/1?access_token=EAASECRETa1b2c3d4e5", "note": "SECRETcookie1"}, map[string]any{"id": 2}},
		"paging": map[string]any{"next": "https://api.test/rows?after=abc&access_token=EAASECRETa1b2c3d4e5", "previous": "https://api.test/rows?sig=SECRETs1g2n3"},
		"you":    "Bearer SECRETbearer99", "password": 12345678, "curl": "curl -H 'Authorization: Bearer SECRETother77'",
		"SECRETbearer99": true,
	}
	content, err := json.Marshal(answer)
	require.NoError(t, err)
	entry := func(page string) map[string]any {
		return map[string]any{
			"request": map[string]any{
				"method": "POST", "url": "https://api.test/t/ghp_SECRETa1b2c3d4e5f6/rows?page=" + page + "&access_token=EAASECRETa1b2c3d4e5",
				"headers":  []any{map[string]any{"name": "Authorization", "value": "Bearer SECRETbearer99"}, map[string]any{"name": "Cookie", "value": "sid=SECRETcookie1"}},
				"postData": map[string]any{"mimeType": "application/x-www-form-urlencoded", "params": []any{map[string]any{"name": "pw", "value": "x"}, map[string]any{"name": "password", "value": "SECRETpw"}}},
			},
			"response": map[string]any{
				"status": 200, "content": map[string]any{"mimeType": "application/json", "text": string(content)},
				"headers": []any{
					map[string]any{"name": "Set-Cookie", "value": "sid=SECRETcookie2"},
					map[string]any{"name": "Link", "value": `<https://api.test/rows?page=2&access_token=EAASECRETa1b2c3d4e5>; rel="next"`},
				},
			},
		}
	}
	other := entry("1")
	other["request"].(map[string]any)["url"] = "https://api.test/ghp_SECRETz1y2x3w4v5u6/other"
	file, err := json.Marshal(map[string]any{"log": map[string]any{"entries": []any{entry("1"), entry("2"), other}}})
	require.NoError(t, err)
	of, err := scaffold.FromHAR(file)
	require.NoError(t, err)
	made := checked(t, of, scaffold.Options{Name: "rows"})
	require.NotContains(t, string(made.Test), "12345678")
}

// TestCurlAsBrowsersCopyIt: the same request in the forms of Chrome, Firefox, Safari and Windows gives the same playbook.
func TestCurlAsBrowsersCopyIt(t *testing.T) {
	t.Parallel()
	const body = `{"q": "it's 5% \"big\"", "limit": 10}`
	cmd := strings.NewReplacer(`\`, `^\^\`, `"`, `^\^"`, `{`, `^{`, `}`, `^}`, `%`, `^%`).Replace(body)
	forms := map[string]string{
		"chrome":  "curl 'https://api.test/v1/rows?a=1&b=x%20y' \\\n  -H 'accept: application/json' \\\n  -H 'content-type: application/json' \\\n  -b 'sid=abc' \\\n  -H 'sec-ch-ua: \"Chromium\";v=\"130\"' \\\n  --data-raw $'{\"q\": \"it\\'s 5% \\\\\"big\\\\\"\", \"limit\": 10}'",
		"firefox": "curl 'https://api.test/v1/rows?a=1&b=x%20y' --compressed -X POST -H 'User-Agent: Mozilla/5.0' -H 'Accept: application/json' -H 'Content-Type: application/json' -H 'Cookie: sid=abc' --data-raw $'{\"q\": \"it\\'s 5% \\\\\"big\\\\\"\", \"limit\": 10}'",
		"safari":  "curl 'https://api.test/v1/rows?a=1&b=x%20y' \\\n-X 'POST' \\\n-H 'Content-Type: application/json' \\\n-H 'Cookie: sid=abc' \\\n-H 'Accept: application/json' \\\n--data-binary $'{\"q\": \"it\\'s 5% \\\\\"big\\\\\"\", \"limit\": 10}'",
		"cmd":     "curl ^\"https://api.test/v1/rows?a=1^&b=x^%20y^\" ^\r\n  -H ^\"accept: application/json^\" ^\r\n  -H ^\"content-type: application/json^\" ^\r\n  -b ^\"sid=abc^\" ^\r\n  --data-raw ^\"" + cmd + "^\"",
	}
	want := ""
	for _, name := range []string{"chrome", "firefox", "safari", "cmd"} {
		of, err := scaffold.FromCurl(forms[name])
		require.NoError(t, err, name)
		made, err := scaffold.MakeDraft(of, scaffold.Options{Name: "rows"})
		require.NoError(t, err)
		if want == "" {
			want = string(made.Playbook)
			require.Contains(t, want, `it's 5% \"big\"`)
			require.Contains(t, want, "x y")
		}
		require.Equal(t, want, string(made.Playbook), name)
	}
}

// TestCurlOfWindows: quotes and carets mean what cmd and its programs make of them.
func TestCurlOfWindows(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"curl \"https://api.test/a b\" ^\n -d \"{\\\"a\\\": \\\"b c\\\"}\"":      `b c`,
		`curl.exe ^"https://api.test/x^" --data-raw ^"{\^"a\^": \^"b ^^ c\^"}^"`: `b ^ c`,
		`curl ^"https://api.test/x^" -d ^"{\^"a\^": \^"b\\c\^"}^"`:               `b\c`,
	} {
		of, err := scaffold.FromCurl(line)
		require.NoError(t, err, line)
		body, _ := of.Body.(map[string]any)
		require.NotNil(t, body, "%s: %#v", line, of)
		require.Equal(t, want, body["a"], line)
	}
	_, err := scaffold.FromCurl("curl ^\"https://api.test/x^\" -H ^\"a: b")
	require.ErrorContains(t, err, "quote")
}

// TestCurlOptions: values of options are no addresses, and parameters stay parameters.
func TestCurlOptions(t *testing.T) {
	t.Parallel()
	of, err := scaffold.FromCurl(`curl --url-query a=1 --url-query 'b=x y' -d '{"c": 1}' --etag-save f --happy-eyeballs-timeout-ms 200 --parallel-max 3 https://api.test/x`)
	require.NoError(t, err)
	require.Equal(t, []scaffold.Pair{{Name: "a", Value: 1}, {Name: "b", Value: "x y"}}, of.Params)
	require.Equal(t, map[string]any{"c": 1}, of.Body)
	for _, line := range []string{`curl https://api.test/x?a=1&b=2&c=x%20y`, `curl 'https://api.test/x?a=1&b=2&c=x%20y'`, `curl $'https://api.test/x?a=1&b=2&c=x%20y'`, `curl -H accept:\ text/csv https://api.test/x\?a\=1\&b\=2\&c\=x%20y`} {
		of, err = scaffold.FromCurl(line + " &")
		require.NoError(t, err, line)
		require.Equal(t, []scaffold.Pair{{Name: "a", Value: 1}, {Name: "b", Value: 2}, {Name: "c", Value: "x y"}}, of.Params, line)
	}
	of, err = scaffold.FromCurl(`curl https://api.test/x -d 'it'\''s & that' && echo "a&b"`)
	require.NoError(t, err)
	require.Equal(t, "it's & that", of.Text)
	_, err = scaffold.FromCurl(`curl https://api.test/x --data-urlencode 'a@file.txt'`)
	require.ErrorContains(t, err, "file")
	for _, line := range []string{"curl https://api.test/x &", "curl https://api.test/x & echo $!", "curl -g 'https://api.test/x'", "curl 'https://api.test/{id}/x'"} {
		_, err = scaffold.FromCurl(line)
		require.NoError(t, err, line)
	}
}
