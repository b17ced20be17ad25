package connection

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"reprise/interpreter/expression"
)

// Uses limits which tools and workers may use a connection; the zero value sets no limit.
type Uses struct {
	// Tools are the names of the tools that may; empty for all.
	Tools []string
	// TaskQueues are the task queues whose workers may, with * for any characters; empty for all.
	TaskQueues []string
}

// connectsBy maps tools without connections to the tools that they connect with.
var connectsBy = map[string]string{"webhook": "http", "transfer": "the tools that it reads and writes with, such as http and postgres"}

// readUses reads the limits of the connection.
func (s section) readUses() (u Uses) {
	limits := s.subsection("uses", "tools", "task_queues")
	if limits == nil {
		return u
	}
	u.Tools, u.TaskQueues = limits.readTexts("tools"), limits.readTexts("task_queues")
	for _, key := range []string{"tools", "task_queues"} {
		if _, has := limits.values[key]; has && len(limits.readTexts(key)) == 0 {
			s.d.recordProblem(limits.pathOf(key), "must have one name or more in %s", limits.keyName(key))
		}
	}
	for _, name := range u.Tools {
		if by := connectsBy[name]; by != "" {
			s.d.recordProblem(limits.pathOf("tools"), "has %s in %s, which connects by %s; name that", name, limits.keyName("tools"), by)
		}
	}
	for _, pattern := range u.TaskQueues {
		if _, err := path.Match(pattern, ""); err != nil {
			s.d.recordProblem(limits.pathOf("task_queues"), "must have names of task queues in %s, with * for any characters", limits.keyName("task_queues"))
		}
	}
	return u
}

// UsesOf returns the limits of a configured connection. An unreadable connection has none; no tool can use it.
func UsesOf(text string) Uses {
	if !IsMap(text) {
		return Uses{}
	}
	value, err := expression.Decode([]byte(text))
	entry, isMap := value.(map[string]any)
	if err != nil || !isMap {
		return Uses{}
	}
	return section{d: &decoder{}, values: entry}.readUses()
}

// Deny returns why a tool of a worker may not use the connection; "" if it may. The text continues after the
// connection's name. tool or queue is "" if it is not known yet, which denies nothing.
func (u Uses) Deny(tool, queue string) string {
	switch {
	case len(u.Tools) > 0 && tool != "" && !slices.Contains(u.Tools, tool):
		return fmt.Sprintf("may be used by %s, and not by %s: its uses.tools decides", strings.Join(u.Tools, ", "), tool)
	case len(u.TaskQueues) > 0 && queue != "" && !slices.ContainsFunc(u.TaskQueues, func(pattern string) bool { ok, _ := path.Match(pattern, queue); return ok }):
		return fmt.Sprintf("may be used on task queues %s, and this worker polls %s: its uses.task_queues decides", strings.Join(u.TaskQueues, ", "), queue)
	}
	return ""
}
