package ui

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBoundsOfForms passes maxForm: a form is read before the key of the browser is compared, so a long one is not read.
func TestBoundsOfForms(t *testing.T) {
	t.Parallel()
	form := url.Values{"reason": {strings.Repeat("x", maxForm)}}.Encode()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/runs/x", strings.NewReader(form))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	err := (&Server{}).checkChange(httptest.NewRecorder(), request, &visit{})
	refused, ok := errors.AsType[*pageError](err)
	require.True(t, ok)
	require.Equal(t, http.StatusBadRequest, refused.status)
}
