package transfer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotesAreBounded passes mostNotes: the first are kept, each once.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	m := &move{}
	for i := range mostNotes + 5 {
		m.addNotes([]string{fmt.Sprint(i), fmt.Sprint(i)})
	}
	require.Len(t, m.notes, mostNotes)
	require.Equal(t, fmt.Sprint(mostNotes-1), m.notes[mostNotes-1])
}
