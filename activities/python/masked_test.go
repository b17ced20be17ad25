package python_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
)

// TestWhatPythonSaysOfASecretIsMasked goes through the ways by which an exception has a secret that the code was
// given (docs/decisions/0033-forms-of-secrets.md).
func TestWhatPythonSaysOfASecretIsMasked(t *testing.T) {
	t.Parallel()
	const secret = `Zq8-kN4/w+T2=x"9L'm&v<2>%q\7Rt5é-W3h-Xc8+Bn5-Km2/Tr9=Yp4-Hd7-Lf6-Vs1-Qa0-Ew3-Gj5-Uo8-Zi2`
	c := activities.NewCatalogue(activities.Resources{
		AllowPython: true, Directory: t.TempDir(), MaxResponseBytes: 1 << 20, Connections: activities.FirstOf{activities.Connections{"api": "bearer:" + secret}},
	})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for what, code := range map[string]string{
		"message":              "raise ValueError('no: ' + token)",
		"repr":                 "raise KeyError(token)",
		"bytes":                "raise ValueError(token.encode('utf-8'))",
		"ascii":                "raise ValueError(ascii(token))",
		"repr in a repr":       "raise ValueError(repr({'headers': repr({'X-Key': token})}))",
		"JSON":                 "raise ValueError(json.dumps({'token': token}))",
		"a header's value":     "c = http.client.HTTPConnection('localhost'); c.putrequest('GET', '/'); c.putheader('X-Key', token.encode() + b'\\n')",
		"wrapped base64":       "c = http.client.HTTPConnection('localhost'); c.putrequest('GET', '/'); c.putheader('Authorization', b'Basic ' + base64.encodebytes(('ana:' + token).encode()))",
		"base64 of a message":  "raise ValueError(base64.encodebytes(json.dumps({'n': 1, 'token': token}, ensure_ascii=False).encode()).decode())",
		"address":              "urllib.request.urlopen('htp://api.test/?key=' + urllib.parse.quote_plus(token))",
		"printed":              "print(token, file=sys.stderr); print(repr(token)); sys.exit(3)",
		"hex":                  "raise ValueError(token.encode().hex())",
		"the log of a request": "print('send:', repr(('GET /\\r\\nAuthorization: Bearer ' + token + '\\r\\n').encode('utf-8'))); raise ValueError(token[:40])",
	} {
		in := pythonInput("import base64, http.client, json, sys, urllib.parse, urllib.request\ndef main(token):\n  "+code, map[string]any{"token": secret})(t)
		_, err := tooltest.Call(t, c, "python", "python", in)
		require.Error(t, err, what)
		object := tooltest.ErrorObject(t, err)
		tooltest.RequireMasked(t, object, secret)
	}
}
