package http_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// signedRequest is a request as a service of AWS checks it: Signature Version 4 by its documentation, "Create a signed AWS API
// request", and nothing of the library that signs.
type signedRequest struct {
	method, path, query string // as they came
	headers             map[string]string
	digest              string // of the body
}

func encoded(text string) string {
	var out strings.Builder
	for _, c := range []byte(text) {
		if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			out.WriteByte(c)
			continue
		}
		fmt.Fprintf(&out, "%%%02X", c)
	}
	return out.String()
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// signature is that of the request for a scope, such as 20150830/us-east-1/iam/aws4_request.
func (r signedRequest) signature(secret, date, scope string, signedHeaders []string) string {
	parts := strings.Split(scope, "/")
	path := []string{}
	for _, segment := range strings.Split(r.path, "/") {
		if parts[2] == "s3" { // where paths are encoded once
			segment, _ = url.PathUnescape(segment)
		}
		path = append(path, encoded(segment))
	}
	query := []string{}
	for _, pair := range strings.FieldsFunc(r.query, func(c rune) bool { return c == '&' }) {
		name, value, _ := strings.Cut(pair, "=")
		name, _ = url.PathUnescape(name) // + is no space here
		value, _ = url.PathUnescape(value)
		query = append(query, encoded(name)+"="+encoded(value))
	}
	slices.Sort(query)
	canonical := []string{r.method, strings.Join(path, "/"), strings.Join(query, "&")}
	for _, name := range signedHeaders {
		canonical = append(canonical, name+":"+strings.Join(strings.Fields(r.headers[name]), " "))
	}
	canonical = append(canonical, "", strings.Join(signedHeaders, ";"), r.digest)
	key := []byte("AWS4" + secret)
	for _, part := range parts {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, strings.Join([]string{"AWS4-HMAC-SHA256", date, scope, sha(strings.Join(canonical, "\n"))}, "\n")))
}

// TestSignaturesByTheDocumentation checks the check itself by what AWS has published.
func TestSignaturesByTheDocumentation(t *testing.T) {
	t.Parallel()
	const (
		suite, objects = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
		date, scope    = "20150830T123600Z", "20150830/us-east-1/service/aws4_request"
		s3Date, s3     = "20130524T000000Z", "20130524/us-east-1/s3/aws4_request"
	)
	host := map[string]string{"host": "example.amazonaws.com", "x-amz-date": date}
	bucket := map[string]string{"host": "examplebucket.s3.amazonaws.com", "x-amz-date": s3Date, "x-amz-content-sha256": sha("")}
	with := func(headers map[string]string, more ...string) map[string]string {
		all := maps.Clone(headers)
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for signature, of := range map[string]struct {
		request             signedRequest
		secret, date, scope string
	}{
		"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31": {signedRequest{"GET", "/", "", host, sha("")}, suite, date, scope},
		"b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500": {signedRequest{"GET", "/", "Param2=value2&Param1=value1", host, sha("")}, suite, date, scope},
		"5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b": {signedRequest{"POST", "/", "", host, sha("")}, suite, date, scope},
		"5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7": {
			signedRequest{"GET", "/", "Action=ListUsers&Version=2010-05-08", with(host, "host", "iam.amazonaws.com", "content-type", "application/x-www-form-urlencoded; charset=utf-8"), sha("")},
			suite, date, "20150830/us-east-1/iam/aws4_request",
		},
		"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41": {signedRequest{"GET", "/test.txt", "", with(bucket, "range", "bytes=0-9"), sha("")}, objects, s3Date, s3},
		"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd": {
			signedRequest{"PUT", "/test%24file.text", "", with(
				bucket, "date", "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class", "REDUCED_REDUNDANCY", "x-amz-content-sha256", sha("Welcome to Amazon S3."),
			), sha("Welcome to Amazon S3.")}, objects, s3Date, s3,
		},
	} {
		require.Equal(t, signature, of.request.signature(of.secret, of.date, of.scope, slices.Sorted(maps.Keys(of.request.headers))), of.request)
	}
}

// cloud is a service that checks signatures by its own clock.
type cloud struct {
	*tooltest.RecordingServer

	service, key, secret, token string
	ahead                       time.Duration

	mu    sync.Mutex
	paths []string // of accepted requests, as they came
}

func newCloud(t *testing.T, service string) *cloud {
	t.Helper()
	c := &cloud{service: service, key: "AKIDEXAMPLE12345", secret: canary + "/secret+key", token: canary + "/session+token=="}
	c.RecordingServer = tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		w.Header().Set("Date", time.Now().Add(c.ahead).UTC().Format(http.TimeFormat))
		if code := c.refusal(r); code != "" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "<Error><Code>%s</Code><AWSAccessKeyId>%s</AWSAccessKeyId><SignatureProvided>%s</SignatureProvided><Token>%s</Token></Error>",
				code, c.key, r.Header.Get("Authorization"), r.Header.Get("X-Amz-Security-Token"))
			return
		}
		c.paths = append(c.paths, r.RequestURI)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"you": r.Header.Get("Authorization"), "token": r.Header.Get("X-Amz-Security-Token")})
	})
	return c
}

