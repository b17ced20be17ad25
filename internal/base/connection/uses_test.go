package connection_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/connection"
)

// TestUses: what is not named in a list may not use the connection; a list that is not there limits nobody.
func TestUses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, tool, queue, denied string }{
		{"bearer:tok", "http", "q", ""},
		{`{"bearer": "tok"}`, "http", "q", ""},
		{`{"bearer": "tok", "uses": {"tools": ["http", "sqlite"]}}`, "sqlite", "q", ""},
		{`{"bearer": "tok", "uses": {"tools": ["http", "sqlite"]}}`, "postgres", "q", "may be used by http, sqlite, and not by postgres: its uses.tools decides"},
		{`{"bearer": "tok", "uses": {"tools": ["http"]}}`, "HTTP", "q", "may be used by http, and not by HTTP: its uses.tools decides"},
		{`{"bearer": "tok", "uses": {"tools": ["http"]}}`, "", "q", ""},
		{`{"url": "postgres://h/d", "uses": {"task_queues": ["nightly", "billing-*"]}}`, "postgres", "billing-eu", ""},
		{`{"url": "postgres://h/d", "uses": {"task_queues": ["nightly", "billing-*"]}}`, "postgres", "nightly", ""},
		{
			`{"url": "postgres://h/d", "uses": {"task_queues": ["nightly", "billing-*"]}}`, "postgres", "nightly2",
			"may be used on task queues nightly, billing-*, and this worker polls nightly2: its uses.task_queues decides",
		},
		{`{"url": "postgres://h/d", "uses": {"task_queues": "nightly"}}`, "postgres", "", ""},
		{`{"url": "postgres://h/d", "uses": {"tools": ["postgres"], "task_queues": ["nightly"]}}`, "postgres", "x", "may be used on task queues nightly, and this worker polls x: its uses.task_queues decides"},
	} {
		entryText, err := connection.EntryText(entry(t, quoted(row.text)))
		require.NoError(t, err, row.text)
		require.Equal(t, row.denied, connection.UsesOf(entryText).DenialReason(connection.User{Tool: row.tool, TaskQueue: row.queue}), "%s %s %s", row.text, row.tool, row.queue)
		resolved, err := connection.ResolveSources(entryText, nil)
		require.NoError(t, err)
		require.NotContains(t, resolved, "uses")
	}
}

// quoted is a text as JSON, where it is none.
func quoted(text string) string {
	if text[0] == '{' {
		return text
	}
	return `"` + text + `"`
}

// TestUsesOfPlaybooks: a playbook needs a name that the list has, and bytes that the worker knows.
func TestUsesOfPlaybooks(t *testing.T) {
	t.Parallel()
	entryText, err := connection.EntryText(entry(t, `{"bearer": "tok", "uses": {"playbooks": ["nightly", "billing-*"]}}`))
	require.NoError(t, err)
	for _, row := range []struct{ name, unknown, denied string }{
		{"nightly", "", ""},
		{"billing-eu", "", ""},
		{"billing-eu/daily", "", ""},
		{"", "", ""},
		{"nightly.load", "", "may be used by playbooks nightly, billing-*, and not by nightly.load: its uses.playbooks decides"},
		{"nightly", "it has no signature", "may be used by known playbooks nightly, billing-*, and it has no signature: its uses.playbooks decides"},
		{"", "it has no signature", "may be used by known playbooks nightly, billing-*, and it has no signature: its uses.playbooks decides"},
	} {
		require.Equal(t, row.denied, connection.UsesOf(entryText).DenialReason(connection.User{Playbook: row.name, Unknown: row.unknown}), row.name)
	}
	require.Empty(t, connection.UsesOf("bearer:tok").DenialReason(connection.User{Playbook: "x", Unknown: "it has no signature"}))
	_, err = connection.EntryText(entry(t, `{"bearer": "tok", "uses": {"playbooks": ["[a"]}}`))
	require.ErrorContains(t, err, "must have names of playbooks in uses.playbooks, with * for any characters")
	_, err = connection.EntryText(entry(t, `{"bearer": "tok", "uses": {"playbooks": []}}`))
	require.ErrorContains(t, err, "must have one name or more in uses.playbooks")
}
