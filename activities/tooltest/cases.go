package tooltest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/activities"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// together is how many attempts the suite makes at the same time.
const together = 8

func (s *runner) testSpec(t *testing.T) {
	t.Parallel()
	require.Equal(t, s.Tool, s.spec.Name)
	require.Contains(t, s.Catalogue.Names(), s.Tool)
	require.True(t, strings.HasSuffix(s.spec.Summary, "."), "the summary is a sentence: %q", s.spec.Summary)
	require.NotContains(t, s.spec.Summary, "\n")
	require.NotEmpty(t, s.spec.Doc)
	require.NotEmpty(t, s.spec.Example)
	names := s.spec.FieldNames()
	for i, field := range s.spec.Fields {
		require.NotEmpty(t, field.Kind, "kind of field %q", field.Name)
		require.True(t, strings.HasSuffix(field.Doc, "."), "the doc of field %q is a sentence: %q", field.Name, field.Doc)
		require.NotContains(t, names[:i], field.Name, "each field stands there once")
		require.False(t, field.Required && field.Default != "", "field %q is required and has a default", field.Name)
	}
	for _, group := range s.spec.RequireOneOf {
		for _, name := range group {
			require.Contains(t, append([]string{"auth", "args"}, names...), name)
		}
	}
	require.Equal(t, s.spec, mustSpec(t, s.Catalogue, s.Tool), "a spec is always the same")
}

func mustSpec(t *testing.T, c *activities.Catalogue, tool string) playbook.ToolSpec {
	t.Helper()
	spec, ok := c.Spec(tool)
	require.True(t, ok)
	return spec
}

// testExample decodes and checks the example as the only step of a playbook.
func (s *runner) testExample(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: example}\nworkflow:\n")
	for i, line := range strings.Split(strings.TrimRight(s.spec.Example, "\n"), "\n") {
		indent := "    "
		if i == 0 {
			indent = "  - "
		}
		text.WriteString(strings.TrimRight(indent+line, " ") + "\n")
	}
	file := source.NewFile("example.yaml", []byte(text.String()))
	pb, found := check.Validate(file, s.Catalogue, check.Options{})
	require.Empty(t, file.FormatAll(found))
	tool, _ := pb.Steps[0].Action.ToolName()
	require.Equal(t, s.Tool, tool)
}

// testResult checks that a result is canonical and survives the history.
func (s *runner) testResult(t *testing.T) {
	t.Parallel()
	result, err := s.run(t.Context(), s.goodInput(t))
	require.NoError(t, err)
	canonical, err := expression.Canonical(result.Data.Data)
	require.NoError(t, err)
	require.Equal(t, canonical, result.Data.Data)
	encoded, err := json.Marshal(result)
	require.NoError(t, err)
	var back interpreter.ToolResult
	require.NoError(t, json.Unmarshal(encoded, &back))
	require.Equal(t, result, back)
}

func (s *runner) testUnknownFields(t *testing.T) {
	t.Parallel()
	in := s.goodInput(t)
	fields := Fields(map[string]any{"a_field_of_a_later_version": 1})
	maps.Copy(fields, in.Fields)
	in.Fields = fields
	_, err := s.run(t.Context(), in)
	require.NoError(t, err)
}

func (s *runner) testConcurrent(t *testing.T) {
	t.Parallel()
	inputs := make([]interpreter.ToolInput, together)
	for i := range inputs {
		inputs[i] = s.goodInput(t)
	}
	var group errgroup.Group
	for _, in := range inputs {
		group.Go(func() error {
			_, err := s.run(t.Context(), in)
			return err
		})
	}
	require.NoError(t, group.Wait())
}

