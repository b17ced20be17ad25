package interpreter_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// TestLoadSideBySide decodes two playbooks of which each waits until the other
// one is being decoded too.
func TestLoadSideBySide(t *testing.T) {
	t.Parallel()

	var both sync.WaitGroup

	both.Add(2)
	load := interpreter.NewBooks(func(name, _ string) (*playbook.Playbook, error) {
		both.Done()
		both.Wait()
		return &playbook.Playbook{Name: name}, nil
	})

	var callers sync.WaitGroup

	for _, name := range []string{"one", "two"} {
		callers.Go(func() {
			book, err := load(name, "text")
			if err != nil || book.Name != name {
				t.Errorf("%s: %v %v", name, book, err)
			}
		})
	}

	testenv.Wait(t, callers.Wait, "both playbooks")
}

// TestLoadOnce asks for one playbook many times at once.
func TestLoadOnce(t *testing.T) {
	t.Parallel()

	const callers = 16

	var asked, decoded atomic.Int32

	load := interpreter.NewBooks(func(string, string) (*playbook.Playbook, error) {
		decoded.Add(1)

		for asked.Load() < callers {
			runtime.Gosched()
		}
		return &playbook.Playbook{}, nil
	})

	found := make([]*playbook.Playbook, callers)

	var group sync.WaitGroup

	for i := range callers {
		group.Go(func() {
			asked.Add(1)

			found[i], _ = load("book", "text")
		})
	}

	testenv.Wait(t, group.Wait, "the playbook of all callers")
	require.Equal(t, int32(1), decoded.Load())

	for _, book := range found {
		require.Same(t, found[0], book)
	}
}

// TestLoadCaches checks what is kept: the playbooks used last, by their name
// and text, and no failures.
func TestLoadCaches(t *testing.T) {
	t.Parallel()

	decoded := map[string]int{}
	refused := errors.New("no playbook")
	load := interpreter.NewBooks(func(name, text string) (*playbook.Playbook, error) {
		decoded[name+"/"+text]++

		if text == "bad" {
			return nil, refused
		}
		return &playbook.Playbook{}, nil
	})

	for range 2 {
		_, err := load("a", "bad")
		require.ErrorIs(t, err, refused)
	}

	require.Equal(t, 2, decoded["a/bad"])

	for i := range 64 {
		for range 2 {
			_, _ = load("first", "text")
			_, _ = load("a", fmt.Sprint(i))
			require.Equal(t, 1, decoded[fmt.Sprint("a/", i)])
		}
	}

	require.Equal(t, 1, decoded["first/text"], "used all the time")

	_, _ = load("a", "0")
	require.Equal(t, 2, decoded["a/0"], "the oldest of more than 64")
}
