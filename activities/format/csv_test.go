package format_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"reprise/activities/format"
)

// TestCSVInPieces: rows and errors are the same wherever the pieces end in which CSV arrives: in quotes, in line ends, in a character, or in a
// delimiter of several bytes.
func TestCSVInPieces(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long value ", 3000)
	for name, text := range map[string]string{
		"quotes":             "a,b\n\"x \"\"y\"\" z\",\"two\r\nlines\"\n\"\",\",\"\n",
		"line ends":          "a,b\r\n1,2\r\r\n3,4\r5,6\n\n7,8",
		"characters":         "näme,→\n€,𝄞\n",
		"values that end":    "a,b\n1,",
		"long values":        "a,b\n" + long + ",\"" + long + "\n" + long + "\"\n1,2\n",
		"an open quote":      "a,b\n1,2\n\"x,\n3,4\n",
		"a quote in a value": "a,b\n1,x\"y\n",
		"behind a quote":     "a,b\n\"x\"y,1\n",
		"too many values":    "a,b\n1,2\n\n1,2,3\n",
		"named delimiter":    "sep=;\na;b\n1;2,3\n",
		"another delimiter":  "sep=→\na→b\n1→2â3\n",
	} {
		whole, wrong := readCSV(strings.NewReader(text))
		pieces, alsoWrong := readCSV(iotest.OneByteReader(strings.NewReader(text)))
		require.Equal(t, whole, pieces, name)
		require.Equal(t, wrong, alsoWrong, name)
		if len(text) > len(long) {
			continue
		}
		for at := range text {
			cut := errors.New("cut")
			_, err := readCSV(io.MultiReader(strings.NewReader(text[:at]), iotest.ErrReader(cut)))
			line := new(format.LineError)
			require.True(t, errors.Is(err, cut) || errors.As(err, &line), "%s: %v", name, err)
		}
	}
}

func readCSV(content io.Reader) (rows []any, err error) {
	for row, err := range (format.CSVDialect{}).ReadRows(content) {
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