func (s *runner) testMissingConnection(t *testing.T) {
	t.Parallel()
	before := s.goodInput(t)
	before.Sinks = []interpreter.SinkConnection{{Auth: "nobody_set_this", Place: "fetch.sink", At: "shop.yaml:9:20"}}
	_, refused := s.run(t.Context(), before)
	early := ErrorObject(t, refused)
	require.True(t, early.Final)
	require.Contains(t, early.Message, `shop.yaml:9:20: sink fetch.sink: connection "nobody_set_this" is not configured: set REPRISE_AUTH_NOBODY_SET_THIS`)
	file := s.goodInput(t)
	file.Sinks = []interpreter.SinkConnection{{Auth: "sqlite:rows.db", Place: "fetch.sink", At: "shop.yaml:9:20"}}
	_, err := s.run(t.Context(), file)
	require.NoError(t, err, "a file needs no connection")
	in := s.goodInput(t)
	in.Auth = "nobody_set_this"
	_, err = s.run(t.Context(), in)
	if !s.TakesAuth {
		require.NoError(t, err, "a tool that uses connections has TakesAuth in its suite")
		return
	}
	object := ErrorObject(t, err)
	require.Equal(t, interpreter.KindTool, object.Kind)
	require.Equal(t, interpreter.ClassFinal, object.Class)
	require.True(t, object.Final)
	require.Contains(t, object.Message, `connection "nobody_set_this" is not configured: set REPRISE_AUTH_NOBODY_SET_THIS`)
}

func (s *runner) testFailure(t *testing.T, failure FailureCase) {
	t.Parallel()
	run := s.run
	if failure.AsSink {
		run = ActivityOf(t, s.Catalogue, interpreter.WriteActivity(s.Tool))
	}
	in := CompleteInput(failure.Input(t), s.Tool)
	in.Attempt, in.Page = 3, 2
	_, err := run(t.Context(), in)
	object := ErrorObject(t, err)
	require.Equal(t, failure.Kind, object.Kind, object.Message)
	require.Equal(t, failure.Class, object.Class, object.Message)
	require.Equal(t, failure.Type, object.Type, object.Message)
	require.Equal(t, failure.Status, object.Status, object.Message)
	require.Contains(t, object.Message, failure.Says)
	require.Equal(t, 3, object.Attempt)
	require.Equal(t, 2, object.Page)
	s.requireNoSecrets(t, object)
}

func (s *runner) requireNoSecrets(t *testing.T, object interpreter.ErrorObject) {
	t.Helper()
	encoded, err := json.Marshal(object)
	require.NoError(t, err)
	for _, secret := range s.Secrets {
		require.NotContains(t, string(encoded), secret)
	}
}

// testWrite delivers one write several times, one after the other and at the
// same time, and then another one.
func (s *runner) testWrite(t *testing.T) {
	t.Parallel()
	write := ActivityOf(t, s.Catalogue, interpreter.WriteActivity(s.Tool))
	in := CompleteInput(s.Write.Input(t), s.Tool)
	in.OperationKey, in.AttemptKey, in.IdempotencyKey = "op-write", "op-write:1", "op-write"
	before := s.Write.Effect(t, in)
	_, err := write(t.Context(), in)
	require.NoError(t, err)
	once := s.Write.Effect(t, in)
	require.NotEqual(t, before, once, "a write must show")
	if s.Write.AuthorsDuty != "" {
		return
	}
	var group errgroup.Group
	for attempt := range slices.Values([]int{1, 2, 3, 4}) {
		again := in
		again.Attempt, again.AttemptKey = attempt, "op-write:again"
		group.Go(func() error {
			_, err := write(t.Context(), again)
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, once, s.Write.Effect(t, in), "a write that was made before changes nothing")
	in.OperationKey, in.AttemptKey, in.IdempotencyKey = "op-other", "op-other:1", "op-other"
	_, err = write(t.Context(), in)
	require.NoError(t, err)
	if s.Write.Overwrites {
		require.Equal(t, once, s.Write.Effect(t, in))
	} else {
		require.NotEqual(t, once, s.Write.Effect(t, in), "a write with another key must show")
	}
}
