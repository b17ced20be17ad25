package secretstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"reprise/internal/base/connection"
)

// Environment variables of AWS that its configuration does not resolve by itself.
const (
	awsEndpoint      = "AWS_ENDPOINT_URL_SECRETS_MANAGER"
	awsUsualEndpoint = "AWS_ENDPOINT_URL"
)

// secretsManager reads secrets from AWS Secrets Manager, with the credentials that AWS's own programs would use.
type secretsManager struct {
	lookup func(string) (string, bool)
	client *http.Client

	mu     sync.Mutex
	config *aws.Config // nil before it is needed
}

func newSecretsManager(lookup func(string) (string, bool)) *secretsManager {
	return &secretsManager{lookup: lookup, client: newClient(nil)}
}

// Close does nothing: AWS gives out no leases.
func (*secretsManager) Close(context.Context) error { return nil }

// FetchSecret reads the current version of a secret.
func (m *secretsManager) FetchSecret(ctx context.Context, source connection.SecretSource) (connection.StoredSecret, error) {
	settings, err := m.settings(ctx)
	if err != nil {
		return connection.StoredSecret{}, err
	}
	status, body, err := m.request(ctx, settings, source)
	code := codeOf(body)
	if err == nil && slices.Contains(expiredCodes, code) {
		if cache, ok := settings.Credentials.(*aws.CredentialsCache); ok {
			cache.Invalidate()
			status, body, err = m.request(ctx, settings, source)
			code = codeOf(body)
		}
	}
	var answer struct{ SecretString string }
	switch {
	case err != nil:
		return connection.StoredSecret{}, err
	case code == "ResourceNotFoundException":
		return connection.StoredSecret{}, connection.ErrMissing
	case status != http.StatusOK && code != "":
		return connection.StoredSecret{}, unreadable("AWS refuses it: %s", code)
	case status != http.StatusOK:
		return connection.StoredSecret{}, unreadable("AWS answered with status %d", status)
	case json.Unmarshal(body, &answer) != nil || answer.SecretString == "":
		return connection.StoredSecret{}, unreadable("the secret has no text")
	}
	return connection.StoredSecret{Value: answer.SecretString}, nil
}

// expiredCodes are the codes with which AWS refuses credentials that are read anew.
var expiredCodes = []string{"ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException", "InvalidClientTokenId"}

// awsCode matches codes of errors, which are shown.
var awsCode = regexp.MustCompile(`^[A-Za-z]{1,100}$`)

// codeOf returns the code of the error in an answer; "" if it has none.
func codeOf(body []byte) string {
	var answer struct {
		Type string `json:"__type"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	code := answer.Type[strings.LastIndexByte(answer.Type, '#')+1:]
	if !awsCode.MatchString(code) {
		return ""
	}
	return code
}

// settings returns the configuration of AWS: of the environment, files, and the machine.
func (m *secretsManager) settings(ctx context.Context) (*aws.Config, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.config != nil {
		return m.config, nil
	}
	loaded, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, unreadable("the configuration of AWS: %w", err)
	}
	m.config = &loaded
	return m.config, nil
}

// regionOf returns the region of a secret: the one that its source names, that of its ARN, or the usual one.
func regionOf(settings *aws.Config, source connection.SecretSource) string {
	const place = 3 // arn:PARTITION:SERVICE:REGION:…
	region := ""
	if parts := strings.Split(source.Name, ":"); strings.HasPrefix(source.Name, "arn:") && len(parts) > place {
		region = parts[place]
	}
	return cmp.Or(source.Region, region, settings.Region)
}

func (m *secretsManager) request(ctx context.Context, settings *aws.Config, source connection.SecretSource) (int, []byte, error) {
	region := regionOf(settings, source)
	if region == "" {
		return 0, nil, unreadable("there is no region of AWS: set AWS_REGION, or region beside name")
	}
	keys, err := settings.Credentials.Retrieve(ctx)
	if err != nil {
		return 0, nil, unreadable("there are no credentials of AWS: %w", err)
	}
	body, err := json.Marshal(map[string]string{"SecretId": source.Name})
	if err != nil {
		return 0, nil, unreadable("the request cannot be encoded")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.endpoint(region), bytes.NewReader(body))
	if err != nil {
		return 0, nil, unreadable("%s must be a URL", awsEndpoint)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "secretsmanager.GetSecretValue")
	digest := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, keys, request, hex.EncodeToString(digest[:]), "secretsmanager", region, time.Now().UTC()); err != nil {
		return 0, nil, unreadable("the request cannot be signed")
	}
	return send(m.client, request)
}

// endpoint returns the URL of a region.
func (m *secretsManager) endpoint(region string) string {
	own, _ := m.lookup(awsEndpoint)
	usual, _ := m.lookup(awsUsualEndpoint)
	host := "https://secretsmanager." + region + ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		host += ".cn"
	}
	return strings.TrimSuffix(cmp.Or(own, usual, host), "/") + "/"
}
