package main

import (
	"fmt"

	"reprise/internal/base/audit"
	"reprise/internal/base/secrets"
)

// openAudit opens the audit log; nil if the flags name none.
func (o *options) openAudit(secret *secrets.Masker) (*audit.Trail, error) {
	if o.audit == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	trail, err := audit.Open(o.audit, "worker", secret)
	if err != nil {
		return nil, fmt.Errorf("--audit-log: %w", err)
	}
	return trail, nil
}