// refusal is what the service calls what is wrong with a request, "" for nothing.
func (c *cloud) refusal(r *http.Request) string {
	var credential, signed, signature string
	given, isV4 := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	for _, part := range strings.Split(given, ", ") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			signed = value
		case "Signature":
			signature = value
		}
	}
	key, scope, _ := strings.Cut(credential, "/")
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	body, _ := io.ReadAll(r.Body)
	path, query, _ := strings.Cut(r.RequestURI, "?")
	request := signedRequest{r.Method, path, query, map[string]string{"host": r.Host, "content-length": fmt.Sprint(r.ContentLength)}, sha(string(body))}
	for name, values := range r.Header {
		request.headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	names := strings.Split(signed, ";")
	switch {
	case !isV4 || err != nil:
		return "MissingAuthenticationToken"
	case key != c.key:
		return "InvalidAccessKeyId"
	case r.Header.Get("X-Amz-Security-Token") != c.token:
		return "ExpiredToken"
	case time.Until(at.Add(-c.ahead)).Abs() > 5*time.Minute:
		return "RequestTimeTooSkewed"
	case scope != at.Format("20060102")+"/eu-central-1/"+c.service+"/aws4_request", r.Header.Get("X-Amz-Content-Sha256") != sha(string(body)),
		!slices.Contains(names, "host") || !slices.Contains(names, "x-amz-date") || c.token != "" && !slices.Contains(names, "x-amz-security-token"),
		signature != request.signature(c.secret, date, scope, names):
		return "SignatureDoesNotMatch"
	}
	return ""
}

