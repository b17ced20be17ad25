package visibility_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/visibility"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":             `''`,
		"run/1":        `'run/1'`,
		`a' OR 'b'='b`: `'a\' OR \'b\'=\'b'`,
		`a\' OR b`:     `'a\\\' OR b'`,
	} {
		require.Equal(t, want, visibility.Quote(text))
	}
}
