package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/demoapi"
)

func TestHello(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	result, err := w.run(w.playbook("hello.yaml"), nil)
	require.NoError(t, err)
	require.Equal(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, "Hello, world!", result.Result.Data)
}

func TestPatientMedications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	result, err := w.run(w.playbook("patient_medications.yaml"), map[string]any{"connection": "sqlite:rows.db"})
	require.NoError(t, err)
	require.Equal(t, "partial_success", result.Status, "%+v", result.Error)
	require.Equal(t, map[string]any{
		"patients": 25, "success": 24,
		"failed": []any{map[string]any{"patient": demoapi.MissingPatient, "status": 404}},
	}, result.Result.Data)
}