func (c *cloud) connection(settings map[string]any) string {
	all := map[string]any{"service": c.service, "region": "eu-central-1", "access_key_id": c.key, "secret_access_key": c.secret}
	if c.token != "" {
		all["session_token"] = c.token
	}
	for name, value := range settings {
		all[name] = value
	}
	text, err := json.Marshal(map[string]any{"aws": all, "host": c.URL, "query": map[string]any{"api_key": canary + "-key/1"}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestAWSSignsRequests(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"execute-api", "s3"} {
		for _, session := range []bool{true, false} {
			t.Run(fmt.Sprint(service, session), func(t *testing.T) {
				t.Parallel()
				aws := newCloud(t, service)
				if !session {
					aws.token = ""
				}
				c := withTokens(t, aws.connection(nil))
				for _, fields := range []map[string]any{
					{"url": "?x"},
					{"url": "/prod/orders", "params": map[string]any{"n": []any{"2", "1"}, "of": "a b+c/d", "Z": "ä", "empty": ""}},
					{"url": "/a b/ä(1)!*'@:$&,;=+/", "headers": map[string]any{"X-Two": []any{"a  b", "c"}, "Cookie": "a=b"}},
					{"url": "/x%2Fy(1)"},
					{"url": "/orders", "method": "POST", "body": map[string]any{"n": 1}},
					{"url": "/orders", "method": "PUT", "body": strings.Repeat("ä", 100_000)},
					{"url": "/orders", "method": "DELETE", "form": map[string]any{"a": "b c"}},
				} {
					result, err := tooltest.CallHTTP(t, c, queryInput(t, fields))
					require.NoError(t, err, fields)
					requireNoCanary(t, result)
					require.NotContains(t, fmt.Sprint(result.Data.Data), "Signature=")
				}
				require.Len(t, aws.paths, 7)
				require.Equal(t, "/x%2Fy%281%29?api_key=canary-5ecret-key%2F1", aws.paths[3])
				require.Equal(t, "/prod/orders?Z=%C3%A4&empty=&n=2&n=1&of=a%20b%2Bc%2Fd&api_key=canary-5ecret-key%2F1", aws.paths[1])
				require.Equal(t, "/a%20b/%C3%A4%281%29%21%2A%27%40%3A%24%26%2C%3B%3D%2B/?api_key=canary-5ecret-key%2F1", aws.paths[2])
			})
		}
	}
}

// TestAWSOfAnotherClock: the date of a refusal is the clock that counts, for later attempts too.
func TestAWSOfAnotherClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{2 * time.Hour, -20 * time.Minute} {
		aws := newCloud(t, "execute-api")
		aws.ahead = ahead
		c := withTokens(t, aws.connection(nil))
		for range 2 {
			_, err := tooltest.CallHTTP(t, c, tokenInput(t, "/"))
			require.NoError(t, err)
		}
		require.Len(t, aws.ReceivedRequests(), 3)
	}
}

// TestAWSOfNewKeys sets environment variables, so it does not run in parallel.
func TestAWSOfNewKeys(t *testing.T) {
	const variable = "TEST_AWS_SESSION"
	aws := newCloud(t, "s3")
	t.Setenv(variable, aws.token)
	c := withTokens(t, aws.connection(map[string]any{"session_token": map[string]any{"from": "env", "name": variable}}))
	send := func() error {
		_, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
		return err
	}
	require.NoError(t, send())
	aws.token = canary + "-second-token"
	object := tooltest.ErrorObject(t, send())
	require.Equal(t, 403, object.Status)
	require.Len(t, aws.ReceivedRequests(), 2, "keys that have not changed are not sent again")
	t.Setenv(variable, aws.token)
	require.NoError(t, send())
	require.Len(t, aws.ReceivedRequests(), 4, "refused, and signed once more with the new token")
}

// TestAWSThatIsRefused repeats nothing of what was sent.
func TestAWSThatIsRefused(t *testing.T) {
	t.Parallel()
	aws := newCloud(t, "execute-api")
	other := tooltest.NewRecordingServer(t, "127.0.0.2", nil)
	var log bytes.Buffer
	c := activities.NewCatalogue(activities.Resources{
		Connections: activities.Connections{"api": aws.connection(map[string]any{"secret_access_key": canary + "-wrong"})}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	_, err := tooltest.CallHTTP(t, c, getInput(t, "/x"))
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, []any{403, interpreter.ClassFinal}, []any{object.Status, object.Class})
	body := fmt.Sprint(object.Body.Data)
	require.Equal(t, "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>***</AWSAccessKeyId><SignatureProvided>***</SignatureProvided><Token>***</Token></Error>", body)
	requireNoCanary(t, object)
	require.NotContains(t, log.String(), canary)
	require.Len(t, aws.ReceivedRequests(), 1)

	aws.Answer = tooltest.RedirectTo(http.StatusTemporaryRedirect, func() string { return other.URL + "/y" })
	_, err = tooltest.CallHTTP(t, withTokens(t, aws.connection(nil)), getInput(t, "/x"))
	require.NoError(t, err)
	require.NotContains(t, other.ReceivedRequests()[0], "Amz", "another host gets no signature")

	in := queryInput(t, map[string]any{"url": "/x", "headers": map[string]any{"Authorization": "own"}})
	_, err = tooltest.CallHTTP(t, withTokens(t, aws.connection(nil)), in)
	require.NoError(t, err)
	require.Contains(t, aws.ReceivedRequests()[2], "Authorization: own\r\n", "a header of the author wins")
}

// startSTS starts a service that gives out the keys of a role to who signs with the key named main, and refuses the role "other".
// keys are what the next session has.
func startSTS(t *testing.T, keys func() (id, secret, token string, ends time.Time)) *tooltest.RecordingServer {
	t.Helper()
	return tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		w.Header().Set("Content-Type", "text/xml")
		signer, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), "/")
		switch {
		case r.Form.Get("Action") != "AssumeRole" || r.Form.Get("RoleSessionName") != "reprise" || signer != "AKIDMAIN":
			w.WriteHeader(http.StatusTeapot)
		case strings.HasSuffix(r.Form.Get("RoleArn"), "/other"), r.Form.Get("ExternalId") != "of us":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>%s may not</Message></Error></ErrorResponse>`, canary)
		default:
			id, secret, token, ends := keys()
			fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>%s</AccessKeyId>`+
				`<SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
				id, secret, token, ends.UTC().Format(time.RFC3339))
		}
	})
}

// TestAWSOfARole: requests are signed with the keys of a session in the role, which the machine's own keys start. A session
// is used until a minute before its end, or until the service refuses it. It sets environment variables, so it does not
// run in parallel.
func TestAWSOfARole(t *testing.T) {
	service := newCloud(t, "execute-api")
	ends := time.Now().Add(time.Hour)
	sts := startSTS(t, func() (string, string, string, time.Time) { return service.key, service.secret, service.token, ends })
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_STS": sts.URL, "AWS_ACCESS_KEY_ID": "AKIDMAIN", "AWS_SECRET_ACCESS_KEY": canary + "-main", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	role := func(name string) string {
		text, err := json.Marshal(map[string]any{"host": service.URL, "query": map[string]any{"api_key": canary + "-key/1"}, "aws": map[string]any{
			"service": "execute-api", "region": "eu-central-1", "role_arn": "arn:aws:iam::1:role/" + name, "external_id": "of us",
		}})
		require.NoError(t, err)
		return string(text)
	}
	c := withTokens(t, role("orders"))
	send := func() {
		t.Helper()
		result, err := tooltest.CallHTTP(t, c, getInput(t, "/"))
		require.NoError(t, err)
		requireNoCanary(t, result)
	}
	send()
	send()
	require.Len(t, sts.ReceivedRequests(), 1, "one session serves attempts until it ends")

	service.key, service.token = "AKIDSECOND123456", canary+"-second-token"
	send()
	require.Len(t, sts.ReceivedRequests(), 2)
	require.Len(t, service.ReceivedRequests(), 4, "refused, and signed once more with the keys of a new session")

	ends = time.Now().Add(30 * time.Second)
	service.key = "AKIDTHIRD1234567"
	send()
	send()
	require.Len(t, sts.ReceivedRequests(), 5, "a session in its last minute is not used again")

	_, err := tooltest.CallHTTP(t, withTokens(t, role("other")), getInput(t, "/"))
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, []any{interpreter.KindConnection, interpreter.ClassFinal, "secret_store"}, []any{object.Kind, object.Class, object.Type})
	require.Equal(t, `connection "api": its role cannot be assumed: AWS refuses it with AccessDenied`, object.Message)

	sts.Answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	_, err = tooltest.CallHTTP(t, withTokens(t, role("orders")), getInput(t, "/"))
	object = tooltest.ErrorObject(t, err)
	require.Equal(t, []any{interpreter.KindConnection, interpreter.ClassRetryable}, []any{object.Kind, object.Class}, object.Message)
}

// TestAWSOfTheMachine: a connection without keys is signed with those of the machine. It sets environment variables, so it
// does not run in parallel.
func TestAWSOfTheMachine(t *testing.T) {
	service := newCloud(t, "s3")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": service.key, "AWS_SECRET_ACCESS_KEY": service.secret, "AWS_SESSION_TOKEN": service.token, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	text, err := json.Marshal(map[string]any{"host": service.URL, "aws": map[string]any{"service": "s3", "region": "eu-central-1"}})
	require.NoError(t, err)
	result, err := tooltest.CallHTTP(t, withTokens(t, string(text)), getInput(t, "/"))
	require.NoError(t, err)
	requireNoCanary(t, result)

	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "credentials"))
	_, err = tooltest.CallHTTP(t, withTokens(t, string(text)), getInput(t, "/"))
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, interpreter.ClassRetryable, object.Class)
	require.Equal(t, `connection "api": there are no credentials of AWS on this machine: AWS does not respond, or not as it should`, object.Message)
}
