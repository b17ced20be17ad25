package migrate_test

import (
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter/playbook"
)

// describe says all of a policy but its places.
func describe(p *playbook.Policy) string {
	var b strings.Builder
	then := p.Then
	fmt.Fprintf(&b, "%d when %s stop %s", p.Number, raw(p.When), raw(p.StopWhen))
	fmt.Fprintf(&b, " attempts %v multiplier %v", value(then.MaxAttempts), value(then.Multiplier))
	fmt.Fprintf(&b, " delay %v initial %v max %v elapsed %v wait %v", value(then.Delay), value(then.InitialDelay),
		value(then.MaxDelay), value(then.MaxElapsed), value(then.MaxWait))
	fmt.Fprintf(&b, " %s %s %s %v %v", then.Backoff, then.Jitter, then.OnExhausted, then.AllowRepeat, then.Repeats)
	fmt.Fprintf(&b, " %v", then.EndOnRepeat)
	fmt.Fprintf(&b, " %v %s %v", then.Ignore, raw(then.Result), then.Restart)
	if next := then.NextCall; next != nil {
		for _, node := range []*playbook.Node{next.Args, next.Params, next.Headers, next.URL, next.Method, next.Body} {
			b.WriteString(" next " + raw(node))
		}
	}
	if collect := then.Collect; collect != nil {
		fmt.Fprintf(&b, " collect %s %s %s %v", collect.Strategy, collect.Path, collect.Into, collect.Optional)
	}
	for _, sink := range slices.Concat(then.Sinks, then.PageSinks) {
		b.WriteString(" sink " + sink.Place)
		for _, node := range nodes(sink.Action) {
			b.WriteString(" " + raw(node))
		}
		for _, policy := range sink.Action.Retry {
			b.WriteString(" [" + describe(policy) + "]")
		}
	}
	return b.String()
}

func nodes(action *playbook.Action) []*playbook.Node {
	all := []*playbook.Node{action.Tool, action.Args, action.Auth}
	for _, field := range action.Fields {
		all = append(all, field.Value)
	}
	if action.RateLimit != nil {
		all = append(all, action.RateLimit.Key, action.RateLimit.Shared)
	}
	return all
}

func value[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

func raw(n *playbook.Node) string {
	if n == nil {
		return "-"
	}
	text := n.Raw
	for _, item := range n.Items {
		text += "," + raw(item)
	}
	for _, entry := range n.Entries {
		text += "," + entry.Key + ":" + raw(entry.Value)
	}
	return text
}
