package tooltest

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

var childrenDriftCases = tableCases{
	"children drift":               childrenDrift,
	"children of parents kept out": childrenOfRefusedParents,
}

// childrenDrift makes the cases of drift with rows of children: the contract says the same of them as of rows without parents.
func childrenDrift(s *TableTest) {
	for i := range drifts {
		drift := &drifts[i]
		for _, mode := range []string{"insert", "upsert"} {
			for _, contract := range []string{"freeze", "evolve", "discard_value", "discard_row"} {
				s.t.Run(drift.name+"/"+mode+"/"+contract, func(t *testing.T) { drift.checkBelow(Tables{s.db}.Test(t), mode, contract) })
			}
		}
	}
}

// checkBelow writes each row below a parent with its id.
func (d *drift) checkBelow(s *TableTest, mode, contract string) {
	s.Create(driftTable)
	s.Query("CREATE UNIQUE INDEX "+s.Table+"_id ON "+s.Table+" (id)", nil)
	orders := *s
	orders.Table += "_orders"
	orders.Create("id bigint PRIMARY KEY")
	var parents []any
	for _, one := range d.rows {
		own := maps.Clone(one.(row))
		delete(own, "id")
		parents = append(parents, row{"id": one.(row)["id"], "items": []any{own}})
	}
	fields := row{"mode": mode, "schema_contract": contract, "children": row{"items": row{"table": s.Table, "key": "id", "with": row{"id": "id"}}}}
	if mode == "upsert" {
		fields["key"] = "id"
	}
	want, leftOut := d.evolved, interpreter.RowCounts{}
	isSQLite := s.db.Name == "sqlite"
	switch contract {
	case "freeze":
		if d.says != "" && (!d.lenient || !isSQLite) {
			want = d.says
		}
	case "discard_value":
		want, leftOut.DiscardedValues = d.value, d.values
	case "discard_row":
		want, leftOut.DiscardedRows = d.row, d.lines
	}
	if d.lenient && isSQLite {
		want, leftOut = d.evolved, interpreter.RowCounts{} // an integer of SQLite has 64 bits
	}
	result, err := s.db.MakeAttempt(s.t, orders.WriteInput(fields, parents...))
	if isRefused := want == d.says && want != "" || strings.HasPrefix(want, "and its"); isRefused {
		require.Error(s, err)
		message := ErrorObject(s.t, err).Message
		if strings.Contains(want, "%s") {
			want = fmt.Sprintf(want, s.Table)
		}
		for _, part := range strings.SplitAfterN(want, "row 1", 2) {
			if number, _, is := strings.Cut(part, ":"); is && strings.HasPrefix(part, "row ") && !strings.Contains(number, ",") {
				part = strings.Replace(part, number, number+", items[0]", 1)
			}
			require.Contains(s, message, strings.TrimPrefix(part, "row 2, column"))
		}
		require.Contains(s, message, ", items[0]")
		require.Empty(s, s.tableLines())
		require.Empty(s, orders.ContentLines("id"), "nor are their parents")
		return
	}
	require.NoError(s, err)
	require.Equal(s, want, s.tableLines())
	require.Len(s, orders.ContentLines("id"), len(parents), "a parent whose child is left out stays")
	if contract != "freeze" {
		require.Equal(s, &leftOut, result.Meta.LeftOut)
	}
	if contract == "evolve" && d.kind != "" && !isSQLite {
		require.Equal(s, d.kind, s.typeOf(d.column))
	}
}

// childrenOfRefusedParents: where a trigger keeps a parent out without an error, no child is written without it.
func childrenOfRefusedParents(s *TableTest) {
	s.withItems()
	if s.db.Name == "sqlite" {
		s.Query("CREATE TRIGGER "+s.Table+"_keep BEFORE INSERT ON "+s.Table+" WHEN NEW.id = 2 BEGIN SELECT RAISE(IGNORE); END", nil)
	} else {
		s.Query("CREATE FUNCTION "+s.Table+"_keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.id = 2 THEN RETURN NULL; END IF; RETURN NEW; END'", nil)
		s.Query("CREATE TRIGGER keep BEFORE INSERT ON "+s.Table+" FOR EACH ROW EXECUTE FUNCTION "+s.Table+"_keep()", nil)
	}
	for _, fields := range []row{s.ofItems(nil, nil), s.upsertFields(nil)} {
		require.Contains(s, s.Refuse(fields, orderWithLines(1, 1), orderWithLines(2, 1)).Message, "the database left out 1 of the rows")
		require.Empty(s, s.itemLines())
		require.Empty(s, s.ContentLines("id"))
	}
	s.Write(s.ofItems(row{"mode": "insert_or_ignore", "key": "id"}, row{"key": []any{"order_id", "line"}}), orderWithLines(1, 1), orderWithLines(2, 1))
	require.Equal(s, []string{"1/1"}, s.itemLines())
}
