package secretstore

import (
	"time"

	"reprise/internal/base/connection"
)

// NewVault is newVault.
func NewVault(lookup func(string) (string, bool), now func() time.Time) connection.SecretStore {
	return newVault(lookup, now)
}
