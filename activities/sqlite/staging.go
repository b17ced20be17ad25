package sqlite

import (
	"context"
	"slices"
	"strings"

	"reprise/activities/sqltool"
	"reprise/interpreter/lists"
)

// RequireAlone does nothing: the transaction has exclusive use of the file.
func (tableTx) RequireAlone() error { return nil }

// HoldWriters does nothing: the transaction has exclusive use of the file.
func (tableTx) HoldWriters(context.Context, *sqltool.TableWrite) error { return nil }

// NewerRowTables returns the tables that record newer rows.
func (t tableTx) NewerRowTables(ctx context.Context, w *sqltool.TableWrite) (found [][]string, err error) {
	begin, behind := w.NewerNames(dialect)
	schema := w.Table[:len(w.Table)-1]
	master := "sqlite_master"
	if len(schema) > 0 {
		master = sqltool.QuoteNames(schema) + "." + master
	}
	err = t.Query(withoutCancel(ctx), "SELECT name FROM "+master+" WHERE type = 'table' AND name >= $1 AND name < $2", []any{begin, behind}, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		found = append(found, append(slices.Clone(schema), name))
		return err
	})
	return found, err
}

// ShareTable does nothing: SQLite has no users.
func (tableTx) ShareTable(context.Context, *sqltool.TableWrite, *sqltool.TableWrite) error {
	return nil
}

// LockExclusively does nothing: the transaction has exclusive use of the file.
func (tableTx) LockExclusively(context.Context, []string) (bool, error) { return true, nil }

// DescribeTarget describes the table of a write.
func (t tableTx) DescribeTarget(ctx context.Context, w *sqltool.TableWrite) (*sqltool.TargetTable, error) {
	found := &sqltool.TargetTable{}
	name := w.Table[len(w.Table)-1]
	if len(w.Table) > 1 {
		found.Schema = w.Table[0]
	}
	err := t.Query(ctx, "SELECT type, coalesce(sql, '') FROM sqlite_master WHERE lower(name) = lower($1) AND type IN ('table', 'view')", []any{name},
		func(scan func(...any) error) error {
			var kind, create string
			err := scan(&kind, &create)
			switch {
			case kind == "view":
				found.Refused = "it is a view; write to the table behind it"
			case strings.HasPrefix(strings.ToUpper(create), "CREATE VIRTUAL"):
				found.Refused = "it is a virtual table"
			}
			found.Checks = checksOf(create)
			found.HasTriggers = strings.Contains(strings.ToUpper(create), "CONFLICT")
			return err
		})
	if err != nil {
		return nil, err
	}
	err = t.Query(ctx, "SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = lower($1) LIMIT 1", []any{name}, func(scan func(...any) error) error {
		var one int
		found.HasTriggers = true
		return scan(&one)
	})
	if err != nil {
		return nil, err
	}
	if err := t.inspectColumns(ctx, name, w.QuotedTable(), found); err != nil {
		return nil, err
	}
	return found, t.inspectReferences(ctx, name, found)
}

func (t tableTx) inspectColumns(ctx context.Context, name, quoted string, found *sqltool.TargetTable) error {
	const generated, stored = 2, 3
	err := t.Query(ctx, `SELECT name, type, "notnull", coalesce(dflt_value, ''), hidden FROM pragma_table_xinfo($1) ORDER BY cid`, []any{name},
		func(scan func(...any) error) error {
			var (
				column sqltool.TargetColumn
				hidden int
			)
			err := scan(&column.Name, &column.Type, &column.NotNull, &column.Default, &hidden)
			column.ReadOnly = hidden == generated || hidden == stored
			if column.Default != "" {
				column.Default = "(" + column.Default + ")"
			}
			found.Columns = append(found.Columns, column)
			return err
		})
	if err != nil {
		return err
	}
	collations, err := collationsOf(ctx, t, quoted, lists.Map(found.Columns, func(c sqltool.TargetColumn) string { return c.Name }))
	if err != nil {
		return err
	}
	for i, column := range found.Columns {
		if collation := collations[column.Name]; collation != "" {
			found.Columns[i].Type += " COLLATE " + collation
		}
	}
	return t.Query(ctx, "SELECT 1 FROM pragma_table_list WHERE lower(name) = lower($1) AND strict", []any{name}, func(scan func(...any) error) error {
		found.Options = " STRICT"
		var strict int
		return scan(&strict)
	})
}

func (t tableTx) inspectReferences(ctx context.Context, name string, found *sqltool.TargetTable) error {
	const references = `SELECT DISTINCT m.name, lower(m.name) = lower($1) FROM sqlite_master AS m, pragma_foreign_key_list(m.name) AS f
		WHERE m.type = 'table' AND lower(f."table") = lower($1) ORDER BY 1`
	return t.Query(ctx, references, []any{name}, found.AddReference)
}

// checksOf returns the CHECK clauses of a CREATE TABLE, with their names where they have one.
func checksOf(create string) (checks []string) {
	var before [2]string // words
	for at := 0; at < len(create); {
		end := wordEnd(create, at)
		word := create[at:end]
		if strings.EqualFold(word, "CHECK") {
			open := end + strings.IndexByte(create[end:]+"(", '(')
			end = groupEnd(create, open)
			clause := "CHECK " + create[min(open, end):end]
			if strings.EqualFold(before[0], "CONSTRAINT") {
				clause = "CONSTRAINT " + before[1] + " " + clause
			}
			checks = append(checks, clause)
		}
		if strings.TrimSpace(word) != "" && !strings.HasPrefix(word, "--") && !strings.HasPrefix(word, "/*") {
			before = [2]string{before[1], word}
		}
		at = end
	}
	return checks
}

// groupEnd returns the end of the bracketed group that begins at a place.
func groupEnd(text string, at int) int {
	for depth := 0; at < len(text); {
		end := wordEnd(text, at)
		switch text[at:end] {
		case "(":
			depth++
		case ")":
			depth--
		}
		if at = end; depth == 0 {
			return at
		}
	}
	return len(text)
}

// wordEnd returns the end of the word, name, text, comment or sign that begins at a place.
func wordEnd(text string, at int) int {
	until := func(mark string, from int) int {
		i := strings.Index(text[min(from, len(text)):], mark)
		if i < 0 {
			return len(text)
		}
		return from + i + len(mark)
	}
	rest := text[at:]
	switch {
	case strings.HasPrefix(rest, "--"):
		return until("\n", at)
	case strings.HasPrefix(rest, "/*"):
		return until("*/", at+2)
	case rest[0] == '[':
		return until("]", at)
	case strings.ContainsRune("'\"`", rune(rest[0])):
		end := until(rest[:1], at+1)
		for end < len(text) && text[end] == rest[0] { // two of them are one within
			end = until(rest[:1], end+1)
		}
		return end
	}
	end := at
	for end < len(text) && isWordByte(text[end]) {
		end++
	}
	return max(end, at+1)
}

func isWordByte(b byte) bool {
	return b == '_' || b == '$' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}
