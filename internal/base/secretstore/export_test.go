package secretstore

import (
	"context"
	"time"

	"reprise/internal/base/connection"
)

// NewSecretManager returns the store of Google, for a machine whose credentials are a token and a project.
func NewSecretManager(lookup func(string) (string, bool), token, project string) connection.SecretStore {
	return newSecretManager(lookup, func(context.Context) (googleLogin, error) { return googleLogin{token, project}, nil })
}

// NewVault is newVault.
func NewVault(lookup func(string) (string, bool), now func() time.Time) connection.SecretStore {
	return newVault(lookup, now)
}
