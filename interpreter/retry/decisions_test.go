package retry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/migrate"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
	"reprise/interpreter/source"
)

// TestDecisions runs the decision tables: each file of testdata/decisions is a
// list of cases, separated by a line of dashes.
//
//	# name of the case
//	random 0.5              optional: what every draw of randomness gives
//	limits 10 60s           optional: the operator's retries and longest delay
//	retry:                  the policies, as YAML
//	  - when: …
//	503                  => repeat policy 1 after 1s (failure 1/3)
//	ok {"more": true}    => …
//
// An outcome is a status with an optional `after N` (seconds of Retry-After),
// a kind of error such as timeout or, with its type, connection/dns, or ok with the page, also `ok after N`.
// `+5s` before an outcome lets time pass; a repeat moves the clock by its own delay.
func TestDecisions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/decisions/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	rows := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, section := range strings.Split(string(text), "\n---\n") {
			table := parseTable(t, file, section)
			rows += len(table.rows)
			t.Run(filepath.Base(file)+"/"+table.name, func(t *testing.T) {
				t.Parallel()
				table.run(t)
			})
		}
	}
	require.GreaterOrEqual(t, rows, 200, "rows of all decision tables")
}

// decidedElsewhere are the words of policies about which nothing is decided here, and what has their tests.
var decidedElsewhere = map[string]string{
	"use":                "interpreter/playbook puts the policies that are named in its place",
	"class":              "interpreter/call makes the failure that fail names",
	"type":               "interpreter/call makes the failure that fail names",
	"allow_repeat":       "interpreter/call compares requests and pages",
	"end_on_repeat":      "interpreter/call compares requests and pages",
	"per_iteration":      "interpreter/call writes pages",
	"pages_per_activity": "activities fetch pages",
}

