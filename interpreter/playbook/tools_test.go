package playbook_test

import (
	"maps"
	"slices"

	"reprise/interpreter/playbook"
)

// catalogue is the tools that the golden tests know; it has the fields of the
// real ones, so that messages read as users see them.
type catalogue map[string]playbook.ToolSpec

func (c catalogue) Spec(name string) (playbook.ToolSpec, bool) {
	spec, ok := c[name]
	return spec, ok
}

func (c catalogue) Names() []string { return slices.Sorted(maps.Keys(c)) }

var testTools = catalogue{
	"http": {
		Name: "http", Writes: true, Secrets: []string{"url", "headers", "params", "body", "form"},
		Fields: append([]playbook.Field{
			{Name: "url", Kind: playbook.KindText, Required: true},
			{Name: "method", Kind: playbook.KindText, Enum: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, Default: "GET"},
			{Name: "params", Kind: playbook.KindMap},
			{Name: "headers", Kind: playbook.KindMap},
			{Name: "body", Kind: playbook.KindValue},
			{Name: "form", Kind: playbook.KindMap},
			{Name: "follow_redirects", Kind: playbook.KindBoolean, Default: "true"},
		}, readFields()...),
	},
	"postgres": {
		Name: "postgres", Writes: true, Dialect: "postgres", Secrets: []string{"statement"},
		Fields:       sqlFields(),
		RequireOneOf: [][]string{{"auth"}, {"statement", "table"}},
		RequireIf:    []playbook.Requirement{{Field: "mode", Value: "upsert", Needs: "key"}},
	},
	"sqlite": {
		Name: "sqlite", Writes: true, Dialect: "sqlite", Secrets: []string{"statement"},
		Fields:       append(sqlFields(), playbook.Field{Name: "path", Kind: playbook.KindText}),
		RequireOneOf: [][]string{{"auth", "path"}, {"statement", "table"}},
		RequireIf:    []playbook.Requirement{{Field: "mode", Value: "upsert", Needs: "key"}},
	},
	"file": {
		Name: "file", Writes: true,
		Fields: append([]playbook.Field{
			{Name: "path", Kind: playbook.KindText, Required: true},
			{Name: "batch", Kind: playbook.KindNumber},
			{Name: "mode", Kind: playbook.KindText, Enum: []string{"append", "overwrite"}},
			{Name: "rejected", Kind: playbook.KindMap, Keys: []playbook.Field{{Name: "path", Kind: playbook.KindText, Required: true}, {Name: "max", Kind: playbook.KindNumber}}},
		}, readFields()...),
	},
	"python": {
		Name: "python", Writes: true, Secrets: []string{"args"},
		Fields: []playbook.Field{{Name: "code", Kind: playbook.KindCode, Required: true}},
	},
	// The fields of these two are kinds that the others lack.
	"wait": {
		Name: "wait",
		Fields: []playbook.Field{
			{Name: "for", Kind: playbook.KindDuration},
			{Name: "times", Kind: playbook.KindNumber},
			{Name: "names", Kind: playbook.KindList},
		},
	},
	"archive": {
		Name: "archive", Writes: true, SinkOnly: true,
		Fields: []playbook.Field{{Name: "bucket", Kind: playbook.KindLiteral, Required: true}},
	},
}

// withPlaybooks has the tool that runs other playbooks too.
var withPlaybooks = func() catalogue {
	tools := maps.Clone(testTools)
	tools[playbook.PlaybookTool] = playbook.ToolSpec{
		Name: playbook.PlaybookTool,
		Fields: []playbook.Field{
			{Name: "workflow", Kind: playbook.KindSteps},
			{Name: "path", Kind: playbook.KindLiteral},
			{Name: "names", Kind: playbook.KindLiteral},
			{Name: "name", Kind: playbook.KindText},
			{Name: "workload", Kind: playbook.KindMap},
			{Name: "partition", Kind: playbook.KindText},
			{Name: "wait", Kind: playbook.KindBoolean, Default: "true"},
		},
		RequireOneOf: [][]string{{"workflow", "path", "name"}},
	}
	return tools
}()

