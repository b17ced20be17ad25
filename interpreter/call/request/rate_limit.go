package request

import (
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
)

// rateLimit returns the limit that applies to an attempt. Its key is private to the playbook book, unless the
// author shares it.
func rateLimit(book string, limit *playbook.RateLimit, input interpreter.ToolInput, renderer renderer) (*ratelimit.Limit, error) {
	found := &ratelimit.Limit{Key: input.LimitKey(), Playbook: book, Requests: limit.Requests, PerSeconds: limit.Per.Seconds()}
	node := limit.Key
	if limit.Shared != nil {
		node, found.Playbook = limit.Shared, ""
	}
	if node == nil {
		return found, nil
	}
	value, err := node.RenderKey(renderer.scope, renderer.budget)
	if err != nil {
		return nil, err
	}
	found.Key = expression.Text(value)
	return found, nil
}