// TestEachWordHasADecision: a word of a policy has a row in the decision tables, unless something else
// decides about it.
func TestEachWordHasADecision(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/decisions/*.txt")
	require.NoError(t, err)
	var tables strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		tables.Write(text)
	}
	words := map[string]bool{}
	for _, section := range playbook.Sections() {
		if section.Name != "then" && section.Name != "retry policy" {
			continue
		}
		for _, key := range section.Keys {
			words[key.Name] = true
			hasRow := regexp.MustCompile(`[\s{]` + key.Name + `:`).MatchString(tables.String())
			elsewhere := decidedElsewhere[key.Name]
			assert.True(t, hasRow || elsewhere != "", "%s has no row: write a case in testdata/decisions whose policies have it, "+
				"or name in decidedElsewhere what decides about it", key.Name)
			assert.False(t, hasRow && elsewhere != "", "%s has a row, so it is none of decidedElsewhere", key.Name)
		}
	}
	require.Greater(t, len(words), 20)
	for word := range decidedElsewhere {
		assert.True(t, words[word], "%s is no word of a policy", word)
	}
}

type table struct {
	name   string
	random float64
	limits interpreter.RunLimits
	retry  string
	rows   []row
}

type row struct{ outcome, decision string }

func parseTable(t *testing.T, file, section string) table {
	t.Helper()
	table := table{random: 0.5}
	for _, line := range strings.Split(strings.TrimSpace(section), "\n") {
		outcome, decision, isRow := strings.Cut(line, "=>")
		switch {
		case strings.HasPrefix(line, "# "):
			table.name = strings.TrimPrefix(line, "# ")
		case strings.HasPrefix(line, "random "):
			value, err := strconv.ParseFloat(strings.TrimPrefix(line, "random "), 64)
			require.NoError(t, err)
			table.random = value
		case strings.HasPrefix(line, "limits "):
			_, err := fmt.Sscanf(line, "limits %d %fs", &table.limits.MaxRetries, &table.limits.MaxDelaySeconds)
			require.NoError(t, err)
		case isRow && !strings.HasPrefix(line, " "):
			table.rows = append(table.rows, row{strings.TrimSpace(outcome), strings.TrimSpace(decision)})
		default:
			table.retry += line + "\n"
		}
	}
	require.NotEmpty(t, table.name, "%s: a case without a name: %q", file, section)
	require.NotEmpty(t, table.rows, "%s: case %q has no rows", file, table.name)
	return table
}

// policies decodes the retry section as that of a step. Migrating it must
// change nothing but the form.
func (tb table) policies(t *testing.T) (written, migrated []*playbook.Policy) {
	t.Helper()
	text := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: table}\nworkflow:\n  - step: fetch\n    tool: http\n    url: http://x\n"
	for _, line := range strings.Split(strings.TrimRight(tb.retry, "\n"), "\n") {
		text += "    " + line + "\n"
	}
	file := source.NewFile("table.yaml", []byte(text))
	book, diagnostics := playbook.Decode(file)
	require.False(t, diagnostics.HasErrors(), "%v", diagnostics)
	migration := migrate.MigrateFile(file)
	require.Empty(t, migration.Problems)
	require.Equal(t, len(diagnostics) > 0, migration.HasChanged(), "what is warned of is migrated, and nothing else")
	listed, diagnostics := playbook.Decode(source.NewFile("migrated.yaml", migration.Text))
	require.Empty(t, diagnostics)
	return book.Steps[0].Retry, listed.Steps[0].Retry
}

func (tb table) run(t *testing.T) {
	written, migrated := tb.policies(t)
	tb.decide(t, written)
	tb.decide(t, migrated)
}

func (tb table) decide(t *testing.T, policies []*playbook.Policy) {
	t.Helper()
	counters := retry.NewCounters(len(policies))
	counters.Limits = tb.limits
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, row := range tb.rows {
		outcome, passed := tables.ParseOutcome(t, row.outcome)
		now = now.Add(passed)
		decision, err := retry.Decide(policies, outcome, &counters, conditions{outcome, i + 1, now}, now,
			func() float64 { return tb.random })
		require.Equal(t, row.decision, describe(decision, err), "row %d: %s", i+1, row.outcome)
		if decision.Ruling == retry.RulingRepeats {
			now = now.Add(decision.Delay)
		}
	}
}

// describe says a decision in one line.
func describe(d retry.Decision, err error) string {
	switch {
	case err != nil:
		return "error " + err.Error()
	case d.Ruling == retry.RulingRepeats:
		text := fmt.Sprintf("repeat policy %d after %s (%s %d/%d)", d.Policy, d.Delay, d.Reason, d.Count, d.Limit)
		if d.Unread != "" {
			text += ", unread: " + d.Unread
		}
		return text
	case d.Ruling == retry.RulingStops:
		return "stop"
	case d.Policy == 0:
		return "no match"
	}
	text := fmt.Sprintf("end policy %d", d.Policy)
	if d.Ruling.IsExhausted() {
		text = fmt.Sprintf("exhausted policy %d: %s", d.Policy, d.Why)
	}
	return text + map[retry.Ruling]string{
		retry.RulingFails: ", fails", retry.RulingSucceeds: ", succeeds, truncated",
		retry.RulingTruncates: ", truncated", retry.RulingRefuses: ", refused", retry.RulingIgnores: ", ignored",
	}[d.Ruling]
}

// conditions evaluates policies against one outcome, which is that of the
// attempt with the number given.
type conditions struct {
	outcome interpreter.Outcome
	attempt int
	now     time.Time
}

func (c conditions) scope() expression.MapScope {
	meta := map[string]any{}
	if !c.outcome.Failed() {
		meta["status"] = 200
	}
	return expression.MapScope{
		"response": c.outcome.Data, "error": c.outcome.Err.Value(),
		"this":   map[string]any{"meta": meta},
		"_retry": map[string]any{"attempt": c.attempt, "count": c.attempt},
	}
}

func (c conditions) truth(node *playbook.Node) (bool, error) {
	return node.EvalCondition(c.scope(), expression.NewBudget(expression.DecisionLimits, time.Time{}))
}

func (c conditions) RetryAfter(p *playbook.Policy) (time.Duration, string, error) {
	value, err := p.Then.RetryAfter.Render(c.scope(), expression.NewBudget(expression.DecisionLimits, time.Time{}))
	wait, unread := interpreter.ReadWait(value, nil, c.now)
	return wait, unread, err
}

func (c conditions) When(p *playbook.Policy) (bool, error)     { return c.truth(p.When) }
func (c conditions) StopWhen(p *playbook.Policy) (bool, error) { return c.truth(p.StopWhen) }
