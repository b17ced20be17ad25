package render_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/test/samples"
	"reprise/interpreter"
)

// notListed are the fields of a run that starter list shows in JSON or nowhere, and why.
var notListed = map[string]string{
	"RunID":       "commands take the workflow ID",
	"Since":       "starter status shows since when a run waits",
	"NextRetryAt": "starter status shows when a retry is due",
	"HeldBy":      "it is part of the status where only a person or a worker can continue a run",
	"Late":        "the status says by how much",
	"TaskQueue":   "it is an option of the command",
	"Origin":      "the ID of a reprocess begins with that of its run",
	"Started":     "starter status shows who has started a run",
	"Schedule":    "starter schedule show lists the runs of a schedule",
	"Expect":      "starter status shows that a run is late",
	"TaskSince":   "starter status shows that no worker takes a task",
}

// TestEachFieldOfARunIsListed: a value that starter list knows of a run is in a column of its table.
func TestEachFieldOfARunIsListed(t *testing.T) {
	t.Parallel()
	began := samples.LocalBegan
	shown := func(run runs.Found) string {
		return render.RunsTable([]runs.Found{run}, began.Add(3*time.Hour), terminal.Paper{Width: 1000})
	}
	fields := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[runs.Found]()) {
		if !field.IsExported() {
			continue
		}
		fields[field.Name] = true
		run := runs.Found{Status: interpreter.Queued, StartedAt: began}
		before := shown(run)
		fillValue(reflect.ValueOf(&run).Elem().FieldByIndex(field.Index), began.Add(time.Hour))
		listed := shown(run) != before
		reason := notListed[field.Name]
		assert.True(t, listed || reason != "", "starter list does not show runs.Found.%s: add a column to runColumns in internal/observe/render/runs.go, or to notListed why nobody needs it there", field.Name)
		assert.False(t, listed && reason != "", "starter list shows runs.Found.%s: remove it from notListed", field.Name)
	}
	for name := range notListed {
		assert.True(t, fields[name], "runs.Found has no field %s: remove it from notListed", name)
	}
}

// fillValue gives a value, and each exported field of a struct, something that is not its zero value.
func fillValue(v reflect.Value, at time.Time) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(at))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("some")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(7))
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), at)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0), at)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillValue(v.Field(i), at)
			}
		}
	}
}
