package cli

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// silent is a standard input on which nobody types anything.
type silent struct {
	once    sync.Once
	waiting chan struct{} // closed by the first read
	ended   <-chan struct{}
}

func (s *silent) Read([]byte) (int, error) {
	s.once.Do(func() { close(s.waiting) })
	<-s.ended
	return 0, context.Canceled
}

// TestAnswersToQuestions: an interrupted question is no answer.
func TestAnswersToQuestions(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	require.ErrorIs(t, readYes(&input{from: &silent{waiting: make(chan struct{}), ended: t.Context().Done()}, until: ctx}), ErrInterrupted)
}

func TestAnswered(t *testing.T) {
	t.Parallel()
	for _, yes := range []string{"y\n", "yes\n", "Y\n"} {
		require.NoError(t, readYes(strings.NewReader(yes)))
	}
	for _, no := range []string{"", "\n", "n\n", "yeah\n", "no\n"} {
		require.ErrorIs(t, readYes(strings.NewReader(no)), errDeclined)
	}
}