func readFields() []playbook.Field {
	return []playbook.Field{
		{Name: "format", Kind: playbook.KindText, Enum: []string{"json", "jsonl", "csv", "text"}},
		{Name: "compression", Kind: playbook.KindText, Enum: []string{"gzip", "zstd", "none"}},
		{Name: "csv", Kind: playbook.KindMap, Keys: []playbook.Field{
			{Name: "delimiter", Kind: playbook.KindText},
			{Name: "quote", Kind: playbook.KindText},
			{Name: "header", Kind: playbook.KindValue},
			{Name: "null", Kind: playbook.KindValue},
			{Name: "encoding", Kind: playbook.KindText},
		}},
	}
}

var contractWords = []string{"freeze", "evolve", "discard_value", "discard_row"}

func sqlFields() []playbook.Field {
	return []playbook.Field{
		{Name: "statement", Kind: playbook.KindStatement},
		{Name: "table", Kind: playbook.KindLiteral, Unquoted: true},
		{Name: "key", Kind: playbook.KindLiteral, Unquoted: true},
		{Name: "mode", Kind: playbook.KindLiteral, Enum: []string{"insert", "upsert", "insert_or_ignore", "replace"}, Default: "insert"},
		{Name: "sequence_by", Kind: playbook.KindLiteral, Unquoted: true, Needs: []playbook.Need{{Field: "mode", Value: "upsert"}}},
		{Name: "schema_contract", Kind: playbook.KindChoice, Enum: contractWords, Default: "freeze", Keys: []playbook.Field{
			{Name: "tables", Kind: playbook.KindLiteral, Enum: contractWords},
			{Name: "columns", Kind: playbook.KindLiteral, Enum: contractWords},
			{Name: "data_type", Kind: playbook.KindLiteral, Enum: contractWords},
		}},
		{Name: "columns", Kind: playbook.KindMap},
		{Name: "rejected", Kind: playbook.KindMap, Keys: []playbook.Field{
			{Name: "table", Kind: playbook.KindLiteral, Unquoted: true}, {Name: "max", Kind: playbook.KindNumber},
		}},
		{Name: "replace_where", Kind: playbook.KindMap, Needs: []playbook.Need{{Field: "mode", Value: "replace"}}, Keys: []playbook.Field{
			{Name: "column", Kind: playbook.KindLiteral, Unquoted: true, Required: true}, {Name: "from", Kind: playbook.KindValue}, {Name: "to", Kind: playbook.KindValue},
		}},
		{Name: "delete_missing", Kind: playbook.KindBoolean, Needs: []playbook.Need{{Field: "mode", Value: "upsert"}}},
		{Name: "children", Kind: playbook.KindMap, Each: childKeys(2)},
		{Name: "nested", Kind: playbook.KindLiteral, Enum: []string{"json", "tables"}},
		{Name: "max_delete", Kind: playbook.KindNumber, Needs: []playbook.Need{{Field: "delete_missing", Value: "true"}}},
		{Name: "allow_empty", Kind: playbook.KindBoolean, Needs: []playbook.Need{{Field: "mode", Value: "replace"}, {Field: "delete_missing", Value: "true"}}},
		{Name: "hard_delete", Kind: playbook.KindLiteral, Unquoted: true, Needs: []playbook.Need{{Field: "mode", Value: "upsert"}}},
	}
}

// childKeys are the keys of a table for lists in rows.
func childKeys(depth int) []playbook.Field {
	keys := []playbook.Field{
		{Name: "table", Kind: playbook.KindLiteral, Required: true},
		{Name: "key", Kind: playbook.KindLiteral},
		{Name: "with", Kind: playbook.KindMap, Required: true},
		{Name: "position", Kind: playbook.KindLiteral},
		{Name: "columns", Kind: playbook.KindMap},
	}
	if depth > 1 {
		keys = append(keys, playbook.Field{Name: "children", Kind: playbook.KindMap, Each: childKeys(depth - 1)})
	}
	return keys
}
