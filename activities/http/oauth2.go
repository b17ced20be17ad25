package http

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2/clientcredentials"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// oauth2Client is a connection whose tokens the worker fetches by itself: the
// client credentials grant (RFC 6749, section 4.4).
type oauth2Client struct {
	tokenURL   *url.URL
	id, secret string
	scopes     []string
	audience   string
	host       *url.URL // that the tokens are for, nil for the host of the call's first request
}

// ConnectionText is an entry of a connections file in the form in which
// resolvers keep it: a URL as it is, {oauth2: …} as JSON. Its error continues
// from the connection's name, and says nothing of what the entry holds.
func ConnectionText(entry any) (string, error) {
	switch entry := entry.(type) {
	case string:
		if entry != "" {
			return entry, nil
		}
	case map[string]any:
		text, err := expression.Encode(entry)
		if err != nil {
			return "", errNoConnection
		}
		_, err = parseOAuth2(string(text))
		return string(text), err
	}
	return "", errNoConnection
}

var errNoConnection = errors.New("must be a URL, or a map with oauth2")

// parseOAuth2 reads {"oauth2": {…}}. Its error says nothing of what is there.
func parseOAuth2(raw string) (*oauth2Client, error) {
	var entry map[string]map[string]any
	if err := json.Unmarshal([]byte(raw), &entry); err != nil || len(entry) != 1 || entry["oauth2"] == nil {
		return nil, errNoConnection
	}
	client := &oauth2Client{}
	for _, read := range []func(*oauth2Client, map[string]any) error{
		(*oauth2Client).readTexts, (*oauth2Client).readTokenURL, (*oauth2Client).readHost, (*oauth2Client).readScopes, refuseUnknownWords,
	} {
		if err := read(client, entry["oauth2"]); err != nil {
			return nil, err
		}
	}
	return client, nil
}

func (c *oauth2Client) readTexts(settings map[string]any) error {
	c.id, _ = settings["client_id"].(string)
	c.secret, _ = settings["client_secret"].(string)
	c.audience, _ = settings["audience"].(string)
	switch {
	case c.id == "":
		return errors.New("must have oauth2.client_id, as text")
	case c.secret == "":
		return errors.New("must have oauth2.client_secret, as text")
	case settings["audience"] != nil && c.audience == "":
		return errors.New("must have text as oauth2.audience")
	}
	return nil
}

func (c *oauth2Client) readTokenURL(settings map[string]any) error {
	text, _ := settings["token_url"].(string)
	var err error
	if c.tokenURL, err = url.Parse(text); err != nil || !isWeb(c.tokenURL) || c.tokenURL.User != nil {
		return errors.New("must have a URL as oauth2.token_url, such as https://login.example.com/token")
	}
	return nil
}

func (c *oauth2Client) readHost(settings map[string]any) error {
	if settings["host"] == nil {
		return nil
	}
	text, _ := settings["host"].(string)
	var err error
	if c.host, err = hostURL(text); err != nil {
		return errors.New("must have a URL as oauth2.host, such as https://api.example.com")
	}
	return nil
}

var oauth2Words = []string{"token_url", "client_id", "client_secret", "scopes", "audience", "host"}

// refuseUnknownWords refuses words that nothing reads.
func refuseUnknownWords(_ *oauth2Client, settings map[string]any) error {
	for name := range settings {
		if !slices.Contains(oauth2Words, name) {
			return errors.New("has a key that oauth2 does not have; its keys are " + strings.Join(oauth2Words, ", "))
		}
	}
	return nil
}

// readScopes reads the words of a text, or the texts of a list.
func (c *oauth2Client) readScopes(settings map[string]any) error {
	switch v := settings["scopes"].(type) {
	case nil:
		return nil
	case string:
		c.scopes = strings.Fields(v)
		return nil
	case []any:
		c.scopes = lists.Pick(v, func(item any) (string, bool) {
			scope, isText := item.(string)
			return scope, isText && scope != ""
		})
		if len(c.scopes) == len(v) {
			return nil
		}
	}
	return errors.New("must have a list of texts as oauth2.scopes")
}

// config is the client as the library knows it.
func (c *oauth2Client) config() *clientcredentials.Config {
	config := &clientcredentials.Config{
		ClientID: c.id, ClientSecret: c.secret, TokenURL: c.tokenURL.String(), Scopes: c.scopes,
	}
	if c.audience != "" {
		config.EndpointParams = url.Values{"audience": {c.audience}}
	}
	return config
}
