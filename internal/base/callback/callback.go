// Package callback creates and reads the tokens with which another system answers an attempt
// (docs/reference/tools.md#webhook). A token is the address of its attempt, encrypted with the workers' key. Tokens
// are not stored; only the key can create or read them.
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

// Path is the path, below the base URL, at which the server accepts answers.
const Path = "/v1/callbacks/"

// PagePath is the path of the pages where people answer approvals.
const PagePath = "/v1/approvals/"

// Variable is the environment variable for the base URL of that server as other systems reach it.
const Variable = "REPRISE_CALLBACK_URL"

// Address identifies the attempt that a token is for.
type Address struct {
	// Workflow is the ID of the workflow that hosts the attempt, and Run the ID of the playbook run.
	Workflow string               `json:"w"`
	Run      string               `json:"r,omitempty"`
	To       interpreter.AnswerTo `json:"to"`
}

// place is the context that callback tokens are sealed for: a value sealed for another use is not accepted as a
// token.
const place = "callback"

// SealToken encrypts an address as a token.
func SealToken(keys *seal.Keys, address Address) (string, error) {
	text, err := json.Marshal(address)
	if err != nil {
		return "", fmt.Errorf("the callback URL: %w", err)
	}
	return keys.Seal(text, place)
}

// ErrToken means that a token is not valid for these keys.
var ErrToken = errors.New("the token is not valid")

// OpenToken decrypts a token; the error is ErrToken, whatever the reason.
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

// CheckBase reports what is wrong with a base URL. An empty URL is valid: it switches callbacks off.
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

// CallbackMembers returns the members of `callback` in playbooks: the token and, if base is set, the URLs of that
// server.
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
