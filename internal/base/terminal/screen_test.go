package terminal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatATerminalWouldObeyIsShown(t *testing.T) {
	t.Parallel()
	for text, shown := range map[string]string{
		"plain\ttext\n": "plain\ttext\n",
		"Ünïcode – 漢字 👩\u200d💻 �": "Ünïcode – 漢字 👩\u200d💻 �",
		"\x1b]0;title\x07":        `\u001b]0;title\u0007`,
		"\x1b[2J\r\b\x7f\u009b":   `\u001b[2J\u000d\u0008\u007f\u009b`,
		"a\u202eb\u2066c\u200f":   `a\u202eb\u2066c\u200f`,
		"line\u2028two":           `line\u2028two`,
		"bad \xff\xc3 bytes":      `bad \xff\xc3 bytes`,
	} {
		require.Equal(t, shown, EscapeInvisible(text))
		require.Equal(t, shown, EscapeInvisible(shown), "shown once")
		var b bytes.Buffer
		n, err := (&Screen{To: &b}).Write([]byte(text))
		require.NoError(t, err)
		require.Len(t, text, n)
		require.Equal(t, shown, b.String())
	}
}
