package interpreter

// DDLKind says what a DDL statement does to a table.
type DDLKind string

// The kinds of DDL that writes need.
const (
	CreateSchema DDLKind = "create_schema"
	CreateTable  DDLKind = "create_table"
	AddColumn    DDLKind = "add_column"
	WidenColumn  DDLKind = "widen_column" // to a type that holds all old values and more
)

// DDLKinds returns all kinds.
func DDLKinds() []DDLKind { return []DDLKind{CreateSchema, CreateTable, AddColumn, WidenColumn} }

// DDL is a statement that a write executes, or would execute, before its rows, with its kind, so that nobody has to
// parse it. Kept in workflow history.
type DDL struct {
	Kind      DDLKind `json:"kind"`
	Statement string  `json:"statement"`
}
