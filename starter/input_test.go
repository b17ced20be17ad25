package main

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/exitcode"
	"reprise/internal/test/testenv"
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

// TestInterruptEndsAReadOfTheInput: Ctrl-C ends a command that waits for its standard input, whatever it
// reads it for.
func TestInterruptEndsAReadOfTheInput(t *testing.T) {
	t.Parallel()
	for status, commands := range map[int][][]string{
		exitcode.Interrupted: {
			{"validate", "-"},
			{"run", "-", "--address", "127.0.0.1:1"},
			{"try", "-"},
			{"graph", "-"},
			{"migrate", "-"},
			{"eval", "1", "--with", "-"},
			{"new", "--curl", "-"},
			{"complete", "a", "b", "--result", "-"},
			{"logs", "a", "--file", "-"},
		},
		exitcode.OK: {{"lsp"}, {"mcp"}},
	} {
		for _, args := range commands {
			ctx, interrupt := context.WithCancel(t.Context())
			in := &silent{waiting: make(chan struct{}), ended: t.Context().Done()}
			streams, out, errs := captured()
			streams.In = in
			ended := make(chan int, 1)
			go func() { ended <- Main(ctx, args, streams) }()
			select {
			case <-in.waiting:
			case <-time.After(testenv.Within(10 * time.Second)):
				t.Fatalf("%v does not read its input", args)
			}
			interrupt()
			select {
			case got := <-ended:
				require.Equal(t, status, got, "%v: %s%s", args, out, errs)
			case <-time.After(testenv.Within(10 * time.Second)):
				t.Fatalf("%v has not ended after Ctrl-C", args)
			}
		}
	}
}
