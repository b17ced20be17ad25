package playbook

import (
	"regexp"
	"strings"
)

// checkRepeatedWrites warns of a sink that writes again what it has written where a worker dies before
// it could report the write (docs/concepts/written-once.md). Rows of a table, files and requests
// with an idempotency key are written once; it is about what is left.
func checkRepeatedWrites(c *checker) {
	for _, step := range c.pb.Steps {
		for _, call := range step.sinks() {
			action := call.action
			switch traits := TraitsOf(c.toolOf(action)); {
			case traits.Dialect != "":
				c.checkRepeatedStatement(action.Field(statementField))
			case traits.Requests && traits.Keyed != "":
				c.checkRepeatedRequest(action)
			}
		}
	}
}

var (
	insertion = regexp.MustCompile(`(?is)^\s*insert\s+into\b`)
	// guarded is what makes an insert that comes again harmless.
	guarded = regexp.MustCompile(`(?is)\bon\s+conflict\b|\bnot\s+exists\b|\boperation_key\b`)
	// addition is a column that counts on from what it was.
	addition = regexp.MustCompile(`(?is)^\s*update\b.*\bset\b.*?\b([a-z_]\w*)\s*=\s*(?:coalesce\(\s*)?([a-z_]\w*)\b[^,]*?[-+*|]`)
)

func (c *checker) checkRepeatedStatement(statement *Node) {
	if statement == nil || guarded.MatchString(statement.Raw) {
		return
	}
	sum := addition.FindStringSubmatch(statement.Raw)
	switch {
	case insertion.MatchString(statement.Raw):
		c.warnf(statement.Pos, codeRepeatedWrite, "a worker that dies after this INSERT makes it again; write the rows with table in place of statement, "+
			"which notes what was written, or end it with ON CONFLICT (…) DO NOTHING on a column that holds {{ operation_key }}")
	case sum != nil && strings.EqualFold(sum[1], sum[2]):
		c.warnf(statement.Pos, codeRepeatedWrite, "a worker that dies after this UPDATE adds to %s again; insert a row with {{ operation_key }} for each write, and sum them up, or set what it is to be", sum[1])
	}
}

func (c *checker) checkRepeatedRequest(action *Action) {
	method := action.Field("method")
	writes := method != nil && (strings.EqualFold(nodeText(method), "POST") || strings.EqualFold(nodeText(method), "PATCH"))
	if writes && (action.Idempotency == "none" || action.Idempotency == "attempt") {
		c.warnf(action.start(), codeRepeatedWrite, "with idempotency: %s a request that is made again, such as after a worker has died, cannot be recognized; "+
			"leave it out, and each attempt has the same Idempotency-Key", action.Idempotency)
	}
}
