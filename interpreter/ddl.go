package interpreter

// DDLKind is what a statement of DDL does to a table.
type DDLKind string

// The kinds of DDL that writes need.
const (
	CreateSchema DDLKind = "create_schema"
	CreateTable  DDLKind = "create_table"
	AddColumn    DDLKind = "add_column"
	WidenColumn  DDLKind = "widen_column" // its type holds more values than before, and all that it held
)

// DDLKinds are all kinds.
func DDLKinds() []DDLKind { return []DDLKind{CreateSchema, CreateTable, AddColumn, WidenColumn} }

// DDL is a statement that a write makes, or would make, before its rows, with its kind, so that nobody has to parse
// it. Kept in workflow history.
type DDL struct {
	Kind      DDLKind `json:"kind"`
	Statement string  `json:"statement"`
}
