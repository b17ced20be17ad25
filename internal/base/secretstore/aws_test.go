package secretstore_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/connection"
	"reprise/internal/base/secretstore"
)

// TestSecretsOfAWS sets environment variables, so it does not run in parallel.
func TestSecretsOfAWS(t *testing.T) {
	var region, code string
	values := map[string]string{"shop": `{"user": "ana", "password": "first"}`, "text": "first", "arn:aws:secretsmanager:eu-north-1:1:secret:shop": "of an ARN"}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		text, _ := io.ReadAll(r.Body)
		var body struct{ SecretId string }
		_ = json.Unmarshal(text, &body)
		scope := strings.Split(r.Header.Get("Authorization"), "/")
		if len(scope) < 4 || r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" || scope[3] != "secretsmanager" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		region = scope[2]
		refuse := func(code string) {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.secretsmanager#" + code, "Message": canary})
		}
		expired := strings.Contains(scope[0], "Credential=OLD")
		switch value, has := values[body.SecretId]; {
		case code != "":
			refuse(code)
		case expired:
			refuse("ExpiredTokenException")
		case !has:
			refuse("ResourceNotFoundException")
		default:
			_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": value})
		}
	}))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	credentials := filepath.Join(folder, "credentials")
	write := func(key string) {
		require.NoError(t, os.WriteFile(credentials, []byte("[default]\naws_access_key_id = "+key+"\naws_secret_access_key = "+canary+"\n"), 0o600))
	}
	write("NEW")
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": server.URL, "AWS_REGION": "eu-central-1", "AWS_SHARED_CREDENTIALS_FILE": credentials, "AWS_CONFIG_FILE": filepath.Join(folder, "config"),
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	now := time.Now()
	sources := &connection.Sources{Now: func() time.Time { return now }, Stores: secretstore.FromEnvironment(os.LookupEnv)}
	of := func(name, field, region string) connection.SecretSource {
		return connection.SecretSource{From: "aws", Name: name, Field: field, Region: region, Refresh: time.Minute}
	}
	for _, row := range []struct {
		source        connection.SecretSource
		value, region string
	}{
		{of("shop", "password", ""), "first", "eu-central-1"},
		{of("text", "", "us-east-1"), "first", "us-east-1"},
		{of("arn:aws:secretsmanager:eu-north-1:1:secret:shop", "", ""), "of an ARN", "eu-north-1"},
		{of("shop", "user", ""), "ana", "eu-north-1"},
	} {
		value, err := sources.Read(row.source, false)
		require.NoError(t, err)
		require.Equal(t, row.value, value)
		require.Equal(t, row.region, region)
	}
	require.Equal(t, 3, asked, "fields of a secret are read together")
	values["shop"] = `{"password": "second"}`
	value, err := sources.Read(of("shop", "password", ""), true)
	require.NoError(t, err)
	require.Equal(t, "second", value)

	_, err = sources.Read(of("none", "", ""), false)
	require.EqualError(t, err, "AWS secret none: no such secret")
	_, err = sources.Read(of("text", "x", ""), false)
	require.EqualError(t, err, "AWS secret text, field x: the secret cannot be read: it is not a JSON object")
	for refusal, says := range map[string]string{"AccessDeniedException": "AWS refuses it: AccessDeniedException", "<" + canary + ">": "AWS answered with status 400"} {
		code = refusal
		_, err := (&connection.Sources{Now: time.Now, Stores: secretstore.FromEnvironment(os.LookupEnv)}).Read(of("shop", "password", ""), false)
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, err, connection.ErrUnreadable)
		require.NotContains(t, err.Error(), canary)
	}
	code = ""
	write("OLD")
	sources = &connection.Sources{Now: time.Now, Stores: secretstore.FromEnvironment(os.LookupEnv)}
	_, err = sources.Read(of("shop", "password", ""), false)
	require.ErrorContains(t, err, "AWS refuses it: ExpiredTokenException")
	require.NoError(t, os.Remove(credentials))
	sources = &connection.Sources{Now: time.Now, Stores: secretstore.FromEnvironment(os.LookupEnv)}
	_, err = sources.Read(of("shop", "password", ""), false)
	require.ErrorContains(t, err, "there are no credentials of AWS")
	require.NoError(t, sources.Close())
}
