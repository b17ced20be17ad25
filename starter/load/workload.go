package load

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/starter/cli"
)

// AsMap returns a value as a map, or nil if it is not one.
func AsMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// WorkloadFlags override values of a playbook's workload.
type WorkloadFlags struct {
	Files  []string
	Sets   []string
	Values map[string]any // laid over both
}

// AddFlags adds the flags to a command.
func (f *WorkloadFlags) AddFlags(command *cobra.Command) {
	command.Flags().StringArrayVar(&f.Sets, "set", nil,
		"a workload value key=value, typed as in YAML: n=3, ids='[p1,p2]', a.b=true; repeatable")
	command.Flags().StringArrayVar(&f.Files, "workload", nil,
		"YAML or JSON file with workload values; repeatable, --set overrides them")
}

// Read merges the files in order, then the values of --set. Errors are usage errors.
func (f *WorkloadFlags) Read() (map[string]any, error) {
	workload := map[string]any{}
	for _, path := range f.Files {
		values, err := readWorkloadFile(path)
		if err != nil {
			return nil, err
		}
		workload = MergeWorkload(workload, values)
	}
	for _, set := range f.Sets {
		values, err := ParseSet(set)
		if err != nil {
			return nil, err
		}
		workload = MergeWorkload(workload, values)
	}
	if f.Values != nil {
		workload = MergeWorkload(workload, f.Values)
	}
	return workload, nil
}

// MergeWorkload returns base overridden by overlay. Maps are merged; other values are replaced.
func MergeWorkload(base, overlay map[string]any) map[string]any {
	return expression.MergeMaps(base, overlay).(map[string]any) // Merge of maps gives a map
}

func readWorkloadFile(path string) (map[string]any, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.UsageError("read the workload: %w", err)
	}
	value, err := ReadWorkload(path, data)
	if err != nil {
		return nil, cli.UsageError("read the workload: %w", err)
	}
	switch value := value.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return value, nil
	}
	return nil, cli.UsageError("read the workload: %s must contain a map, not a %s", path, expression.TypeName(value))
}

// ReadWorkload parses a file as JSON if its name or content says so, else as YAML. YAML is not a superset of JSON: it
// lacks \/ and surrogate pairs such as \ud83d\ude00.
func ReadWorkload(path string, data []byte) (any, error) {
	value, err := ReadJSON(data)
	switch {
	case err == nil:
		return value, nil
	case strings.EqualFold(filepath.Ext(path), ".json") && len(bytes.TrimSpace(data)) > 0:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file := source.NewFile(path, data)
	value, found := playbook.DecodeData(file)
	if problems := found.Errors(); len(problems) > 0 {
		return nil, fmt.Errorf("\n%s", strings.TrimSpace(file.FormatAll(problems)))
	}
	return value, nil
}

// ReadJSON parses JSON, and rejects objects with duplicate keys.
func ReadJSON(data []byte) (any, error) {
	return expression.DecodeExact(bytes.TrimPrefix(data, []byte("\uFEFF")))
}

// ParseSet parses key=value. Dots in the key separate the keys of nested maps.
func ParseSet(text string) (map[string]any, error) {
	key, raw, found := strings.Cut(text, "=")
	if !found || key == "" {
		return nil, cli.UsageError("--set %q: expected key=value, such as --set n=3", text)
	}
	value, err := ParseSetValue(raw)
	if err != nil {
		return nil, cli.UsageError("--set %s: %w", key, err)
	}
	parts := strings.Split(key, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i] == "" {
			return nil, cli.UsageError("--set %q: the key has an empty part; expected names with single dots between them, such as a.b", text)
		}
		value = map[string]any{parts[i]: value}
	}
	return value.(map[string]any), nil // the loop ran at least once
}

// ParseSetValue parses a YAML scalar, or a list or map in brackets. Everything else is text: a sentence with a colon
// is not meant as a map.
func ParseSetValue(raw string) (any, error) {
	if raw == "" {
		return "", nil
	}
	if value, err := ReadJSON([]byte(raw)); err == nil || errors.Is(err, expression.ErrLongNumber) || errors.Is(err, expression.ErrInexact) {
		return value, err
	}
	file := source.NewFile("value", []byte(raw))
	value, found := playbook.DecodeData(file)
	bracketed := strings.ContainsAny(raw[:1], "[{\"'")
	if problems := found.Errors(); len(problems) > 0 {
		if bracketed {
			return nil, fmt.Errorf("the value is neither YAML nor JSON\n%s", strings.TrimSpace(file.FormatAll(problems)))
		}
		return raw, nil
	}
	switch value.(type) {
	case map[string]any, []any:
		if !bracketed {
			return raw, nil
		}
	}
	return value, nil
}

// shownUnread bounds how many unread keys are reported, because a workload may have any number.
const shownUnread = 20

// UnreadKeys returns a warning for each key that is not in the playbook's workload and that no expression reads: most
// are misspelt.
func UnreadKeys(book *playbook.Playbook, workload map[string]any) []string {
	reads := book.WorkloadReads()
	if reads.Whole {
		return nil
	}
	unknown := lists.Filter(cli.SortedKeys(workload), func(key string) bool { return !slices.Contains(reads.Keys, key) })
	var warnings []string
	for _, key := range unknown[:min(len(unknown), shownUnread)] {
		warning := fmt.Sprintf("the playbook's workload has no key %q, and no expression uses it", source.CutText(key, shownKey))
		if near := expression.Suggest(key, reads.Keys); near != "" {
			warning += fmt.Sprintf("; did you mean %q?", near)
		}
		warnings = append(warnings, warning)
	}
	if more := len(unknown) - len(warnings); more > 0 {
		warnings = append(warnings, terminal.Count(more, "more key")+" of the workload"+cli.IsAre(more)+" not read")
	}
	return warnings
}

// shownKey bounds how much of a key is shown, in characters.
const shownKey = 100

// CheckKeysAreRead prints warnings about unread keys and adds them to the output of the run; with strict they are a usage
// error.
func CheckKeysAreRead(a *cli.App, book *playbook.Playbook, workload map[string]any, strict bool) error {
	warnings := UnreadKeys(book, workload)
	if strict && len(warnings) > 0 {
		return cli.UsageError("%s", strings.Join(warnings, "\n"))
	}
	for _, warning := range warnings {
		a.Notef("%s", terminal.PaperOf(a.Err).PaintWarning("warning: "+warning))
	}
	a.Warnings = append(a.Warnings, warnings...)
	return nil
}
