package check

import (
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// checkKeys checks the keys of a literal map.
func checkKeys(c *checker, field playbook.Field, written *playbook.Node) {
	names := lists.Map(field.Keys, func(key playbook.Field) string { return key.Name })
	for _, key := range field.Keys {
		has := func(entry *playbook.Entry) bool { return entry.Key == key.Name }
		if key.Required && written.Kind == playbook.MapNode && !slices.ContainsFunc(written.Entries, has) {
			c.Errorf(written.Pos, codeMissingField, "%s needs %q", field.Name, key.Name)
		}
	}
	for _, entry := range written.Entries {
		i := slices.Index(names, entry.Key)
		if i < 0 {
			hint := "its keys are " + playbook.JoinNames(names)
			if write := playbook.ForeignIn(foreignKeys, entry.Key, 0, nil).Text(); write != "" {
				hint = write
			} else if near := expression.Suggest(entry.Key, names); near != "" {
				hint = "did you mean " + playbook.QuoteWord(near) + "?"
			}
			c.Errorf(entry.KeyPos, codeUnknownField, "%s has no key %q; %s", field.Name, playbook.ShortenText(entry.Key), hint)
			c.AddFix(entry.Key, expression.SuggestCertain(entry.Key, names))
			continue
		}
		if problem := fieldProblem(field.Keys[i], entry.Value); problem != "" {
			c.Errorf(entry.Value.Pos, codeFieldType, "%s.%s %s", field.Name, entry.Key, problem)
		} else if own := field.Keys[i]; len(own.Each) > 0 {
			own.Name = field.Name + "." + own.Name
			checkEach(c, own, entry.Value)
		}
	}
}

// checkEach checks the keys of each value of a map whose own keys the author chooses.
func checkEach(c *checker, field playbook.Field, written *playbook.Node) {
	for _, entry := range written.Entries {
		one := playbook.Field{Name: field.Name + "." + entry.Key, Kind: playbook.KindMap, Keys: field.Each}
		if problem := fieldProblem(one, entry.Value); problem != "" {
			c.Errorf(entry.Value.Pos, codeFieldType, "%s %s", one.Name, problem)
			continue
		}
		checkKeys(c, one, entry.Value)
	}
}

// foreignKeys are other programs' words for the keys of csv.
var foreignKeys = []playbook.ForeignWord{
	{Words: "sep separator delim fieldseparator fielddelimiter fs", Write: `write "delimiter"`},
	{Words: "quotechar quotecharacter quoting enclosure fieldquote", Write: `write "quote"`},
	{Words: "names columns fieldnames hasheader headers colnames skipheader", Write: `write "header": true, false, or the list of names`},
	{Words: "na navalues nullvalues nullif nullstring nullas none", Write: `write "null"`},
	{Words: "charset codec characterset", Write: `write "encoding"`},
}

// foreignValues maps values of other programs to the equivalent ones.
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

// foreignValue returns the equivalent of another program's value, "" for none.
func foreignValue(f playbook.Field, text string) string {
	if meant := foreignValues[text]; slices.Contains(f.Enum, meant) {
		return meant
	}
	return ""
}
