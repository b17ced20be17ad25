package playbook

import (
	"fmt"
	"strings"
)

// Describe says all of a policy but its places.
func Describe(p *Policy) string {
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
		for _, node := range []*Node{next.Args, next.Params, next.Headers, next.URL, next.Method, next.Body} {
			b.WriteString(" next " + raw(node))
		}
	}
	if collect := then.Collect; collect != nil {
		fmt.Fprintf(&b, " collect %s %s %s %v", collect.Strategy, collect.Path, collect.Into, collect.Optional)
	}
	for _, sink := range []*Sink{then.Sink, then.PerIteration} {
		if sink == nil {
			continue
		}
		b.WriteString(" sink " + sink.Place)
		for _, node := range sink.Action.nodes() {
			b.WriteString(" " + raw(node))
		}
		for _, policy := range sink.Action.Retry {
			b.WriteString(" [" + Describe(policy) + "]")
		}
	}
	return b.String()
}

func value[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

func raw(n *Node) string {
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
