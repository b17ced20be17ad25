package interpreter

import (
	"cmp"
	"net/url"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// MostTables bounds the tables that Rows counts separately; the others are counted together. Without it, the result
// of a loop that writes one table per iteration would grow with the loop.
const MostTables = 50

// Rows counts what a call, a loop or a run did to data: the rows that it read, and what it wrote to each table.
// Nil, and zero, mean "was not counted". It is a value: Plus returns a new one. Kept in workflow history.
// Repeated attempts count once, since only an attempt with a result counts. If a worker is lost after a write,
// the write is found in the ledger of its destination. Then modes insert, insert_or_ignore and replace count the
// rows of that write, of which insert_or_ignore may have omitted some; other modes, and a call that continues from
// its ledger entry, count the rows given to the write, because the entry is made before the write, and it is not
// known how many of them were rejected or existed already. A reprocess that finds a write already made counts it
// again. What a failed attempt did outside of a transaction is not counted.
type Rows struct {
	RowTotals
	// Tables are the MostTables largest tables, sorted by name.
	Tables []TableRows `json:"tables,omitempty"`
	// Others is the sum over all other tables, nil for none. A table that is added again may be in both.
	Others *RowTotals `json:"others,omitempty"`
}

// RowTotals are numbers of rows.
type RowTotals struct {
	// Read counts rows that pages contributed, and that files and queries returned. A value that is not a list
	// counts as one row if the step has a sink, otherwise as none. It is zero for a table.
	Read int64 `json:"read,omitempty"`
	// Written counts rows that were inserted, updated, or given to something other than a table. It includes
	// Inserted and Updated, which are zero if the database cannot distinguish them cheaply: for upserts in SQLite,
	// and in PostgreSQL into anything but a plain table.
	Written  int64 `json:"written,omitempty"`
	Inserted int64 `json:"inserted,omitempty"`
	Updated  int64 `json:"updated,omitempty"`
	Deleted  int64 `json:"deleted,omitempty"`
	// Rejected counts rows that the database rejected, or that files could not hold, Discarded those that the schema contract left out.
	Rejected  int64 `json:"rejected,omitempty"`
	Discarded int64 `json:"discarded,omitempty"`
}

// TableRows counts what was done to a table, or to another destination of a sink.
type TableRows struct {
	// Table is its rendered name or, without one, the path of a file, otherwise the tool.
	Table string `json:"table"`
	// Connection is the connection of the table, or the host of a request; "" for none.
	Connection string `json:"connection,omitempty"`
	RowTotals
}

// Plus returns the sum of two totals.
func (t RowTotals) Plus(more RowTotals) RowTotals {
	return RowTotals{
		Read: t.Read + more.Read, Written: t.Written + more.Written, Inserted: t.Inserted + more.Inserted, Updated: t.Updated + more.Updated,
		Deleted: t.Deleted + more.Deleted, Rejected: t.Rejected + more.Rejected, Discarded: t.Discarded + more.Discarded,
	}
}

// ChangedRows returns how many rows were written or deleted.
func (t RowTotals) ChangedRows() int64 { return t.Written + t.Deleted }

// totalSize is the number by which tables are ordered.
func (t RowTotals) totalSize() int64 { return t.ChangedRows() + t.Rejected + t.Discarded }

// ToRows returns the counts as Rows with one table; empty if they are all zero.
func (t TableRows) ToRows() *Rows {
	if t.RowTotals == (RowTotals{}) {
		return &Rows{}
	}
	return &Rows{RowTotals: t.RowTotals, Tables: []TableRows{t}}
}

// IsEmpty reports whether nothing was counted.
func (r *Rows) IsEmpty() bool { return r == nil || r.RowTotals == RowTotals{} }

// CountedOrNil returns r, or nil if nothing was counted.
func (r *Rows) CountedOrNil() *Rows {
	if r.IsEmpty() {
		return nil
	}
	return r
}

// Totals returns the totals over all tables; zero for nil.
func (r *Rows) Totals() RowTotals {
	if r == nil {
		return RowTotals{}
	}
	return r.RowTotals
}

// Plus returns the sum of two Rows, each of which may be nil.
func (r *Rows) Plus(more *Rows) *Rows {
	if r == nil || more == nil {
		return cmp.Or(r, more)
	}
	sum := &Rows{RowTotals: r.RowTotals.Plus(more.RowTotals), Tables: r.Tables, Others: r.Others}
	if more.Others != nil {
		sum.leaveOut(*more.Others)
	}
	if len(more.Tables) == 0 {
		return sum
	}
	sum.Tables = slices.Concat(r.Tables, more.Tables)
	slices.SortStableFunc(sum.Tables, compareNames)
	merged := sum.Tables[:0]
	for _, table := range sum.Tables {
		if last := len(merged) - 1; last >= 0 && compareNames(merged[last], table) == 0 {
			merged[last].RowTotals = merged[last].Plus(table.RowTotals)
		} else {
			merged = append(merged, table)
		}
	}
	sum.Tables = slices.Clip(merged)
	sum.limitTables()
	return sum
}

func compareNames(a, b TableRows) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Connection, b.Connection))
}

// limitTables keeps the MostTables largest tables, and adds the others to Others.
func (r *Rows) limitTables() {
	if len(r.Tables) <= MostTables {
		return
	}
	slices.SortFunc(r.Tables, func(a, b TableRows) int { return cmp.Or(cmp.Compare(b.totalSize(), a.totalSize()), compareNames(a, b)) })
	for _, table := range r.Tables[MostTables:] {
		r.leaveOut(table.RowTotals)
	}
	r.Tables = slices.Clip(r.Tables[:MostTables])
	slices.SortFunc(r.Tables, compareNames)
}

// leaveOut adds totals to Others.
func (r *Rows) leaveOut(totals RowTotals) {
	if r.Others != nil {
		totals = totals.Plus(*r.Others)
	}
	r.Others = &totals
}

// Table returns the table, or other destination, of the attempt, without counts.
func (in ToolInput) Table() TableRows {
	named := TableRows{Table: in.Tool, Connection: in.Auth}
	table, isTable := in.Fields["table"].Data.(string)
	path, hasPath := in.Fields["path"].Data.(string)
	switch {
	case isTable:
		named.Table, named.Connection = table, cmp.Or(in.Auth, path)
		return named
	case hasPath:
		named.Table = path
		return named
	}
	if address, err := url.Parse(expression.Text(in.Fields[playbook.FieldURL].Data)); err == nil && address.Host != "" {
		named.Connection = address.Host
	}
	return named
}

// GivenRows returns the rows given to a sink, counted as written.
func (in ToolInput) GivenRows() *Rows {
	table := in.Table()
	publishes := playbook.TraitsOf(in.Tool).IntoFile || expression.Text(in.Fields["mode"].Data) == "replace" // what it stages, and counts it then
	if in.Staging == nil || in.Staging.Do == "" && !publishes {
		table.Written = int64(len(in.SinkRows()))
	}
	return table.ToRows()
}
