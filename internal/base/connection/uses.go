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
	// Playbooks are the names of known playbooks, with * for any characters; none for all playbooks, known or not.
	Playbooks []string
}

// User is who would use a connection. A field is "" where it is not known yet, which denies nothing.
type User struct {
	Tool, TaskQueue, Playbook string
	// Unknown says why the worker does not know the bytes of the playbook, "" where it knows them.
	Unknown string
}

// connectsBy maps tools without connections to the tools that they connect with.
var connectsBy = map[string]string{"webhook": "http", "transfer": "the tools that it reads and writes with, such as http and postgres"}

// readUses reads the limits of the connection.
func (s section) readUses() (u Uses) {
	limits := s.subsection("uses", "tools", "task_queues", "playbooks")
	if limits == nil {
		return u
	}
	u.Tools, u.TaskQueues, u.Playbooks = limits.readTexts("tools"), limits.readTexts("task_queues"), limits.readTexts("playbooks")
	for _, key := range []string{"tools", "task_queues", "playbooks"} {
		if _, has := limits.values[key]; has && len(limits.readTexts(key)) == 0 {
			s.d.recordProblem(limits.pathOf(key), "must have one name or more in %s", limits.keyName(key))
		}
	}
	for _, name := range u.Tools {
		if by := connectsBy[name]; by != "" {
			s.d.recordProblem(limits.pathOf("tools"), "has %s in %s, which connects by %s; name that", name, limits.keyName("tools"), by)
		}
	}
	for key, patterns := range map[string][]string{"task_queues": u.TaskQueues, "playbooks": u.Playbooks} {
		if slices.ContainsFunc(patterns, func(pattern string) bool { return !IsPattern(pattern) }) {
			s.d.recordProblem(limits.pathOf(key), "must have names of %s in %s, with * for any characters", strings.ReplaceAll(key, "_", " "), limits.keyName(key))
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

// DenialReason returns why somebody may not use the connection; "" if they may. The text continues after the connection's name.
func (u Uses) DenialReason(user User) string {
	switch {
	case len(u.Tools) > 0 && user.Tool != "" && !slices.Contains(u.Tools, user.Tool):
		return fmt.Sprintf("may be used by %s, and not by %s: its uses.tools decides", strings.Join(u.Tools, ", "), user.Tool)
	case len(u.TaskQueues) > 0 && user.TaskQueue != "" && !matchesAny(u.TaskQueues, user.TaskQueue):
		return fmt.Sprintf("may be used on task queues %s, and this worker polls %s: its uses.task_queues decides", strings.Join(u.TaskQueues, ", "), user.TaskQueue)
	case len(u.Playbooks) > 0 && user.Playbook != "" && !matchesAny(u.Playbooks, user.Playbook):
		return fmt.Sprintf("may be used by playbooks %s, and not by %s: its uses.playbooks decides", strings.Join(u.Playbooks, ", "), user.Playbook)
	case len(u.Playbooks) > 0 && user.Unknown != "":
		return fmt.Sprintf("may be used by known playbooks %s, and %s: its uses.playbooks decides", strings.Join(u.Playbooks, ", "), user.Unknown)
	}
	return ""
}

// matchesAny reports whether a name fits a pattern, in which * stands for any characters.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return FitsPattern(pattern, name) })
}

// unslashed hides slashes from path.Match, whose * does not match them: names of playbooks may have some.
var unslashed = strings.NewReplacer("/", "\x00")

// IsPattern reports whether a text is a pattern of names.
func IsPattern(text string) bool {
	_, err := path.Match(text, "")
	return err == nil
}

// FitsPattern reports whether a name fits a pattern, in which * stands for any characters, ? for one, and [ab] for one of
// several. No name fits what is no pattern.
func FitsPattern(pattern, name string) bool {
	fits, err := path.Match(unslashed.Replace(pattern), unslashed.Replace(name))
	return fits && err == nil
}
