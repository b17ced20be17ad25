package oracle_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
)

// notPredicted are keys of calls and loops that no random playbook has, and why.
var notPredicted = map[string]string{
	"step.desc":         "nothing obeys it",
	"step.join":         "its only value is what each step does",
	"step.auth":         "credentials do not change when or how often requests are sent",
	"sink.auth":         "credentials do not change when or what is written",
	"step.on_failure":   "a notice is sent beside the run",
	"step.secret":       "it changes what people see, and not the run",
	"loop.source":       "the rows of a source are those of a tool; package loop tests it",
	"loop.dead_letter":  "what is kept of a failure does not change the run",
	"collect.merge_by":  "it changes the rows of the result alone; package page tests which",
	"incremental.until": "the end of a range is the clock's",
}

// TestEachKeyIsPredicted: what decides how a call, a loop or a state continues is drawn, and predicted from the specification.
func TestEachKeyIsPredicted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var code strings.Builder
	for _, file := range files {
		if file == "words_test.go" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code.Write(text)
	}
	decides := map[string]bool{
		"step": true, "next entry": true, "loop": true, "failure_budget": true, "thresholds": true, "incremental": true, "sink": true,
		"retry policy": true, "then": true, "next_call": true, "collect": true, "per_iteration": true,
	}
	keys := map[string]bool{}
	for _, section := range playbook.Sections() {
		if !decides[section.Name] {
			continue
		}
		for _, key := range section.Keys {
			whole := section.Name + "." + key.Name
			keys[whole] = true
			written := regexp.MustCompile(`"` + key.Name + `[":]|\b` + key.Name + `: `).MatchString(code.String())
			reason := notPredicted[whole]
			assert.True(t, written || reason != "", "the oracle never writes %s: add a field that writes it, draw it and predict it: for a key of a policy in policy_test.go, "+
				"for another in playbook_test.go, generate_words_test.go and foretell_call_test.go; or say in notPredicted why a run does not depend on it", whole)
			assert.False(t, written && reason != "", "the oracle writes %s: remove it from notPredicted", whole)
		}
	}
	require.Greater(t, len(keys), 60)
	for whole := range notPredicted {
		assert.True(t, keys[whole], "%s is no key: remove it from notPredicted", whole)
	}
}
