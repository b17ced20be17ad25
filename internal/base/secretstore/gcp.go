package secretstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"reprise/internal/base/connection"
)

// gcpEndpoint is the variable with which Google's own programs replace the address of Secret Manager.
const gcpEndpoint = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"

// gcpProject is the variable that names the project of secrets without one.
const gcpProject = "GOOGLE_CLOUD_PROJECT"

// googleLogin is what Google's own programs would use on this machine (application default credentials).
type googleLogin struct {
	token   string // for requests
	project string // that the credentials belong to, "" if they do not say
}

// secretManager reads secrets from Google Cloud Secret Manager.
type secretManager struct {
	lookup func(string) (string, bool)
	client *http.Client
	// login returns the credentials of the machine.
	login func(context.Context) (googleLogin, error)
}

func newSecretManager(lookup func(string) (string, bool), login func(context.Context) (googleLogin, error)) *secretManager {
	return &secretManager{lookup: lookup, client: newClient(nil), login: login}
}

// Close does nothing: Google gives out no leases.
func (*secretManager) Close(context.Context) error { return nil }

// FetchSecret reads a version of a secret, by default the latest.
func (m *secretManager) FetchSecret(ctx context.Context, source connection.SecretSource) (connection.StoredSecret, error) {
	login, err := m.login(ctx)
	if err != nil {
		return connection.StoredSecret{}, err
	}
	project, _ := m.lookup(gcpProject)
	name, location, problem := versionName(source.Name, cmp.Or(project, login.project))
	if problem != "" {
		return connection.StoredSecret{}, unreadable("%s", problem)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.endpoint(location)+"v1/"+name+":access", http.NoBody)
	if err != nil {
		return connection.StoredSecret{}, unreadable("%s must be a URL", gcpEndpoint)
	}
	request.Header.Set("Authorization", "Bearer "+login.token)
	status, body, err := send(m.client, request)
	if err != nil {
		return connection.StoredSecret{}, err
	}
	return readVersion(status, body)
}

// readVersion reads the answer of Secret Manager.
func readVersion(status int, body []byte) (connection.StoredSecret, error) {
	var answer struct {
		Payload struct {
			Data string `json:"data"`
		} `json:"payload"`
		Error struct {
			Status string `json:"status"`
		} `json:"error"`
	}
	isJSON := json.Unmarshal(body, &answer) == nil
	switch {
	case status == http.StatusNotFound && isJSON && answer.Error.Status == "NOT_FOUND":
		return connection.StoredSecret{}, connection.ErrMissing
	case status != http.StatusOK && isJSON && googleStatus.MatchString(answer.Error.Status):
		return connection.StoredSecret{}, unreadable("Google refuses it: %s", answer.Error.Status)
	case status != http.StatusOK:
		return connection.StoredSecret{}, unreadable("Google answered with status %d", status)
	}
	value, err := base64.StdEncoding.DecodeString(answer.Payload.Data)
	if !isJSON || err != nil || len(value) == 0 || !utf8.Valid(value) {
		return connection.StoredSecret{}, unreadable("the secret has no text")
	}
	return connection.StoredSecret{Value: string(value)}, nil
}

// googleStatus matches codes of errors, which are shown.
var googleStatus = regexp.MustCompile(`^[A-Z_]{1,100}$`)

// secretName matches a secret as Google names it. Only the part after the project is required.
var secretName = regexp.MustCompile(`^(?:projects/([A-Za-z0-9][A-Za-z0-9.:-]*)/)?(?:locations/([a-z0-9-]+)/)?(?:secrets/)?([A-Za-z0-9_-]+)(?:/versions/([A-Za-z0-9_-]+))?$`)

// versionName returns the full name of the version that a source names, and its location, "" for a global secret. problem
// says why there is none.
func versionName(name, project string) (full, location, problem string) {
	parts := secretName.FindStringSubmatch(name)
	if parts == nil {
		return "", "", "the name must be SECRET or projects/PROJECT/secrets/SECRET, each with /versions/VERSION if it is not the latest"
	}
	project = cmp.Or(parts[1], project)
	if project == "" {
		return "", "", "there is no project: set " + gcpProject + ", or write projects/PROJECT/secrets/" + parts[3]
	}
	full = "projects/" + project
	if location = parts[2]; location != "" {
		full += "/locations/" + location
	}
	return full + "/secrets/" + parts[3] + "/versions/" + cmp.Or(parts[4], "latest"), location, ""
}

// endpoint returns the address for secrets of a location.
func (m *secretManager) endpoint(location string) string {
	own, _ := m.lookup(gcpEndpoint)
	host := "https://secretmanager.googleapis.com"
	if location != "" {
		host = "https://secretmanager." + location + ".rep.googleapis.com"
	}
	return strings.TrimSuffix(cmp.Or(own, host), "/") + "/"
}
