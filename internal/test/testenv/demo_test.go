package testenv_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

func TestDemoAPILivesAsLongAsItsTest(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("user", func(t *testing.T) {
		api := testenv.DemoAPI(t)
		url = api.URL()
		response, err := http.Get(url + "/api/v1/patients")
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, 200, response.StatusCode)
		require.Equal(t, 1, api.CountRequests("", "/api/v1/patients"))
	})
	_, err := http.Get(url + "/healthz")
	require.Error(t, err)
}
