package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// SaveHistories writes each history to dir as JSON that the web UI, the CLI and LoadHistories can read:
// 01-TypeWorkflow.json and so on, in order. Names of this machine (worker identities, sticky queues) are replaced.
// Files of the same name are overwritten; others stay.
func SaveHistories(dir string, histories []RunHistory) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save histories: %w", err)
	}
	marshal := temporalproto.CustomJSONMarshalOptions{Indent: "  "}
	for i, run := range histories {
		history := proto.Clone(run.History).(*historypb.History)
		anonymiseHistory(history.ProtoReflect())
		text, err := marshal.Marshal(history)
		if err != nil {
			return fmt.Errorf("save history of %s: %w", run, err)
		}
		name := fmt.Sprintf("%02d-%s.json", i+1, run.Type)
		if err := os.WriteFile(filepath.Join(dir, name), append(text, '\n'), 0o644); err != nil {
			return fmt.Errorf("save history of %s: %w", run, err)
		}
	}
	return nil
}

// LoadHistories reads all *.json files of dir in the order of their names. The test fails if there is none, or if one
// is not a history.
func LoadHistories(t testing.TB, dir string) []RunHistory {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("load histories: no *.json file in %s", dir)
	}
	slices.Sort(names)
	histories := make([]RunHistory, len(names))
	for i, name := range names {
		if histories[i], err = loadHistory(name); err != nil {
			t.Fatal(err)
		}
	}
	return histories
}

func loadHistory(name string) (RunHistory, error) {
	file, err := os.Open(name)
	if err != nil {
		return RunHistory{}, fmt.Errorf("load history: %w", err)
	}
	defer func() { _ = file.Close() }()
	history, err := client.HistoryFromJSON(file, client.HistoryJSONOptions{})
	if err != nil {
		return RunHistory{}, fmt.Errorf("load history %s: %w", name, err)
	}
	run, err := identifyRun(history)
	if err != nil {
		return RunHistory{}, fmt.Errorf("load history %s: %w", name, err)
	}
	return run, nil
}

// anonymiseHistory replaces worker and client identities (process ID and host name) and the names of sticky queues, which
// contain the host name, at any depth.
func anonymiseHistory(message protoreflect.Message) {
	if queue, ok := message.Interface().(*taskqueuepb.TaskQueue); ok && queue.Kind == enumspb.TASK_QUEUE_KIND_STICKY {
		queue.Name = "sticky"
		return
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Kind() == protoreflect.StringKind && field.Name() == "identity":
			message.Set(field, protoreflect.ValueOfString("recorded"))
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				anonymiseHistory(value.List().Get(i).Message())
			}
		default:
			anonymiseHistory(value.Message())
		}
		return true
	})
}
