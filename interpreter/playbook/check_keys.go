package playbook

import (
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// checkKeys compares a map that is written out with the keys that it may have.
func (c *checker) checkKeys(field Field, written *Node) {
	names := lists.Map(field.Keys, func(key Field) string { return key.Name })
	for _, key := range field.Keys {
		has := func(entry *Entry) bool { return entry.Key == key.Name }
		if key.Required && written.kind == mapNode && !slices.ContainsFunc(written.Entries, has) {
			c.errorf(written.Pos, codeMissingField, "%s needs %q", field.Name, key.Name)
		}
	}
	for _, entry := range written.Entries {
		i := slices.Index(names, entry.Key)
		if i < 0 {
			hint := "its keys are " + listed(names)
			if write := foreignIn(foreignKeys, entry.Key, 0, nil).text(); write != "" {
				hint = write
			} else if near := expression.Suggest(entry.Key, names); near != "" {
				hint = "did you mean " + quote(near) + "?"
			}
			c.errorf(entry.KeyPos, codeUnknownField, "%s has no key %q; %s", field.Name, shorten(entry.Key), hint)
			c.offer(entry.Key, expression.Certain(entry.Key, names))
			continue
		}
		if problem := field.Keys[i].problem(entry.Value); problem != "" {
			c.errorf(entry.Value.Pos, codeFieldType, "%s.%s %s", field.Name, entry.Key, problem)
		}
	}
}

// foreignKeys are words of other programs for the keys of csv.
var foreignKeys = []foreignWord{
	{words: "sep separator delim fieldseparator fielddelimiter fs", write: `write "delimiter"`},
	{words: "quotechar quotecharacter quoting enclosure fieldquote", write: `write "quote"`},
	{words: "names columns fieldnames hasheader headers colnames skipheader", write: `write "header": true, false, or the list of names`},
	{words: "na navalues nullvalues nullif nullstring nullas none", write: `write "null"`},
	{words: "charset codec characterset", write: `write "encoding"`},
}

// foreignValues are values of other programs, by the one that is meant.
var foreignValues = map[string]string{
	"ndjson": "jsonl", "jsonlines": "jsonl", "json_lines": "jsonl", "json-lines": "jsonl", "tsv": "csv", "txt": "text", "plain": "text",
	"gz": "gzip", "zst": "zstd", "zstandard": "zstd", "identity": "none",
	"append": "insert", "append-only": "insert", "append_only": "insert", "merge": "upsert", "append_dedup": "upsert", "dedup": "upsert", "update": "upsert",
	"overwrite": "replace", "full_refresh": "replace", "full-refresh": "replace", "full_refresh_overwrite": "replace", "truncate": "replace", "truncate_insert": "replace",
	"insert_overwrite": "replace", "delete+insert": "replace", "refresh": "replace", "replace_all": "replace",
	"ignore": "insert_or_ignore", "insert_ignore": "insert_or_ignore", "do_nothing": "insert_or_ignore", "skip": "insert_or_ignore",
	"fail": "freeze", "strict": "freeze", "append_new_columns": "evolve", "sync_all_columns": "evolve", "add_columns": "evolve", "discard_rows": "discard_row",
	"discard_values": "discard_value", "discard_columns": "discard_value", "drop": "discard_value",
}

// foreignValue is the value that another program's stands for, "" for none.
func (f Field) foreignValue(text string) string {
	if meant := foreignValues[text]; slices.Contains(f.Enum, meant) {
		return meant
	}
	return ""
}
