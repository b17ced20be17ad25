package try

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShownBody: members of a body that are named like secrets are not shown, whatever the body is.
func TestShownBody(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"user": "ada", "password": "abc", "in": {"pwd": "x"}}`:  `{"in":{"pwd":"***"},"password":"***","user":"ada"}`,
		`{"user": "ada",  "n": 1}`:                                `{"user": "ada",  "n": 1}`,
		`user=ada&password=abc&n=1`:                               `user=ada&password=***&n=1`,
		`<login><user>ada</user><password>abc</password></login>`: `<login><user>ada</user><password>***</password></login>`,
		`{"password": "abc", "rest": "is cut`:                     `{"password": "***", "rest": "is cut`,
		``:                                                        ``,
	} {
		require.Equal(t, want, shownBody(text), text)
	}
}
