package check

import (
	"regexp"
	"strings"

	"reprise/interpreter/playbook"
)

// checkRepeatedWrites warns about a sink that repeats a write if a worker dies before it could report it
// (docs/concepts/written-once.md). Rows of tables, files, and requests with an idempotency key are written once;
// this is about the others.
func checkRepeatedWrites(c *checker) {
	for _, step := range c.pb.Steps {
		for _, call := range step.SinkCalls() {
			action := call.Action
			switch traits := playbook.TraitsOf(c.toolOf(action)); {
			case traits.Dialect != "":
				checkRepeatedStatement(c, action.Field(playbook.FieldStatement))
			case traits.Requests && traits.Keyed != "":
				checkRepeatedRequest(c, action)
			}
		}
	}
}

var (
	insertion = regexp.MustCompile(`(?is)^\s*insert\s+into\b`)
	// guarded matches what makes a repeated insert harmless.
	guarded = regexp.MustCompile(`(?is)\bon\s+conflict\b|\bnot\s+exists\b|\boperation_key\b`)
	// addition matches a column that is updated from its old value.
	addition = regexp.MustCompile(`(?is)^\s*update\b.*\bset\b.*?\b([a-z_]\w*)\s*=\s*(?:coalesce\(\s*)?([a-z_]\w*)\b[^,]*?[-+*|]`)
)

func checkRepeatedStatement(c *checker, statement *playbook.Node) {
	if statement == nil || guarded.MatchString(statement.Raw) {
		return
	}
	sum := addition.FindStringSubmatch(statement.Raw)
	switch {
	case insertion.MatchString(statement.Raw):
		c.Warnf(statement.Pos, codeRepeatedWrite, "if a worker dies after this INSERT, it is repeated; write the rows with table instead of statement, "+
			"which records what was written, or end it with ON CONFLICT (…) DO NOTHING on a column with {{ operation_key }}")
	case sum != nil && strings.EqualFold(sum[1], sum[2]):
		c.Warnf(statement.Pos, codeRepeatedWrite, "if a worker dies after this UPDATE, it adds to %s again; insert a row with {{ operation_key }} for each write and sum them up, or set the final value", sum[1])
	}
}

func checkRepeatedRequest(c *checker, action *playbook.Action) {
	method := action.Field("method")
	writes := method != nil && (strings.EqualFold(nodeText(method), "POST") || strings.EqualFold(nodeText(method), "PATCH"))
	if writes && (action.Idempotency == "none" || action.Idempotency == "attempt") {
		c.Warnf(startOf(action), codeRepeatedWrite, "with idempotency: %s, the server cannot recognize a repeated request, for example after a worker has died; "+
			"remove it, so that each attempt has the same Idempotency-Key", action.Idempotency)
	}
}
