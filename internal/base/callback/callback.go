// Package callback makes and reads the tokens with which another system answers an attempt
// (docs/reference/tools.md#webhook). A token is the address of its attempt, sealed with the
// worker's key. Tokens are not stored; only the key can make or read them.
package callback

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"reprise/internal/base/seal"
	"reprise/interpreter"
)

// Path is where the server of answers accepts them, below its base URL.
const Path = "/v1/callbacks/"

// PagePath is the path of its pages for people.
const PagePath = "/v1/approvals/"

// Variable is the environment variable of the base URL of that server, as others
// reach it.
const Variable = "REPRISE_CALLBACK_URL"

// Address is the attempt that a token is for.
type Address struct {
	// Workflow is the ID of the workflow that hosts the attempt, and Run that of the
	// run.
	Workflow string               `json:"w"`
	Run      string               `json:"r,omitempty"`
	To       interpreter.AnswerTo `json:"to"`
}

// place binds what is sealed to this use.
const place = "callback"

// SealToken seals an address.
func SealToken(keys *seal.Keys, address Address) (string, error) {
	text, err := json.Marshal(address)
	if err != nil {
		return "", fmt.Errorf("the callback URL: %w", err)
	}
	return keys.Seal(text, place)
}

// ErrToken says that a token was not made with this key.
var ErrToken = errors.New("the token is not valid")

// OpenToken reads a token; the error is ErrToken, whatever is wrong with it.
func OpenToken(keys *seal.Keys, token string) (Address, error) {
	text, err := keys.Open(token, place)
	if err != nil {
		return Address{}, ErrToken
	}
	var address Address
	if err := json.Unmarshal(text, &address); err != nil || address.Workflow == "" || address.To.Key == "" {
		return Address{}, ErrToken
	}
	return address, nil
}

// CheckBase says what is wrong with a base URL, "" for nothing. An empty URL is right: it
// switches callbacks off.
func CheckBase(base string) error {
	if base == "" {
		return nil
	}
	parsed, err := url.Parse(base)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.RawQuery != "" || parsed.Fragment != "" {
		return errors.New("the callback URL must look like https://reprise.example.com, without a query")
	}
	return nil
}

// CallbackMembers returns the members of callback in playbooks: the token and, with a base URL,
// the URLs of that server.
func CallbackMembers(base, token string) map[string]string {
	members := map[string]string{"token": token}
	if base == "" {
		return members
	}
	base = strings.TrimSuffix(base, "/")
	address := base + Path + token
	members["url"], members["page"] = address, base+PagePath+token
	for _, verb := range []interpreter.AnswerVerb{interpreter.AnswerComplete, interpreter.AnswerFail, interpreter.AnswerProgress} {
		members[string(verb)] = address + "/" + string(verb)
	}
	return members
}
