package http

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/oauth2"
)

// withTokenClient returns ctx with the client that the OAuth 2.0 library sends its requests with.
func withTokenClient(ctx context.Context, client *http.Client) context.Context {
	own := *client
	own.Transport = &lifetimeTransport{base: cmp.Or(client.Transport, http.DefaultTransport)}
	return context.WithValue(ctx, oauth2.HTTPClient, &own)
}

// lifetimeTransport makes expires_in of responses a whole number of seconds, or removes it. The library drops a response
// with any other, and with it a refresh token, which often is the only one that is still good. RFC 6749, section 5.1, does
// not require a lifetime: without one, a token is used until it is refused.
type lifetimeTransport struct{ base http.RoundTripper }

// mostTokenAnswer bounds what is read of a response, as the library does.
const mostTokenAnswer = 1 << 20

// RoundTrip sends the request.
func (t *lifetimeTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return response, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostTokenAnswer))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(withWholeLifetime(body)))
	return response, nil
}

// withWholeLifetime returns the body of a response with a lifetime that the library reads.
func withWholeLifetime(body []byte) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields["expires_in"] == nil {
		return body
	}
	text := strings.Trim(string(fields["expires_in"]), `"`)
	if _, err := strconv.ParseInt(text, 10, 64); err == nil || text == "null" {
		return body
	}
	delete(fields, "expires_in")
	if seconds, err := strconv.ParseFloat(text, 64); !math.IsNaN(seconds) && (err == nil || errors.Is(err, strconv.ErrRange)) {
		fields["expires_in"] = strconv.AppendFloat(nil, math.Floor(min(max(seconds, 0), mostLife.Seconds())), 'f', -1, 64)
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		return body
	}
	return whole
}
