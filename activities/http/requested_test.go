package http_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// TestHTTPErrorsNameTheRequest: which page failed is in the message, and in error.url and
// error.params; what is secret is in none of them.
func TestHTTPErrorsNameTheRequest(t *testing.T) {
	t.Parallel()

	url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusBadRequest)
	})
	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": "bearer:tok-123456"}})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	call := func(t *testing.T, fields map[string]any) *interpreter.ErrorObject {
		t.Helper()

		in := tooltest.Input(fields)(t)
		in.Auth, in.TimeoutSeconds = "api", 0.3
		_, err := tooltest.CallHTTP(t, c, in)
		object := tooltest.ErrorObject(t, err)
		return &object
	}

	for name, test := range map[string]struct {
		fields  map[string]any
		url     string
		params  any
		message string
	}{
		"a page by params": {
			map[string]any{"url": url + "/orders.json", "params": map[string]any{"page": 3, "limit": 250}},
			url + "/orders.json?limit=250&page=3",
			map[string]any{"page": 3, "limit": 250},
			"HTTP 400 from GET " + url + "/orders.json?limit=250&page=3",
		},
		"a page by url": {
			map[string]any{"url": url + "/orders.json?page_info=eyJkaXJlY3Rpb24iOiJuZXh0In0"},
			url + "/orders.json?page_info=eyJkaXJlY3Rpb24iOiJuZXh0In0", nil, "?page_info=eyJkaXJlY3Rpb24iOiJuZXh0In0",
		},
		"a page token": {
			map[string]any{"url": url + "/x", "params": map[string]any{"pageToken": "CAEQAA"}},
			url + "/x?pageToken=CAEQAA",
			map[string]any{"pageToken": "CAEQAA"},
			"?pageToken=CAEQAA",
		},
		"secrets by name": {
			map[string]any{"url": url + "/x?api_key=hunter22&n=1", "params": map[string]any{"access_token": "hunter23"}},
			url + "/x?api_key=***&n=1&access_token=***",
			map[string]any{"access_token": "***"},
			"?api_key=***&n=1&access_token=***",
		},
		"a secret that is known": {
			map[string]any{"url": url + "/x", "params": map[string]any{"q": "tok-123456"}},
			url + "/x?q=***",
			map[string]any{"q": "***"},
			"?q=***",
		},
		"no query":  {map[string]any{"url": url + "/x#part"}, url + "/x", nil, "HTTP 400 from GET " + url + "/x"},
		"a timeout": {map[string]any{"url": url + "/slow?page=2"}, url + "/slow?page=2", nil, "took longer than its timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			object := call(t, test.fields)
			value, isMap := object.Value().(map[string]any)
			require.True(t, isMap)
			require.Equal(t, test.url, value["url"])
			require.Equal(t, test.params, value["params"])
			require.Contains(t, object.Message, test.message)
		})
	}

	long := call(t, map[string]any{"url": url + "/x?q=" + strings.Repeat("a", 5000)})
	require.Less(t, len(long.Message), tool.MaxShownQuery+len(url)+100)
	require.Greater(t, len(long.Message), tool.MaxShownQuery)
	require.LessOrEqual(t, len(long.URL), tool.MaxShownURL)

	large := call(t, map[string]any{"url": url + "/x", "params": map[string]any{"q": strings.Repeat("a", 5000)}})
	require.Nil(t, large.Params.Data)
}
